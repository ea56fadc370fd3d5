"""The paper's theorem and the error estimate, measured on trained Darcy models.

    python -m experiments.diagnostics --run runs/darcy/small/fno/seed-0 \\
        runs/darcy/small/fno+scale/seed-0 --write

For every run the terms of `sino_jax.diagnostics.theorem` are measured at each of its checkpoints
(train with ``--keep_every=100`` to have many), on two families of media:

    smooth      random media with |∇a| = s exactly, as the theorem wants them, s = M and s = δ
    two-phase   the test sets. A jump between neighbouring nodes has |∇a| in proportion to the
                number of points, so that scales 16 and 2 are M and δ = M/8 here, too; but media
                with jumps are not in the theorem

and the residual-based error estimate is compared with true errors, and calibrated. With
--keep_calibration the run's directory gets the calibration that `Operator.estimate_error` uses.
"""

import functools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments import diagnostics_figures, figures, trained_run
from experiments.configs import diagnostics as configs
from experiments.trained_run import TrainedRun
from sino_jax import data, operator, runtime
from sino_jax.diagnostics import error_estimate, theorem
from sino_jax.loss import relative_l2
from sino_jax.operator import Operator
from sino_jax.operator import calibration as calibration_file
from sino_jax.problem import predict
from sino_jax.train import provenance
from sino_jax.types import Instance
from solvers import darcy, generate, random_fields
from solvers.configs import darcy as data_configs

MIDDLE, SPREAD = 7.0, 5.0  # smooth media stay within the two phases' 2 ... 12
# Length of the random field times the steepness: media then use most of their range.
LENGTH_TIMES_STEEPNESS = 20.0
TERMS = ("near_constant", "boundary", "self_consistency", "out_of_distribution")


class Family(NamedTuple):
    """Problems of D_M and of D_δ, and the points of a sub-domain of side δ/M."""

    varied: Instance
    near_constant: Instance
    size: int


