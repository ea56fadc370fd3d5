"""Problems per second of the operators that come with the package, against our own solvers.

    python -m benchmarks inference

Three ways to the same solutions, one problem at a time and in a batch:

    operator   `operator.load(name).solve`, single precision
    exact      the solver that makes the data, at the operator's grid, double precision
    coarse     the same solver in single precision on the coarsest grid on which its mean error is
               at most the operator's, with the time to restrict the data and to interpolate

Errors are relative to the exact solution, in L2 on the operator's grid. Data is in memory; a first
call compiles. Programs take turns at being timed. The Burgers operator sees half of the interval
and the values on its ends, the solver all of the periodic interval: a problem that contains the
operator's, and the only one that it solves.
"""

import functools
import json
import pathlib
import statistics
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import operator, scale_range
from solvers import burgers, darcy, fourier

RESULTS = pathlib.Path("results/benchmarks/inference.json")
BATCH, ROUNDS, SEED = 16, 7, 7
DARCY = ((2, 33), (4, 65), (8, 129), (16, 257))  # scale, nodes a side
BURGERS = ((100, 50, 128), (400, 50, 128), (1000, 50, 128), (400, 100, 256))  # Re, frames, points
BURGERS_POINTS = 1024  # of the periodic interval, of which the left half is seen


class Case(NamedTuple):
    """Problems of one kind.

    Attributes:
      name: of the operator.
      scale: of all problems.
      grid: of the operator.
      given: arrays ``[problem, ...]`` that the solvers start from.
      inputs: coefficient and boundary for the operator, ``[problem, *grid, 1]``.
      solution: ``[problem, *grid]``, the reference.
      exact: solves one problem.
      coarse: by points, programs that solve one problem on coarser grids, from the coarsest on.
      batched: maps a solver of one problem over many.
    """

    name: str
    scale: float
    grid: tuple[int, ...]
    given: tuple[np.ndarray, ...]
    inputs: tuple[np.ndarray | None, np.ndarray]
    solution: np.ndarray
    exact: Callable
    coarse: dict[int, Callable]
    batched: Callable


def main() -> None:
    warnings.simplefilter("ignore", scale_range.ScaleWarning)
    rows = []
    print(_HEADER)
    for make, sizes in ((darcy_case, DARCY), (burgers_case, BURGERS)):
        for size in sizes:
            for row in measure(make(*size)):
                rows.append(row)
                print(_line(row), flush=True)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


