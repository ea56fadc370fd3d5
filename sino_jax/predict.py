"""Solves the problems of a file with a trained operator:

    sino-jax predict darcy input.npz output.npz
    sino-jax predict OPERATOR input.npz output.npz --refine=5 --estimate
    sino-jax predict OPERATOR input.npz output.npz --tolerance=1e-4

which is ``python -m sino_jax.predict``.
OPERATOR is the name of an operator that comes with the package, the directory of a run, or one that
`Operator.save` made.

The input holds the arrays ``coefficient`` and ``boundary`` (those that the equation has), one
problem ``[*grid, channel]`` or many ``[sample, *grid, channel]``, and ``scale``, one number or one
for each sample. The output gets ``solution`` and, if asked for, ``change`` (relative, of each
iteration; NaN for those after the tolerance was reached), ``error_estimate``, ``error_upper`` and
``error_bound`` (see `sino_jax.diagnostics.error_estimate`). A tolerance without --refine (Darcy
flow, Helmholtz) solves to that relative error and adds ``iterations``, ``history``, ``residual``,
``reached`` and ``error_bound`` (see `sino_jax.krylov.Solution`). The output appears when it is
complete. The exit code is 1 also if a solution holds NaN or infinity.
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

import argparse
import io
import math
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sino_jax import checkpoint, files, operator, problem
from sino_jax.operator import Operator, portable
from sino_jax.train import logging
from sino_jax.types import Instance

FIELDS = ("coefficient", "boundary", "scale")
Arrays = dict[str, np.ndarray]


class InputError(ValueError):
    """Files that cannot be read or written; the message says why."""


def read_problems(path: pathlib.Path) -> dict[str, Any]:
    """The arguments of `Operator.solve` from a file."""
    try:
        arrays = files.read_arrays(path)
    except (OSError, files.FileError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if unknown := sorted(set(arrays) - set(FIELDS)):
        raise InputError(f"{path} may hold {', '.join(FIELDS)}; it also holds {unknown}")
    if "scale" not in arrays:
        raise InputError(f"{path} must hold the array scale; it holds {sorted(arrays)}")
    return {name: arrays.get(name) for name in FIELDS}


def predict_all(
    trained: Operator,
    given: dict[str, Any],
    *,
    iterations: int = 0,
    tolerance: float | None = None,
    estimate: bool = False,
    points_per_batch: int = operator.POINTS_PER_CALL,
    report: Callable[[int, int], None] = lambda done, total: None,
    **refinement,
) -> Arrays:
    """Solves problems in batches of bounded memory.

    Args:
      trained: the operator.
      given: coefficient, boundary and scale, as in `Operator.solve`.
      iterations: of `Operator.refine`; 0 takes the prediction itself.
      tolerance: of `Operator.refine` if there are iterations, otherwise of `Operator.solve`.
      estimate: whether to estimate errors.
      points_per_batch: grid points of the problems that are solved at once, at least one problem.
      report: told how many of how many problems are done.
      **refinement: further options of `Operator.refine`.

    Returns:
      The arrays of the output file.
    """
    batch, single = problem.as_batch(
        trained.equation, *(given[name] for name in FIELDS), smallest_grid=trained.smallest_grid
    )
    first = batch.coefficient if batch.coefficient is not None else batch.boundary
    total, points = len(first), math.prod(first.shape[1:-1])
    at_once = min(total, max(1, points_per_batch // points))
    parts = []
    for start in range(0, total, at_once):
        # The last batch is filled up, so that one compiled program serves all.
        ids = np.minimum(np.arange(start, start + at_once), total - 1)
        part = Instance(*(None if field is None else field[ids] for field in batch))
        arrays = _predict(trained, part, iterations, tolerance, estimate, refinement)
        parts.append({name: array[: total - start] for name, array in arrays.items()})
        report(min(start + at_once, total), total)
    joined = {name: _concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: array[0] for name, array in joined.items()} if single else joined


def _concatenate(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Batches as one array; histories of different lengths are filled up with NaN."""
    if arrays[0].ndim == 2:
        width = max(array.shape[1] for array in arrays)
        missing = [((0, 0), (0, width - array.shape[1])) for array in arrays]
        arrays = [
            np.pad(array, pad, constant_values=np.nan)
            for array, pad in zip(arrays, missing, strict=True)
        ]
    return np.concatenate(arrays)