def steep_medium(key: jax.Array, points: int, steepness: float) -> jax.Array:
    """A smooth random medium within `MIDDLE` ± `SPREAD` with |∇a| ≤ steepness, mostly attained."""
    spectrum = random_fields.stretched_exponential(LENGTH_TIMES_STEEPNESS / steepness, 1.0)
    field = random_fields.sample(key, (points, points), spectrum, modes=max(8, points // 4))
    slopes = [jnp.diff(field, axis=axis) * (points - 1) for axis in (0, 1)]
    steepest = jnp.sqrt(jnp.max(slopes[0][:, :-1] ** 2 + slopes[1][:-1] ** 2))
    factor = jnp.minimum(steepness / steepest, SPREAD / jnp.max(jnp.abs(field)))
    return MIDDLE + factor * field


@functools.lru_cache(maxsize=2)  # the same for all runs that are compared
def smooth_problems(
    seed: int, count: int, *, points: int, steepness: float, scale: float
) -> Instance:
    """Problems of D_s with their solutions; boundary values are at most one."""

    def one(key):
        medium_key, boundary_key = jax.random.split(key)
        coefficient = steep_medium(medium_key, points, steepness)
        ring = darcy.sample_boundary(boundary_key, (points, points))
        return coefficient, darcy.solve(coefficient, ring / jnp.max(jnp.abs(ring)))

    with jax.enable_x64(True):
        solve = jax.jit(one)
        keys = jax.random.split(jax.random.key(seed), count)
        solved = [jax.device_get(solve(key)) for key in keys]
    coefficient, solution = (
        jnp.asarray(np.stack(fields)[..., None], jnp.float32)
        for fields in zip(*solved, strict=True)
    )
    return Instance(coefficient, None, jnp.full(count, scale, jnp.float32), solution)


def bounded_problems(directory: pathlib.Path, count: int) -> Instance:
    """Problems of a test set, with boundary values of at most one."""
    dataset = data.load(directory)
    given = dataset.examples(range(min(count, len(dataset))))
    # By the maximum principle the solution is largest on the boundary.
    largest = np.abs(given.solution).max(axis=(1, 2, 3), keepdims=True)
    return jax.tree.map(jnp.asarray, given._replace(solution=given.solution / largest))


def families(
    run: TrainedRun, config: ConfigDict, directories: dict[str, pathlib.Path]
) -> dict[str, Family]:
    """The smooth family, and the two-phase one if its scales are among the test sets."""
    data_config = data_configs.get_config(run.config.data)
    scale = data_config.train_scales[-1]
    cells = config.size_ratio * (dict(data_config.points)[scale] - 1)
    large, small = config.size_ratio * scale, config.size_ratio * scale / config.ratio
    if cells % config.ratio:
        raise ValueError(f"ratio must divide the {cells} cells of D_M, got {config.ratio}")
    size = cells // config.ratio + 1
    smooth = Family(
        smooth_problems(
            config.seed, config.samples, points=cells + 1, steepness=config.steepness, scale=large
        ),
        smooth_problems(
            config.seed + 1,
            config.samples,
            points=size,
            steepness=config.steepness / config.ratio,
            scale=small,
        ),
        size,
    )
    names = [f"test-{value:g}" for value in (large, small)]
    if not set(names) <= set(directories):
        return {"smooth": smooth}
    varied, near_constant = (bounded_problems(directories[name], config.samples) for name in names)
    return {"smooth": smooth, "two-phase": Family(varied, near_constant, size)}


def measure_terms(
    trained: Operator, family: Family, config: ConfigDict, programs: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """Supremum and mean over the samples of every term."""
    varied = [
        programs["varied"](trained.params, part, key) for part, key in _parts(family.varied, config)
    ]
    near_constant = [
        programs["error"](trained.params, part) for part, _ in _parts(family.near_constant, config)
    ]
    values = {
        "near_constant": near_constant,
        "boundary": [terms.boundary for terms in varied],
        "self_consistency": [terms.self_consistency for terms in varied],
        "out_of_distribution": [terms.error for terms in varied],
    }
    joined = {name: np.concatenate(parts) for name, parts in values.items()}
    return {
        "supremum": {name: float(value.max()) for name, value in joined.items()},
        "mean": {name: float(value.mean()) for name, value in joined.items()},
    }


def _parts(instance: Instance, config: ConfigDict) -> Iterator[tuple[Instance, jax.Array]]:
    """Parts of bounded size, each with a key of its own."""
    for start in range(0, len(instance.scale), config.samples_at_once):
        part = jax.tree.map(lambda x, s=start: x[s : s + config.samples_at_once], instance)
        yield part, jax.random.fold_in(jax.random.key(config.seed), start)


def terms_over_training(
    run: TrainedRun, config: ConfigDict, chosen: dict[str, Family]
) -> dict[str, list[dict[str, Any]]]:
    """The terms at every checkpoint that the run has kept, by family."""
    # All checkpoints share their programs: only the weights differ.
    apply_fn, equation = run.operator.apply_fn, run.operator.equation
    compiled = {
        name: {
            "error": jax.jit(functools.partial(theorem.error, apply_fn, equation=equation)),
            "varied": jax.jit(
                functools.partial(_varied_terms, apply_fn, equation, family.size, config.draws)
            ),
        }
        for name, family in chosen.items()
    }
    curves: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    for step in trained_run.checkpoints(run.workdir):
        trained = operator.load(run.workdir, step=step)
        for name, family in chosen.items():
            entry = measure_terms(trained, family, config, compiled[name])
            curves[name].append({"step": step, **entry})
        worst = curves["smooth"][-1]["supremum"]
        shown = ", ".join(f"{term} {worst[term]:.3f}" for term in TERMS)
        print(f"{run.row}, step {step}: {shown}", flush=True)
    return curves


def _varied_terms(apply_fn, equation, size, draws, params, instance, key):
    return theorem.varied_terms(
        apply_fn, params, instance, equation=equation, size=size, key=key, draws=draws
    )


def measure_estimates(
    run: TrainedRun, config: ConfigDict, directories: dict[str, pathlib.Path]
) -> dict[str, Any]:
    """Indicator, bound and true error of test problems by scale; factors from half of them.

    The calibration takes every second problem of the training scale; the shares below are of
    problems that it did not see.
    """
    trained, points = run.operator, {}
    solve = jax.jit(functools.partial(predict, trained.apply_fn, equation=trained.equation))
    judge = jax.jit(functools.partial(error_estimate.indicator, equation=trained.equation))
    for directory in directories.values():
        dataset = data.load(directory)
        count = min(config.calibration_samples, len(dataset))
        columns: dict[str, list[jax.Array]] = {"indicator": [], "bound": [], "error": []}
        for start in range(0, count, config.samples_at_once):
            ids = range(start, min(start + config.samples_at_once, count))
            instance = jax.tree.map(jnp.asarray, dataset.examples(ids))
            truth = instance.solution
            instance = instance._replace(boundary=truth)
            prediction = solve(trained.params, instance)
            given = judge(instance._replace(solution=prediction))
            columns["indicator"].append(given.relative)
            columns["bound"].append(given.bound)
            columns["error"].append(relative_l2(prediction, truth))
        values = {name: np.concatenate(parts).tolist() for name, parts in columns.items()}
        # JSON has no infinity.
        values["bound"] = [value if np.isfinite(value) else None for value in values["bound"]]
        points[f"{dataset.scale:g}"] = values
    home = points[f"{trained.scales[-1]:g}"]
    calibration = error_estimate.calibrate(
        np.array(home["indicator"][::2]), np.array(home["error"][::2])
    )
    for entry in points.values():
        unseen = slice(1, None, 2) if entry is home else slice(None)
        indicator, error = (np.array(entry[name][unseen]) for name in ("indicator", "error"))
        ratio = error / indicator
        entry["summary"] = {
            "problems": len(error),
            "rank_correlation": error_estimate.rank_correlation(indicator, error),
            "median_error_over_estimate": float(np.median(ratio) / calibration.factor),
            "share_below_upper": float(np.mean(ratio <= calibration.upper_factor)),
            "share_with_finite_bound": float(np.mean([b is not None for b in entry["bound"]])),
        }
    return {"calibration": calibration._asdict(), "scales": points}


def diagnose(run: TrainedRun, config: ConfigDict, *, data_root: pathlib.Path) -> dict[str, Any]:
    """Everything about one run."""
    sets = generate.generate_all(data_configs.get_config(run.config.data), data_root, log=print)
    directories = {name: path for name, path in sets.items() if name.startswith("test")}
    chosen = families(run, config, directories)
    return {
        "experiment": "diagnostics",
        "preset": config.preset,
        "row": run.row,
        "seed": run.config.seed,
        "config": config.to_dict(),
        "terms": terms_over_training(run, config, chosen),
        "estimates": measure_estimates(run, config, directories),
        "provenance": provenance.describe(),
    }


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """Tables of the theorem's terms and of the error estimate."""
    first = results[0]["config"]
    lines = [
        f"## Terms of the theorem at the last checkpoint, M = {first['steepness']:g}, "
        f"δ = M/{first['ratio']}",
        "",
        "Supremum (mean) over samples, |g| ≤ 1.",
        "",
        "| model | media | error on D_δ | boundary | self-consistency | their sum | error on D_M "
        "| left over right |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for family, curve in result["terms"].items():
            worst, mean = curve[-1]["supremum"], curve[-1]["mean"]
            cells = [f"{worst[term]:.4f} ({mean[term]:.4f})" for term in TERMS]
            right, left = sum(worst[term] for term in TERMS[:-1]), worst[TERMS[-1]]
            cells.insert(3, f"{right:.4f}")
            lines.append(
                f"| {result['row']}, seed {result['seed']} | {family} | " + " | ".join(cells)
                + f" | {left / right:.2f} |"
            )  # fmt: skip
    lines += [
        "",
        "## Error estimate from the residual",
        "",
        "Calibrated on half of the problems of the training scale; measured on all others.",
        "",
        "| model | scale | problems | rank correlation | true error over estimate (median) "
        f"| below the {100 * error_estimate.COVERAGE:g} % factor (%) | finite bound (%) |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for scale, entry in result["estimates"]["scales"].items():
            summary = entry["summary"]
            lines.append(
                f"| {result['row']}, seed {result['seed']} | {scale} | {summary['problems']} "
                f"| {summary['rank_correlation']:.2f} "
                f"| {summary['median_error_over_estimate']:.2f} "
                f"| {100 * summary['share_below_upper']:.0f} "
                f"| {100 * summary['share_with_finite_bound']:.0f} |"
            )
    factors = ", ".join(
        f"{result['row']}: {result['estimates']['calibration']['factor']:.3g} "
        f"(upper {result['estimates']['calibration']['upper_factor']:.3g})"
        for result in results
    )
    return "\n".join([*lines, "", f"Calibrated factors: {factors}.", ""])


def main(argv: Sequence[str] | None = None) -> None:
    parser = trained_run.argument_parser(__doc__)
    parser.add_argument(
        "--keep_calibration", action="store_true", help="write it to the runs' directories"
    )
    arguments = parser.parse_args(argv)
    figures.require()
    runs = [trained_run.open_run(workdir, equation="darcy") for workdir in arguments.run]
    text = arguments.config or trained_run.preset_of(runs[0], configs.PRESETS)
    config = trained_run.load_config(text, "diagnostics")
    kept = arguments.results / "diagnostics" / config.preset
    out = kept if arguments.write else arguments.run[0] / "diagnostics"
    results = [diagnose(run, config, data_root=arguments.data) for run in runs]
    for run, result in zip(runs, results, strict=True):
        trained_run.write_json(out / f"{run.name}.json", result)
        if arguments.keep_calibration:
            calibration = error_estimate.Calibration(**result["estimates"]["calibration"])
            calibration_file.write_calibration(run.workdir, calibration)
    drawn = [
        diagnostics_figures.terms_over_training(results, out / "theorem.png"),
        diagnostics_figures.calibration(results, out / "calibration.png"),
    ]
    text = markdown(results)
    (out / "table.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\n{out / 'table.md'}, figures: " + ", ".join(map(str, drawn)))


if __name__ == "__main__":
    runtime.prepare()
    with trained_run.errors_in_one_line():
        main()