def darcy_case(scale: float, nodes: int) -> Case:
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(SEED), BATCH)
        sample = jax.jit(lambda key: darcy.sample(key, nodes, float(scale)))
        media, boundary, _, solution = map(np.stack, zip(*map(sample, keys), strict=True))
    strides = [s for s in (32, 16, 8, 4, 2, 1) if (nodes - 1) // s >= 2]
    return Case(
        "darcy",
        float(scale),
        (nodes, nodes),
        (media, boundary),
        tuple(field[..., None].astype(np.float32) for field in (media, boundary)),
        solution,
        darcy.solve,
        {(nodes - 1) // s + 1: functools.partial(coarse_darcy, stride=s) for s in strides},
        # One problem at a time fits into the cache: faster than `vmap`, see `solvers.elliptic`.
        lambda solve: lambda *given: jax.lax.map(lambda one: solve(*one), given),
    )


def coarse_darcy(medium: jax.Array, boundary: jax.Array, *, stride: int) -> jax.Array:
    """The solution on every `stride`-th node, with bilinear interpolation inside.

    A coarse node takes the geometric mean of the arithmetic and the harmonic mean about it, between
    which an effective medium lies: of those tried the one of least error.
    """
    nodes = len(medium)
    distance = np.abs(np.arange(nodes)[:, None] / stride - np.arange(0, nodes, stride) / stride)
    hats = np.maximum(1 - distance, 0)
    interpolation = jnp.asarray(hats, medium.dtype)
    weights = jnp.asarray((hats / hats.sum(axis=0)).T, medium.dtype)
    arithmetic = weights @ medium @ weights.T
    harmonic = 1 / (weights @ (1 / medium) @ weights.T)
    effective = jnp.sqrt(arithmetic * harmonic)
    solution = darcy.solve(effective, boundary[::stride, ::stride])
    fine = interpolation @ solution @ interpolation.T
    return boundary.at[1:-1, 1:-1].set(fine[1:-1, 1:-1])


def burgers_case(reynolds: float, frames: int, points: int) -> Case:
    """Problems of the data's distribution; all start from the first frame, at t = 1 / frames."""
    times = tuple(np.arange(1, frames + 1) / frames)
    later = tuple(np.arange(frames) / frames)
    thin = BURGERS_POINTS // (4 * points)

    def exact(initial):
        trajectory = burgers.simulate(initial, 1 / reynolds, later).frames
        return burgers.window(trajectory)[:, ::thin]

    def coarse(initial, *, stride):
        start = fourier.resample(initial, (BURGERS_POINTS // stride,))
        trajectory = burgers.simulate(start, 1 / reynolds, later).frames
        fine = jax.vmap(lambda u: fourier.resample(u, (4 * points,)))(trajectory)
        return burgers.window(fine)

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(SEED), BATCH)
        draw = jax.vmap(lambda key: burgers.sample_initial(key, BURGERS_POINTS))
        first = jax.vmap(lambda u: burgers.simulate(u, 1 / reynolds, times[:1]).frames[0])
        initial = first(draw(keys))
        solution = np.asarray(jax.vmap(exact)(initial))
    return Case(
        "burgers",
        float(reynolds),
        (frames, points),
        (np.asarray(initial),),
        (None, solution[..., None].astype(np.float32)),
        solution,
        exact,
        {BURGERS_POINTS // s: functools.partial(coarse, stride=s) for s in (64, 32, 16, 8, 4, 2)},
        jax.vmap,
    )


def measure(case: Case) -> list[dict]:
    """One row for single problems, one for batches."""
    predict = operator.load(case.name).solve
    predicted = np.asarray(predict(*case.inputs, case.scale))[..., 0]
    error = _error(predicted, case.solution)
    points, coarse_error = next(
        (points, found)
        for points, solve in case.coarse.items()
        if (found := _coarse_error(case, solve)) <= error
    )
    rows = []
    for count in (1, BATCH):
        inputs = [None if x is None else jnp.asarray(x[:count]) for x in case.inputs]
        single = tuple(jnp.asarray(x[:count].astype(np.float32)) for x in case.given)
        with jax.enable_x64(True):
            double = tuple(jnp.asarray(x[:count]) for x in case.given)
        # Loaded anew, so that nothing is compiled yet.
        fresh = operator.load(case.name).solve
        exact = jax.jit(case.batched(case.exact))
        coarse = jax.jit(case.batched(case.coarse[points]))
        timed = _timed(
            {
                "operator": (False, lambda fresh=fresh, x=inputs: fresh(*x, case.scale)),
                "exact": (True, lambda exact=exact, x=double: exact(*x)),
                "coarse": (False, lambda coarse=coarse, x=single: coarse(*x)),
            }
        )
        rows.append(
            {
                "equation": case.name,
                "scale": case.scale,
                "grid": case.grid,
                "problems": count,
                "operator_error": error,
                "coarse_points": points,
                "coarse_error": coarse_error,
                "first_call_seconds": {name: first for name, (first, _) in timed.items()},
                "problems_per_second": {name: count / each for name, (_, each) in timed.items()},
            }
        )
    return rows


def _timed(programs: dict[str, tuple[bool, Callable]]) -> dict[str, tuple[float, float]]:
    """Seconds of the first call, and the median of later ones; programs in double or single."""
    firsts, seconds = {}, {name: [] for name in programs}
    for turn in range(1 + ROUNDS):
        for name, (double, program) in programs.items():
            with jax.enable_x64(double):
                begin = time.perf_counter()
                jax.block_until_ready(program())
                elapsed = time.perf_counter() - begin
            if turn == 0:
                firsts[name] = elapsed
            else:
                seconds[name].append(elapsed)
    return {name: (firsts[name], statistics.median(seconds[name])) for name in programs}


def _coarse_error(case: Case, solve: Callable) -> float:
    given = tuple(jnp.asarray(x.astype(np.float32)) for x in case.given)
    return _error(np.asarray(jax.jit(case.batched(solve))(*given)), case.solution)


def _error(found: np.ndarray, solution: np.ndarray) -> float:
    """Mean relative L2 error; infinite for a solver that failed on some problem."""
    axes = tuple(range(1, solution.ndim))
    ratio = np.linalg.norm(found - solution, axis=axes) / np.linalg.norm(solution, axis=axes)
    return float(np.nan_to_num(ratio, nan=np.inf).mean())


_HEADER = (
    "| equation | scale | grid | problems | error % | operator: first s | per s | exact: first s "
    "| per s | operator / exact | coarse grid | error % | per s | operator / coarse |\n"
    + "|---" * 14
    + "|"
)


def _line(row: dict) -> str:
    rate, first = row["problems_per_second"], row["first_call_seconds"]
    cells = [
        row["equation"],
        f"{row['scale']:g}",
        " x ".join(map(str, row["grid"])),
        str(row["problems"]),
        f"{100 * row['operator_error']:.1f}",
        f"{first['operator']:.1f}",
        f"{rate['operator']:.0f}",
        f"{first['exact']:.1f}",
        f"{rate['exact']:.0f}",
        f"{rate['operator'] / rate['exact']:.2f}",
        str(row["coarse_points"]),
        f"{100 * row['coarse_error']:.1f}",
        f"{rate['coarse']:.0f}",
        f"{rate['operator'] / rate['coarse']:.3f}",
    ]
    return "| " + " | ".join(cells) + " |"
