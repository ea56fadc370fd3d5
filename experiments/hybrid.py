"""Solving to a tolerance: what a start and a preconditioner are worth in iterations and seconds.

    python -m experiments.hybrid --config=small --write
    python -m experiments.hybrid --run runs/darcy/small/fno+scale/seed-0 --config=small --write

Test problems of Darcy flow (scales 2 to 16) and of the Helmholtz equation (k = 1 to 50) are solved
one at a time in double precision by `sino_jax.krylov`, from zero, from the base solution and from
the predictions of trained operators, beside the direct solver of the data and multigrid. For Darcy
flow the operators on overlapping patches are preconditioners, too (`sino_jax.sweep`), for
every start; the same with the exact operator of the patches says what no training can beat. Seconds
are those of the process on the cores that it is bound to, without compilation; the fastest of
several. Errors are relative to the direct solution.
"""

import argparse
import functools
import itertools
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments import classical, figures, hybrid_figures, trained_run
from experiments.trained_run import TrainedRun
from sino_jax import data, equations, krylov, runtime
from sino_jax.loss import relative_l2
from sino_jax.sweep import sweep
from sino_jax.train import provenance
from sino_jax.types import Batch, Instance
from solvers import darcy, generate, helmholtz, multigrid, q1
from solvers.configs import argument
from solvers.configs import darcy as darcy_data
from solvers.configs import helmholtz as helmholtz_data

DATA = {"darcy": darcy_data, "helmholtz": helmholtz_data}
Start = Callable[[Instance], Batch | None]


class Variant(NamedTuple):
    """A start, a preconditioner by its name, and the options of `krylov.solve` that make it."""

    start: str
    preconditioner: str
    predict: Start
    options: Mapping[str, Any]


def variants(name: str, config: ConfigDict, runs: Sequence[TrainedRun]) -> list[Variant]:
    """All starts with every preconditioner of Darcy flow; of Helmholtz the base with every one."""
    runs = [run for run in runs if run.operator.equation.name == name]
    starts: dict[str, Start] = {
        "zero": lambda instance: instance.boundary,  # which is zero inside
        "base": lambda instance: None,
        **{run.row: functools.partial(_prediction, run) for run in runs},
    }
    if name == "darcy":
        inverses = {run.row: (run.operator.apply_fn, run.operator.params) for run in runs}
        if runs:
            equation = runs[0].operator.equation
            inverses["exact operator"] = (classical.elliptic_solver(equation), None)
        methods = {"Laplacian": {}} | {
            f"{config.patch}² patches, {row}": {
                "flexible": sweep(
                    *operator, equation=equation, patch=config.patch, overlap=config.overlap
                )
            }
            for row, operator in inverses.items()
        }
        pairs = itertools.product(methods, starts)
    else:
        methods = {f"shift {shift:g}": {"shift": shift} for shift in config.shifts}
        first, *others = methods
        pairs = [*((first, start) for start in starts), *((other, "base") for other in others)]
    return [Variant(start, method, starts[start], methods[method]) for method, start in pairs]


def _prediction(run: TrainedRun, instance: Instance) -> Batch:
    """The operator's own precision is single; the iteration goes on in double."""
    low = jax.tree.map(_halved, instance)
    return run.operator.solve(low.coefficient, low.boundary, low.scale)


def _halved(array: jax.Array) -> jax.Array:
    return array.astype(np.complex64 if jnp.iscomplexobj(array) else np.float32)


def problems(dataset: data.Dataset, count: int) -> list[Instance]:
    """Single problems in double precision, with the direct solver's solution."""
    batch = dataset.examples(np.arange(min(count, len(dataset))))
    direct = _direct(dataset.equation)
    found = []
    for i in range(len(batch.scale)):
        a, u = (jnp.asarray(field[i : i + 1], _double(field)) for field in (batch[0], batch[3]))
        scale = jnp.asarray(batch.scale[i : i + 1], float)
        boundary = u.at[:, 1:-1, 1:-1].set(0)
        solution = direct(a[0, ..., 0], boundary[0, ..., 0], scale[0])
        found.append(Instance(a, boundary, scale, solution[None, ..., None]))
    return found


def _double(field: np.ndarray) -> np.dtype:
    return np.result_type(field.dtype, np.float64)


def _direct(name: str) -> Callable:
    if name == "darcy":
        return jax.jit(lambda a, g, k: darcy.solve(a, g))
    return jax.jit(lambda a, g, k: helmholtz.solve(a, k, dirichlet=g))


@jax.jit
def _multigrid(a: jax.Array, g: jax.Array) -> jax.Array:
    operator = q1.Operator(a)
    load = -q1.apply(operator, g)
    return g + multigrid.solve(operator, jnp.pad(load[1:-1, 1:-1], 1))


def seconds(
    function: Callable[[Instance], Any], given: Sequence[Instance], repeats: int
) -> tuple[list[float], list[Any]]:
    """Processor time of every problem, and its result; a first call compiles and is not timed."""
    jax.block_until_ready(function(given[0]))
    times, results = [], []
    for problem in given:
        taken = []
        for _ in range(repeats):
            begin = time.process_time()
            result = jax.block_until_ready(function(problem))
            taken.append(time.process_time() - begin)
        times.append(min(taken))
        results.append(result)
    return times, results


