"""Test-time domain decomposition (paper, table 'dd'): error by iteration on a large domain.

    python -m experiments.decomposition --run=runs/darcy/small/fno+scale/seed-0
    python -m experiments.decomposition --run A B --config=small,samples=16 --write
    python -m experiments.decomposition --run=runs/helmholtz/small/sino-u+sub/seed-0 \
        --config=small,size_ratio=2

A Darcy model trained at scale 4 solves problems of scale 16 on four times its grid: at once
(iteration 0), and then on overlapping patches; a Helmholtz model trained up to k = 25 problems of
k = 50. Compared are the paper's layout, other overlaps, a start from zeros, several levels, patches
of the size of the training grid, and the numerical solver in place of the model on all patches:
what the iteration makes of the same start if nothing is wrong on a patch. Results and figures go
below the run's directory, with --write to ``results/decomposition/<preset>/``.
"""

import functools
import importlib
import math
import pathlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments import classical, decomposition_figures, figures, paper, tables, trained_run
from experiments.configs import decomposition as configs
from experiments.trained_run import TrainedRun
from sino_jax import data, decomposition, partition, runtime
from sino_jax.data import Dataset
from sino_jax.equations import Equation
from sino_jax.loss import relative_l2
from sino_jax.operator import POINTS_PER_CALL
from sino_jax.problem import predict
from sino_jax.train import provenance
from sino_jax.types import ApplyFn, Instance
from solvers import generate

EQUATIONS = ("darcy", "helmholtz")
PAPER_LAYOUT = "paper layout"


class Layout(NamedTuple):
    """Patches on each axis, points shared by neighbours, points of the blending ramp."""

    patches: int
    overlap: int
    ramp: int


class Variant(NamedTuple):
    """One way to refine: a start, "coarse" or "zeros", and the layout of every iteration.

    With a memory (`sino_jax.decomposition.refine`) all layouts must be the same. If it is exact,
    the patches are solved by the numerical solver.
    """

    start: str
    layouts: tuple[Layout, ...]
    memory: int = 0
    exact: bool = False


def large_data(equation: str, text: str, ratio: int) -> tuple[ConfigDict, str]:
    """Config and name of a data set on `ratio` times the largest training domain, at its spacing.

    The data's own test set of that scale is taken if there is one.
    """
    config = importlib.import_module(f"solvers.configs.{equation}").get_config(text)
    scale, points = config.train_scales[-1], dict(config.points)
    large = ratio * scale
    if large not in config.test_scales:
        config = ConfigDict(config.to_dict())
        config.name += "-large"
        config.points = ((large, ratio * (points[scale] - 1) + 1),)
        config.train_scales, config.test_scales = (), (large,)
    return config, f"test-{large}"


def variants(config: ConfigDict, training_grid: int, points: int) -> dict[str, Variant]:
    """All variants by name."""
    count = config.iterations
    usual = Layout(config.patches, config.overlap, config.ramp)
    result = {
        PAPER_LAYOUT: Variant("coarse", (usual,) * count),
        "from zeros": Variant("zeros", (usual,) * count),
    }
    *coarse, finest = config.levels
    first = [n for n in coarse for _ in range(config.level_iterations)]
    numbers = [*first, *[finest] * max(0, count - len(first))]
    name = "levels " + ", ".join(map(str, config.levels))
    result[name] = Variant("coarse", tuple(usual._replace(patches=n) for n in numbers))
    for overlap in config.overlaps:
        layout = usual._replace(overlap=overlap, ramp=min(config.ramp, overlap - 1))
        result[f"overlap {overlap}"] = Variant("coarse", (layout,) * count)
    shared = training_grid // 2
    (number,) = partition.counts((points,), (training_grid,), (shared,))
    layout = Layout(number, shared, min(config.ramp, shared - 1))
    result["training-size patches"] = Variant("coarse", (layout,) * count)
    result["training-size patches, accelerated"] = Variant(
        "coarse", (layout,) * count, config.memory
    )
    for name in (PAPER_LAYOUT, "training-size patches"):
        result[f"{name}, solver"] = result[name]._replace(exact=True)
    return result


