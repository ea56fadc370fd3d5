"""Makes an operator that comes with the package from a finished run:

    python -m experiments.publish runs/darcy/small/fno-on-harmonic-base+sub/seed-0 darcy

writes ``sino_jax/pretrained/darcy``, which `sino_jax.operator.load("darcy")` finds: weights, JSON,
and a model card. The run is evaluated again on its test data, in single precision, which must give
the errors of its result, and with weights rounded to half precision. These are stored if they
change no error by more than a two-thousandth of itself. Validation data of a trained scale, if
there is any, calibrates the error estimates of an elliptic equation.
"""

import argparse
import dataclasses
import pathlib
import shutil
import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from absl import logging

from experiments import outcome
from sino_jax import checkpoint, data, files, operator, runtime, scale_range
from sino_jax.data import Dataset
from sino_jax.diagnostics import error_estimate
from sino_jax.operator import Operator, portable, pretrained
from sino_jax.train import config as configs
from sino_jax.train import evaluate as evaluation
from sino_jax.train import parallel, task

LICENCE = "Apache-2.0"
# Errors of half-precision weights may differ from those of the run by this part of themselves.
LARGEST_CHANGE = 5e-4
# Errors of a repeated evaluation may differ by this part from those of the result: round-off.
SAME = 1e-3
# On new problems of the same distributions, mean errors stay below this multiple; the tests check.
MARGIN = 1.5

Errors = Mapping[str, Mapping[str, float]]


class Unpublishable(ValueError):
    """A run that must not be published; the message says why."""


class Measured(NamedTuple):
    """What `measure` finds.

    Attributes:
      errors: of the weights as they will be stored, by data set and metric.
      base: of the base solution alone, that is with all weights zero; None without a base.
      storage: "float16" or "float32".
      change: largest relative change of an error by rounding to half precision.
      train, test: the data sets.
    """

    errors: Errors
    base: Errors | None
    storage: str
    change: float
    train: list[Dataset]
    test: dict[str, Dataset]


def read_result(workdir: pathlib.Path) -> dict[str, Any]:
    """The result of a finished run on test data."""
    try:
        result = files.read_json(workdir / outcome.RESULT)
    except FileNotFoundError:
        raise Unpublishable(
            f"{workdir} has no {outcome.RESULT}: only finished runs of experiments are published"
        ) from None
    if (score := result["config"].get("score", "test")) != "test":
        raise Unpublishable(f"{workdir} was evaluated on {score!r} data, not on test data")
    if result["errors"] != (
        checkpoint.read_meta(workdir, checkpoint.newest(workdir)).get("evaluation")
    ):
        raise Unpublishable(f"{workdir}: {outcome.RESULT} is not that of the newest checkpoint")
    return result


def measure(trained: Operator, result: Mapping[str, Any], data_root: pathlib.Path) -> Measured:
    """Evaluates the operator again, as its run did, and chooses the precision of storage."""
    config = configs.to_dict(configs.complete(trained.meta["config"]))
    recorded = trained.meta["datasets"]
    for split in ("train", "val", "test"):
        config["data"][split] = tuple(
            str(_moved(path, data_root, recorded[path])) for path in config["data"][split]
        )
    evaluate = task.build(configs.complete(config), equation=trained.equation).evaluate
    mesh = parallel.data_mesh()
    errors = evaluate(trained.params, mesh, last=True)
    if (difference := _change(result["errors"], errors)) > SAME:
        raise Unpublishable(
            f"errors differ from those of {outcome.RESULT} by up to {difference:.1e} of themselves"
        )
    rounded = evaluate(jax.tree.map(_rounded, trained.params), mesh, last=True)
    change = _change(errors, rounded)
    half = change <= LARGEST_CHANGE
    alone = None
    if config["model"].get("base", "none") != "none":
        alone = evaluate(jax.tree.map(np.zeros_like, trained.params), mesh, last=True)
    tested = [data.load(path) for path in (*config["data"]["val"], *config["data"]["test"])]
    return Measured(
        errors=rounded if half else errors,
        base=alone,
        storage="float16" if half else "float32",
        change=change,
        train=[data.load(path) for path in config["data"]["train"]],
        test=dict(zip(evaluation.names(tested), tested, strict=True)),
    )


def _moved(path: str, root: pathlib.Path, digest: str) -> pathlib.Path:
    """The data set of a run below `root`, which must be the one that the run used."""
    place = root / pathlib.Path(path).parent.name / pathlib.Path(path).name
    if data.load(place).digest != digest:
        raise Unpublishable(f"{place} is not the data set that the run was trained or tested on")
    return place


def _rounded(weights: jax.Array) -> np.ndarray:
    return portable.halved("a weight", np.asarray(weights)).astype(weights.dtype)


def _change(reference: Errors, errors: Errors) -> float:
    """The largest relative difference of two tables of errors."""
    return max(
        abs(errors[name][metric] / value - 1)
        for name, metrics in reference.items()
        for metric, value in metrics.items()
    )


def calibrated(trained: Operator, measured: Measured) -> tuple[Operator, str]:
    """The operator with error estimates calibrated on validation data; what was done, in words."""
    if trained.equation.name not in error_estimate.ELLIPTIC:
        return trained, "none: the error estimate is for elliptic equations"
    place = measured.train[-1].path
    scale = trained.scales[-1]
    validation = place.parent / f"val-{scale:g}"
    if not validation.is_dir():
        return trained, "none: there is no validation data of a trained scale"
    dataset = data.load(validation)
    problems = dataset.examples(range(len(dataset)))
    made = trained.calibrate(
        problems.coefficient, problems.solution, problems.scale, problems.solution
    )
    return made, f"{len(dataset)} validation problems of scale {scale:g}"


