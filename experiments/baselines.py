"""Rows of the tables that need no training: where does a learned operator pay?

    python -m experiments.baselines burgers
    python -m experiments.baselines navier_stokes --preset=small --samples=2
    python -m experiments.baselines navier_stokes --without_solver

Errors on the test data of a preset, with the time that one problem takes on this machine:

    the solution at the training parameter   all that a perfect model could do that ignores the
                                             parameter; the paper's models that do stand beside it
    persistence, extrapolation               the last frame, or a polynomial through the last ones
    base solutions                           boundary values continued by an easier equation
    the solver on a coarser grid             of flows it knows the whole state, unlike a model

Results are kept as those of trained rows are (runs/<experiment>/<preset>/<row>/seed-0/), so that
``python -m experiments.tables`` shows them below the others, as untrained; with --write below
``results`` instead, as those that a campaign keeps. The solver takes minutes to hours for flows;
--without_solver leaves it out.
"""

import argparse
import functools
import importlib
import json
import math
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments import classical, naming, outcome, paper, simulated, tables
from sino_jax import data, equations, problem, runtime
from sino_jax.data import Dataset
from sino_jax.equations import Equation
from sino_jax.train import evaluate, provenance
from solvers import generate

# Rows of the paper's tables whose models are not told the parameter.
IGNORANT = {
    "burgers": (paper.BURGERS, ("FNO", "UNO", "CNO")),
    "helmholtz": (paper.HELMHOLTZ, ("FNO", "UNO")),
    "navier_stokes": (paper.NAVIER_STOKES, ("FNO", "UNet", "UNO")),
}
POINTS_AT_ONCE = 2**19
TIMED_CALLS = 5


class Row(NamedTuple):
    """Errors of one method: for each scale its metrics, and the seconds that a problem takes."""

    name: str
    metrics: dict[float, dict[str, float]]
    seconds: dict[float, float]


def on_inputs(
    equation: Equation, trained: Sequence[float], extent: Sequence[float]
) -> dict[str, Callable]:
    """Methods that see what a model sees, as ``apply_fn``; `extent` is that of the data's grids."""
    if equation.name == "darcy":
        solvers = {
            f"Solver, every {n} nodes": classical.elliptic_solver(equation, every=n)
            for n in (2, 4, 8)
        }
        return {
            "Coons interpolation": classical.base_solution(equation, "coons"),
            "Harmonic solution": classical.base_solution(equation, "harmonic"),
            **solvers,
        }
    if equation.name == "helmholtz":
        at_trained = classical.elliptic_solver(equation, wave_numbers=trained)
        return {
            "Coons interpolation": classical.base_solution(equation, "coons"),
            "Solution for the mean coefficient": classical.base_solution(equation, "helmholtz"),
            "Solution at the nearest trained k": at_trained,
            "Solver, every 2 nodes": classical.elliptic_solver(equation, every=2),
            "Solver, every 4 nodes": classical.elliptic_solver(equation, every=4),
        }
    if equation.name == "burgers":
        return {
            "First frame": classical.first_frame(equation),
            "Heat equation": classical.heat_solution(equation, extent=extent),
        }
    return {
        "Persistence" if order == 0 else f"Extrapolation of order {order}": (
            classical.extrapolation(equation, order)
        )
        for order in range(4)
    }


def by_simulation(equation: str, trained: float) -> dict[str, tuple[float | None, int]]:
    """Solves of flows: the parameter (None: the right one), and by how much the grid is coarser."""
    coarser = {"burgers": (8, 16, 32)}.get(equation, (2, 4))
    return {f"Solution at Re = {trained:g}": (trained, 1)} | {
        f"Solver, 1/{factor} of the points": (None, factor) for factor in coarser
    }


def evaluate_on_inputs(
    apply_fn, equation: Equation, dataset: Dataset, *, rollout_frames: int, samples: int
) -> tuple[dict[str, float], float]:
    """Mean metrics of an ``apply_fn`` over a data set, and the seconds of one prediction."""
    metrics = _means(evaluate.error_metrics(apply_fn, equation), dataset, samples)
    if rollout_frames > 1:
        long = dataset.with_window(horizon=rollout_frames, stride=rollout_frames)
        metrics_fn = evaluate.rollout_metrics(apply_fn, equation, rollout_frames)
        metrics = {**_means(metrics_fn, long, samples), **evaluate.of_first_step(metrics)}
    one = jax.tree.map(jax.numpy.asarray, dataset.examples([0]))
    inputs = problem.inputs(equation, one)
    seconds = median_seconds(jax.jit(functools.partial(apply_fn, None)), inputs, one.scale)
    return metrics, seconds