def _predict(
    trained: Operator,
    part: Instance,
    iterations: int,
    tolerance: float | None,
    estimate: bool,
    refinement: dict[str, Any],
) -> Arrays:
    """The output arrays of one batch, samples first."""
    given = (part.coefficient, part.boundary, part.scale)
    arrays = {}
    if iterations:
        refined = trained.refine_history(
            *given, iterations=iterations, tolerance=tolerance, **refinement
        )
        solution = refined.solution
        # A batch that reached the tolerance made fewer iterations than another.
        arrays["change"] = np.full((len(part.scale), iterations), np.nan, np.float32)
        arrays["change"][:, : len(refined.change)] = np.asarray(refined.change).T
    elif tolerance is not None:
        solved = trained.solve(*given, tolerance=tolerance)
        solution = solved.solution
        for name in ("iterations", "reached", "residual"):
            arrays[name] = np.asarray(getattr(solved, name))
        arrays["history"] = np.asarray(solved.history).T
        arrays["error_bound"] = np.asarray(solved.bound)
    else:
        solution = trained.solve(*given)
    arrays["solution"] = np.asarray(solution)
    if estimate:
        errors = trained.estimate_error(*given, solution=solution)
        arrays["error_estimate"] = np.asarray(errors.relative)
        arrays["error_upper"] = np.asarray(errors.upper)
        # A bound in double precision is better.
        arrays.setdefault("error_bound", np.asarray(errors.bound))
    return arrays


def write_atomically(path: pathlib.Path, arrays: Arrays) -> None:
    """An .npz file that appears under its name when it is complete."""
    with files.appearing_file(path) as unfinished, unfinished.open("xb") as stream:
        np.savez(stream, **arrays)


class Progress:
    """``[######......] 40/128  0:03 left`` on a terminal, nothing elsewhere."""

    def __init__(self, stream: io.TextIOBase):
        self._stream, self._start = stream, time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if self._stream.isatty():
            left = (time.monotonic() - self._start) * (total - done) / done
            bar = "#" * (24 * done // total)
            end = "\n" if done == total else ""
            line = f"[{bar:.<24}] {done}/{total}  {logging.duration(left)} left"
            self._stream.write(f"\r{line:60}{end}")
            self._stream.flush()


def main(argv: Sequence[str] | None = None) -> None:
    """The command line; errors are one line on stderr and exit code 1."""
    parser = argparse.ArgumentParser(
        prog="sino-jax predict",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shipped = ", ".join(operator.available()) or "none"
    parser.add_argument(
        "operator",
        help=f"name of an operator of the package ({shipped}), directory of a run, or one made by "
        "Operator.save",
    )
    parser.add_argument("input", type=pathlib.Path, help=f".npz file of {', '.join(FIELDS)}")
    parser.add_argument("output", type=pathlib.Path, help=".npz file to be made")
    parser.add_argument("--equation", help="refuse an operator of another equation")
    parser.add_argument("--step", type=int, help="of the checkpoint; the newest by default")
    parser.add_argument(
        "--refine", type=int, default=0, metavar="ITERATIONS", help="of domain decomposition"
    )
    parser.add_argument("--patch", type=int, help="points of a patch; the training grid's")
    parser.add_argument("--overlap", type=int, help="points that patches share; half a patch")
    parser.add_argument(
        "--tolerance",
        type=float,
        help="relative error to solve to (Darcy flow, Helmholtz); with --refine the relative "
        "change at which to stop",
    )
    parser.add_argument("--estimate", action="store_true", help="estimate errors, too")
    parser.add_argument(
        "--points_per_batch",
        type=int,
        default=operator.POINTS_PER_CALL,
        help="grid points that are solved at once, which bounds the memory (%(default)s)",
    )
    arguments = parser.parse_args(argv)
    if arguments.refine < 0:
        parser.error(f"--refine must not be negative, got {arguments.refine}")
    for name in ("patch", "overlap"):
        if getattr(arguments, name) is not None and not arguments.refine:
            parser.error(f"--{name} is an option of --refine, which is not given")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda text, *rest: sys.stderr.write(f"warning: {text}\n")
            arrays = _run(arguments)
    except (ValueError, OSError, checkpoint.CheckpointError, portable.PortableError) as error:
        sys.exit(f"error: {error}")
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
    sys.stdout.write(f"{arguments.output}: {shapes}\n")
    if bad := int(np.sum(~np.isfinite(arrays["solution"]))):
        sys.exit(f"error: {bad} values of the solution in {arguments.output} are not finite")


def _run(arguments: argparse.Namespace) -> Arrays:
    """From the arguments to the output file; returns its arrays."""
    if not arguments.output.parent.is_dir():
        raise InputError(f"{arguments.output}: there is no directory {arguments.output.parent}")
    if arguments.output.suffix != ".npz":
        raise InputError(f"output must be the name of an .npz file, got {arguments.output}")
    if arguments.output.is_dir():
        raise InputError(f"{arguments.output} is a directory; output must name a file")
    if arguments.output.exists() and arguments.output.samefile(arguments.input):
        raise InputError(f"output must not be the input, got {arguments.output} for both")
    trained = operator.load(arguments.operator, step=arguments.step, equation=arguments.equation)
    arrays = predict_all(
        trained,
        read_problems(arguments.input),
        iterations=arguments.refine,
        estimate=arguments.estimate,
        points_per_batch=arguments.points_per_batch,
        report=Progress(sys.stderr),
        patch=arguments.patch,
        overlap=arguments.overlap,
        tolerance=arguments.tolerance,
    )
    write_atomically(arguments.output, arrays)
    return arrays


if __name__ == "__main__":
    runtime.prepare()
    main()