def card(
    name: str, trained: Operator, result: Mapping[str, Any], measured: Measured, calibration: str
) -> str:
    """The model card, in Markdown."""
    weights = sum(leaf.size for leaf in jax.tree.leaves(trained.params))
    low, high = trained.scale_range
    sets = "; ".join(
        f"{len(one)} examples of scale {one.scale:g} on {_points(one)} points"
        for one in measured.train
    )
    units = measured.train[0].meta["units"]
    facts = {
        "equation": trained.equation.name,
        "model": f"{result['row']}, {weights:,} weights",
        "training data": f"{sets}, made by `{_generation(result)}`",
        "units": "; ".join(f"{what}: {meaning}" for what, meaning in units.items()),
        "scales seen in training": f"{low:g} to {high:g}, sub- and super-domains included",
        "trained by": f"`{result['command']}`, seed {result['seed']}, "
        f"{result['core_minutes']:.1f} core-minutes",
        "calibration of error estimates": calibration,
        "storage": f"{measured.storage}; half precision changes no error in the table by more than "
        f"{measured.change:.0e} of itself",
        "licence": LICENCE,
    }
    metrics = sorted(next(iter(measured.errors.values())))  # as they are stored
    columns = {metric: (measured.errors, metric) for metric in metrics}
    if measured.base:
        columns["base alone"] = (measured.base, metrics[0])
    rows = [
        f"| {dataset.scale:g} | {_points(dataset)} | {len(dataset)} | "
        + " | ".join(f"{100 * errors[key][metric]:.2f}" for errors, metric in columns.values())
        + " |"
        for key, dataset in sorted(measured.test.items(), key=lambda item: item[1].scale)
    ]
    notes = []
    if (frames := configs.complete(trained.meta["config"]).evaluation.rollout_frames) > 1:
        notes.append(
            f"`relative_l2_first` is the error of one step; the others are those of {frames} "
            "steps in a row, from examples that do not overlap."
        )
    if measured.base:
        notes.append("`base alone` is the first measure with all weights zero.")
    lines = [
        f"# {name}",
        "",
        f'Load it with `sino_jax.operator.load("{name}")`.',
        "",
        "| | this operator |",
        "|---|---|",
        *(f"| {what} | {value} |" for what, value in facts.items()),
        "",
        "## Errors on test data, in percent",
        "",
        "Means over all examples. On new problems of the same distributions mean errors stay "
        f"below {MARGIN:g} times these values; the tests of the package check it at two scales.",
        *notes,
        "",
        f"| scale | points | examples | {' | '.join(columns)} |",
        "|---|---|---|" + "---|" * len(columns),
        *rows,
        "",
        "## Limits",
        "",
        "Nothing was measured on other distributions of coefficients or boundary values, or on "
        "grids of another resolution. Scales outside of the range above give a warning.",
        "",
    ]
    return "\n".join(lines)


def _points(dataset: Dataset) -> str:
    return " x ".join(map(str, dataset.grid))


def _generation(result: Mapping[str, Any]) -> str:
    config = result["config"]
    return f"python -m solvers.generate --config={config['equation']}:{config['data']}"


def publish(
    workdir: pathlib.Path,
    name: str,
    *,
    data_root: pathlib.Path,
    out: pathlib.Path,
    replace: bool = False,
) -> pathlib.Path:
    """Writes the operator of a finished run below `out` under a name; returns its directory.

    Raises:
      Unpublishable: the run has no result, or data, result and weights do not belong together; a
        name that does not begin with that of the equation, or is taken.
    """
    result = read_result(workdir)
    trained = operator.load(workdir)
    equation = trained.equation.name
    if files.check_name(name, "name") != equation and not name.startswith(f"{equation}-"):
        raise Unpublishable(f"name must be {equation} or begin with {equation}-, got {name!r}")
    if (out / name).exists() and not replace:
        raise Unpublishable(f"{out / name} exists: --replace replaces it")
    with warnings.catch_warnings(action="ignore", category=scale_range.ScaleWarning):
        measured = measure(trained, result, data_root)
        trained, calibration = calibrated(trained, measured)
    origin = {key: result[key] for key in ("row", "seed", "command")}
    origin |= {"data": _generation(result).partition("=")[2], "licence": LICENCE, "margin": MARGIN}
    trained = dataclasses.replace(
        trained, meta={**trained.meta, "evaluation": measured.errors, "origin": origin}
    )
    text = card(name, trained, result, measured, calibration)
    if replace:
        shutil.rmtree(out / name, ignore_errors=True)
    return portable.write(
        out / name,
        trained.params,
        trained.meta,
        trained.calibration,
        storage=measured.storage,
        card=text,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=pathlib.Path, help="directory of a finished run")
    parser.add_argument("name", help="of the operator: that of its equation, or that and -suffix")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--out", type=pathlib.Path, default=pretrained.DIRECTORY)
    parser.add_argument("--replace", action="store_true", help="an operator of the same name")
    given = parser.parse_args()
    logging.set_verbosity(logging.WARNING)
    try:
        place = publish(
            given.run, given.name, data_root=given.data, out=given.out, replace=given.replace
        )
    except (ValueError, OSError, checkpoint.CheckpointError) as error:
        sys.exit(f"error: {error}")
    size = sum(path.stat().st_size for path in place.iterdir())
    print((place / portable.CARD_FILE).read_text())
    print(f"{place}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    runtime.prepare()
    main()