def estimates(
    apply_fn: ApplyFn, params: Any, instance: Instance, variant: Variant, *, equation
) -> Iterator[tuple[jax.Array, float]]:
    """The start and the estimate after each iteration, each with the seconds that it took."""
    begin = time.perf_counter()
    if variant.start == "coarse":
        estimate = predict(apply_fn, params, instance, equation)
    else:
        estimate = jnp.zeros_like(instance.boundary)
    yield _timed(estimate, begin)
    points = math.prod(instance.boundary.shape[1:-1])
    on_patches = _solver(equation) if variant.exact else apply_fn
    first = estimate
    for i, layout in enumerate(variant.layouts, start=1):
        begin = time.perf_counter()
        # An accelerated iteration needs the former ones: it begins anew, with one more of them.
        iterations, start = (i, first) if variant.memory else (1, estimate)
        estimate = decomposition.refine(
            on_patches,
            params,
            instance.coefficient,
            instance.boundary,
            instance.scale,
            equation=equation,
            patches=layout.patches,
            overlap=layout.overlap,
            ramp=layout.ramp,
            iterations=iterations,
            start=start,
            memory=variant.memory,
            patches_per_call=max(1, POINTS_PER_CALL * layout.patches**2 // points),
        )
        yield _timed(estimate, begin, iterations)


@functools.cache
def _solver(equation: Equation) -> ApplyFn:
    """The numerical solver of the equation, in double precision."""
    compiled = jax.jit(classical.elliptic_solver(equation))

    def apply_fn(params, inputs, scale):
        with jax.enable_x64(True):
            return compiled(params, inputs, scale)

    return apply_fn


def _timed(estimate: jax.Array, begin: float, iterations: int = 1) -> tuple[jax.Array, float]:
    estimate.block_until_ready()
    return estimate, (time.perf_counter() - begin) / iterations


def problems(dataset: Dataset, ids: Sequence[int]) -> Instance:
    """Problems with their solutions; boundary data is the solution's trace."""
    instance = jax.tree.map(jnp.asarray, dataset.examples(ids))
    return instance._replace(boundary=instance.solution)


def measure(run: TrainedRun, config: ConfigDict, dataset: Dataset) -> dict[str, Any]:
    """Mean relative errors and seconds, by variant and iteration."""
    trained = run.operator
    apply_fn = jax.jit(trained.apply_fn)
    count, points = min(config.samples, len(dataset)), dataset.grid[0]
    at_once = min(count, config.samples_at_once)
    # Batches of one size: one compiled program, and times that can be compared.
    batches = [range(i, i + at_once) for i in range(0, count - at_once + 1, at_once)]
    measured = {}
    chosen = variants(config, max(grid[0] for grid in trained.meta["grids"]), points)
    for name, variant in chosen.items():
        same = [other for other in measured if chosen[other] == variant]
        if same:  # the sweep contains the paper's overlap
            measured[name] = measured[same[0]]
            continue
        errors, seconds = [], []
        for ids in batches:
            instance = problems(dataset, ids)
            solved = list(
                estimates(apply_fn, trained.params, instance, variant, equation=trained.equation)
            )
            errors.append([relative_l2(field, instance.solution) for field, _ in solved])
            seconds.append([taken for _, taken in solved])
        by_iteration = np.concatenate(np.asarray(errors, float), axis=-1).mean(axis=-1)
        last = variant.layouts[-1]
        size = partition.cover((points,), (last.patches,), last.overlap).size[0]
        measured[name] = {
            "start": variant.start,
            "patches": [layout.patches for layout in variant.layouts],
            "overlap": last.overlap,
            "ramp": last.ramp,
            "patch_points": size,
            "patch_scale": float(
                trained.equation.rescale(
                    dataset.scale, trained.equation.ratio((size,) * 2, dataset.grid)
                )
            ),
            "errors": by_iteration.tolist(),
            # Programs are compiled in the first batch; the fastest batch waited for nobody.
            "seconds_per_problem": (np.min(seconds, axis=0) / at_once).tolist(),
            "compilation_included": len(batches) == 1,
        }
        shown = ", ".join(f"{100 * error:.2f}" for error in by_iteration)
        print(f"{run.row}, {name}: {shown} %", flush=True)
    return {
        "experiment": "decomposition",
        "preset": config.preset,
        "equation": trained.equation.name,
        "row": run.row,
        "seed": run.config.seed,
        "scale": dataset.scale,
        "grid": list(dataset.grid),
        "samples": at_once * len(batches),
        "trained_scale_range": list(trained.scale_range),
        "variants": measured,
        "provenance": provenance.describe(),
    }


def markdown(result: dict[str, Any]) -> str:
    """The paper's table with ours beside it, and all variants."""
    ours = result["variants"][PAPER_LAYOUT]["errors"]
    equation = result.get("equation", "darcy")  # older results are all of Darcy flow
    published = paper.DECOMPOSITION
    of_paper = zip(*published.rows.values(), strict=True) if equation == "darcy" else ()
    reference = dict(zip(published.columns, of_paper, strict=False))
    grid = " x ".join(map(str, result["grid"]))
    lines = [
        f"## {equation}, {result['row']}, seed {result['seed']}: scale "
        f"{result['scale']:g} on {grid} points, {result['samples']} problems",
        "",
        "| iteration | error (%) | improvement (%) | paper: error (%) | paper: improvement (%) |",
        "|---|---|---|---|---|",
    ]
    for i, error in enumerate(ours):
        theirs = [f"{value:.2f}" for value in reference.get(i, ())] or ["–", "–"]
        gain = 100 * (1 - error / ours[0])
        lines.append(f"| {i} | {100 * error:.2f} | {gain:.2f} | {theirs[0]} | {theirs[1]} |")
    last = len(ours) - 1
    lines += [
        "",
        f"| variant | patch (points) | its scale | overlap | error at 1 (%) | error at {last} (%) "
        "| s per problem and iteration |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in result["variants"].items():
        seconds = float(np.median(entry["seconds_per_problem"][1:]))
        note = " (compilation included)" if entry["compilation_included"] else ""
        lines.append(
            f"| {name} | {entry['patch_points']} | {entry['patch_scale']:.2f} | {entry['overlap']} "
            f"| {_percent(entry['errors'][1])} | {_percent(entry['errors'][-1])} "
            f"| {seconds:.3f}{note} |"
        )
    seconds = result["variants"][PAPER_LAYOUT]["seconds_per_problem"][0]
    lines += ["", f"The global prediction takes {seconds:.3f} s per problem.", ""]
    return "\n".join(lines)


def _percent(error: float) -> str:
    return f"{100 * error:.2f}" if error < 100 else f"{100 * error:.1e}"


def refine_run(
    run: TrainedRun, config: ConfigDict, *, data_root: pathlib.Path, out: pathlib.Path
) -> dict[str, Any]:
    """Measures one run and writes its JSON file and figures below `out`."""
    equation = run.operator.equation.name
    settings, name = large_data(equation, run.config.data, config.size_ratio)
    directory = generate.generate_all(settings, data_root, only=[name], log=print)[name]
    dataset = data.load(directory)
    result = measure(run, config, dataset)
    trained_run.write_json(out / f"{run.name}.json", result)

    instance = problems(dataset, [0])
    usual = variants(config, max(grid[0] for grid in run.operator.meta["grids"]), dataset.grid[0])
    fields = [
        field
        for field, _ in estimates(
            jax.jit(run.operator.apply_fn),
            run.operator.params,
            instance,
            usual[PAPER_LAYOUT],
            equation=run.operator.equation,
        )
    ]
    layout = partition.cover(dataset.grid, (config.patches,) * 2, config.overlap)
    drawn = [
        decomposition_figures.error_fields(
            instance, fields, layout, out / f"{run.name}-fields.png", title=run.row
        ),
        decomposition_figures.error_by_iteration(result, out / f"{run.name}-iterations.png"),
    ]
    print("figures: " + ", ".join(map(str, drawn)))
    return result


def main(argv: Sequence[str] | None = None) -> None:
    parser = trained_run.argument_parser(__doc__)
    arguments = parser.parse_args(argv)
    figures.require()
    places = []
    for workdir in arguments.run:
        run = trained_run.open_run(workdir)
        if (equation := run.operator.equation.name) not in EQUATIONS:
            sys.exit(f"error: --run must be a run of {' or '.join(EQUATIONS)}, got {equation}")
        text = arguments.config or trained_run.preset_of(run, configs.PRESETS)
        config = trained_run.load_config(text, "decomposition")
        kept = arguments.results / "decomposition" / config.preset
        out = kept if arguments.write else workdir / "decomposition"
        refine_run(run, config, data_root=arguments.data, out=out)
        places.append(out)
    for out in dict.fromkeys(places):
        # Results of earlier calls stand in the table, too.
        results = [tables.read(path) for path in sorted(out.glob("*/seed-*.json"))]
        text = "\n".join(map(markdown, results))
        (out / "table.md").write_text(text, encoding="utf-8")
        print(f"\n{text}\n{out / 'table.md'}")


if __name__ == "__main__":
    runtime.prepare()
    with trained_run.errors_in_one_line():
        main()