def measure(
    dataset: data.Dataset, config: ConfigDict, runs: Sequence[TrainedRun]
) -> dict[str, Any]:
    """One scale: every variant at every tolerance, and the solvers of the data."""
    equation = equations.get(dataset.equation)
    given = problems(dataset, config.samples)
    direct = _direct(equation.name)
    reference = {"direct": lambda p: direct(p.coefficient[0, ..., 0], p.boundary[0, ..., 0],
                                            p.scale[0])}  # fmt: skip
    if equation.name == "darcy":
        reference["multigrid"] = lambda p: _multigrid(p.coefficient[0, ..., 0],
                                                      p.boundary[0, ..., 0])  # fmt: skip
    of_solvers = {
        name: float(np.mean(seconds(solve, given, config.repeats)[0]))
        for name, solve in reference.items()
    }
    rows = []
    for variant in variants(equation.name, config, runs):
        row = {"start": variant.start, "preconditioner": variant.preconditioner, "tolerances": {}}
        for tolerance in config.tolerances:
            options = dict(equation=equation, tolerance=tolerance, **variant.options)
            options["iterations"] = config.most_iterations

            def solve(p, options=options, variant=variant):
                problem = p._replace(solution=None)
                return krylov.solve(problem, start=variant.predict(p), **options)

            taken, found = seconds(solve, given, config.repeats)
            errors = [
                float(relative_l2(r.solution, p.solution)[0])
                for r, p in zip(found, given, strict=True)
            ]
            row["tolerances"][f"{tolerance:g}"] = {
                "iterations": [int(r.iterations[0]) for r in found],
                "seconds": taken,
                "reached": [bool(r.reached[0]) for r in found],
                "error": errors,
                "bound": [float(r.bound[0]) for r in found],
                "amplification": [float(r.amplification[0]) for r in found],
                "history": np.asarray(found[0].history[:, 0]).tolist(),
            }
        starts = [_start_of(p, variant, equation) for p in given]
        row["start_error"] = float(np.mean(starts))
        rows.append(row)
        shown = "; ".join(
            f"{tolerance}: {np.mean(entry['iterations']):.1f} iterations, "
            f"{np.mean(entry['seconds']):.3f} s"
            for tolerance, entry in row["tolerances"].items()
        )
        print(f"{equation.name} {dataset.scale:g}, {variant.start}, "
              f"{variant.preconditioner}: {shown}", flush=True)  # fmt: skip
    return {
        "equation": equation.name,
        "scale": dataset.scale,
        "grid": list(dataset.grid),
        "samples": len(given),
        "seconds": of_solvers,
        "rows": rows,
    }


def _start_of(p: Instance, variant: Variant, equation) -> float:
    """Error of a start, with the right boundary values."""
    shift = {name: value for name, value in variant.options.items() if name == "shift"}
    first = krylov.first_iterate(p, equation=equation, start=variant.predict(p), **shift)
    return float(relative_l2(first, p.solution)[0])


def markdown(results: Sequence[Mapping[str, Any]]) -> str:
    """One table: iterations (mean, most) and seconds to each tolerance."""
    tolerances = list(results[0]["rows"][0]["tolerances"])
    columns = ["equation", "scale", "nodes", "start", "its error (%)", "preconditioner"]
    columns += [f"to {t}: iterations (most), s" for t in tolerances]
    columns += ["worst error at each", "direct, s", "multigrid, s"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for result in results:
        for row in result["rows"]:
            cells = [result["equation"], f"{result['scale']:g}", f"{result['grid'][0]}²"]
            cells += [row["start"], f"{100 * row['start_error']:.1f}", row["preconditioner"]]
            for entry in row["tolerances"].values():
                missed = len(entry["reached"]) - sum(entry["reached"])
                cells.append(
                    f"{np.mean(entry['iterations']):.1f} ({max(entry['iterations'])}), "
                    f"{np.mean(entry['seconds']):.3f}" + (f", {missed} missed" if missed else "")
                )
            worst = [max(entry["error"]) for entry in row["tolerances"].values()]
            cells.append(", ".join(f"{error:.0e}" for error in worst))
            cells += [f"{result['seconds'][name]:.3f}" if name in result["seconds"] else "–"
                      for name in ("direct", "multigrid")]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def compare(
    config: ConfigDict, runs: Sequence[TrainedRun], *, data_root: pathlib.Path, out: pathlib.Path
) -> list[dict[str, Any]]:
    """Measures all scales; table, figure and numbers go to the directory `out`. Needs float64."""
    results = []
    for name, configs in DATA.items():
        scales = config[f"{name}_scales"] if config[name] else ()
        sets = [f"test-{scale:g}" for scale in scales]
        if sets:
            settings = configs.get_config(config[name])
            paths = generate.generate_all(settings, data_root, only=sets, log=print)
            results += [measure(data.load(paths[each]), config, runs) for each in sets]
    trained_run.write_json(
        out / "results.json", {"results": results, "provenance": provenance.describe()}
    )
    text = markdown(results)
    (out / "table.md").write_text(text, encoding="utf-8")
    drawn = hybrid_figures.residual_by_seconds(results, out / "residuals.png")
    print(f"\n{text}\n{out / 'table.md'}\nfigure: {drawn}")
    return results


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=pathlib.Path, nargs="*", default=[], help="trained operators")
    parser.add_argument("--config", default="small", help=argument.HELP)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep the results in the repository")
    arguments = parser.parse_args(argv)
    figures.require()
    jax.config.update("jax_enable_x64", True)
    config = trained_run.load_config(arguments.config, "hybrid")
    runs = [trained_run.open_run(path) for path in arguments.run]
    kept = arguments.results if arguments.write else pathlib.Path("runs")
    compare(config, runs, data_root=arguments.data, out=kept / "hybrid" / config.preset)


if __name__ == "__main__":
    runtime.prepare()
    with trained_run.errors_in_one_line():
        main()