def _means(metrics_fn: evaluate.MetricsFn, dataset: Dataset, samples: int) -> dict[str, float]:
    """Over the examples of the first samples."""
    run = jax.jit(functools.partial(metrics_fn, None))
    count = _examples_of(samples, dataset)
    size = max(1, min(count, POINTS_AT_ONCE // math.prod(dataset.grid)))
    values: dict[str, list[np.ndarray]] = {}
    for start in range(0, count, size):
        batch = dataset.examples(np.arange(start, min(start + size, count)))
        for name, errors in run(batch).items():
            values.setdefault(name, []).append(np.asarray(errors))
    return {name: float(np.concatenate(parts).mean()) for name, parts in values.items()}


def _examples_of(samples: int, dataset: Dataset) -> int:
    """How many examples the first samples make: each the windows of a trajectory, or itself."""
    return samples * (len(dataset) // dataset.meta["samples"])


def evaluate_simulations(
    settings: Mapping[str, Any],
    dataset: Dataset,
    methods: Mapping[str, tuple[float | None, int]],
    *,
    rollout_frames: int,
    samples: int,
) -> Iterator[tuple[str, dict[str, float], float]]:
    """Name, mean metrics and seconds of each solve, from the states that the data came from."""
    single = functools.partial(_simulations, settings, methods=methods, samples=samples)
    first = single(dataset, rollout_frames=1)
    if rollout_frames == 1:
        yield from first
        return
    long = single(
        dataset.with_window(horizon=rollout_frames, stride=rollout_frames),
        rollout_frames=rollout_frames,
    )
    for (name, of_one, seconds), (_, of_rollout, _) in zip(first, long, strict=True):
        yield name, {**of_rollout, **evaluate.of_first_step(of_one)}, seconds


def _simulations(
    settings: Mapping[str, Any],
    dataset: Dataset,
    *,
    methods: Mapping[str, tuple[float | None, int]],
    rollout_frames: int,
    samples: int,
) -> Iterator[tuple[str, dict[str, float], float]]:
    equation = equations.get(settings["equation"])
    scale, points = float(settings["scale"]), settings["points"]
    target = dataset.examples(np.arange(_examples_of(samples, dataset))).solution
    with jax.enable_x64(True):
        programs = _programs(json.dumps({**settings, **_NOT_COMPILED}), rollout_frames)
        keys = generate.sample_keys(settings, range(samples))
        starts = np.concatenate([programs.starts(key, scale) for key in keys])
        for name, (other, factor) in methods.items():
            at = np.float64(scale if other is None else other)
            frames = [programs.advance(s, at, points // factor) for s in starts]
            prediction = np.stack(frames).astype(target.dtype)
            errors = simulated.metrics(
                prediction, target, equation=equation, predictions=programs.predictions
            )
            run = functools.partial(programs.advance, points=points // factor)
            seconds = median_seconds(run, starts[0], at)
            yield name, {k: float(v.mean()) for k, v in errors.items()}, seconds


# Does not change the compiled programs, which several data sets may then share.
_NOT_COMPILED = {"scale": 0, "split": "", "samples": 0, "seed": 0, "limits": None, "block": 0}


@functools.lru_cache(maxsize=16)
def _programs(settings: str, rollout_frames: int) -> simulated.Flow:
    flow = simulated.flow(json.loads(settings), rollout_frames=rollout_frames)
    return flow._replace(
        starts=jax.jit(flow.starts), advance=jax.jit(flow.advance, static_argnames="points")
    )


def median_seconds(run: Callable, *arguments) -> float:
    """Of a call that is compiled already."""
    jax.block_until_ready(run(*arguments))
    times = []
    for _ in range(TIMED_CALLS):
        start = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rows(
    experiment: str,
    preset: str,
    *,
    data_directory: pathlib.Path,
    samples: int = 0,
    solver: bool = True,
) -> Iterator[tuple[Row, Any]]:
    """The untrained rows of an experiment, each with the experiment's config."""
    module = importlib.import_module(f"experiments.{experiment}")
    config = importlib.import_module(f"experiments.configs.{experiment}").get_config(preset)
    data_config = module.EXPERIMENT.data_config(config.data)
    settings = {k: v for k, v in generate.data_sets(data_config).items() if v["split"] == "test"}
    paths = generate.generate_all(data_config, data_directory, only=tuple(settings), log=print)
    sets = {name: data.load(path) for name, path in paths.items()}
    equation, trained = equations.get(experiment), data_config.train_scales
    samples = min(samples or data_config.test_samples, data_config.test_samples)
    frames = config.get("rollout_frames", 1)

    extent = next(iter(sets.values())).meta["grid"]["extent"]
    for name, apply_fn in on_inputs(equation, trained, extent).items():
        row = Row(name, {}, {})
        for dataset in sets.values():
            with jax.enable_x64(True):  # for the solver; the data and what sees it stay single
                row.metrics[dataset.scale], row.seconds[dataset.scale] = evaluate_on_inputs(
                    apply_fn, equation, dataset, rollout_frames=frames, samples=samples
                )
        yield row, config
    if not solver or tables.PAPER[experiment][0].table.parameter != "Re":
        return
    collected: dict[str, Row] = {}
    methods = by_simulation(experiment, trained[0])
    for key, entry in settings.items():
        found = evaluate_simulations(
            entry, sets[key], methods, rollout_frames=frames, samples=samples
        )
        for name, metrics, seconds in found:
            row = collected.setdefault(name, Row(name, {}, {}))
            row.metrics[float(entry["scale"])] = metrics
            row.seconds[float(entry["scale"])] = seconds
    yield from ((row, config) for row in collected.values())


def result(row: Row, config, *, trained: Sequence[float], samples: int) -> dict[str, Any]:
    """A row in the form of `experiments.runner`'s results."""
    return {
        "experiment": config.equation,
        "preset": config.preset,
        "row": row.name,
        "seed": 0,
        "untrained": True,
        "trained_scales": list(trained),
        "trained_range": [min(trained), max(trained)],
        "errors": {f"test-{scale:g}": metrics for scale, metrics in row.metrics.items()},
        "seconds_per_problem": {f"{scale:g}": s for scale, s in row.seconds.items()},
        "config": {"data": config.data, "preset": config.preset, "samples": samples},
        "provenance": provenance.describe(),
    }


def report(found: Sequence[Row], experiment: str) -> str:
    """Errors in percent, by the measure of the paper's table, and milliseconds a problem."""
    reference = tables.PAPER[experiment][0]
    scales = sorted({scale for row in found for scale in row.metrics})
    metric = reference.metric
    head = " | ".join(f"{reference.table.parameter} {scale:g}" for scale in scales)
    lines = [
        f"{tables.METRICS[reference.metric]} in percent, and (milliseconds a problem)",
        f"| method | {head} |",
        "|---|" + "---|" * len(scales),
    ]
    for row in found:
        cells = [f"{100 * row.metrics[s][metric]:.2f} ({1e3 * row.seconds[s]:.2g})" for s in scales]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    table, names = IGNORANT.get(experiment, (None, ()))
    for name in names:
        published = dict(zip(table.columns, table.rows[name], strict=True))
        cells = [f"{published[s]:.2f}" if s in published else "–" for s in scales]
        lines.append(f"| *{name}, paper: does not know {table.parameter}* | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    runtime.prepare()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=tables.PAPER)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--samples", type=int, default=0, help="of each test set; 0: all")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep the rows below --results")
    parser.add_argument(
        "--without_solver", action="store_true", help="no numerical solves of flows"
    )
    arguments = parser.parse_args()
    name, preset = arguments.experiment, arguments.preset
    found = []
    for row, config in rows(
        name,
        preset,
        data_directory=arguments.data,
        samples=arguments.samples,
        solver=not arguments.without_solver,
    ):
        found.append(row)
        trained = tables.PAPER[name][0].table.trained
        content = result(row, config, trained=trained, samples=arguments.samples)
        place = pathlib.Path(name, preset, naming.file_name(row.name))
        kept, run = arguments.results / place / "seed-0.json", arguments.runs / place / "seed-0"
        tables.write(content, kept if arguments.write else run / outcome.RESULT)
    print(report(found, name))


if __name__ == "__main__":
    main()
