"""Runs one row of a table: data, training, evaluation, result; resumes, and never runs twice.

    runs/<experiment>/<preset>/<row>/seed-<n>/
        config.json, checkpoints, metrics     made by `sino_jax.train.fit`
        result.json                           errors at every scale, made last

`run` is what every ``python -m experiments.<name>`` calls; an experiment states how its config
becomes a model, a loss and data sets in a `Experiment`.
"""

import contextlib
import dataclasses
import importlib
import json
import pathlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from experiments import configs, models
from sino_jax import augment, checkpoint, equations, files, runtime, scale_range, train
from sino_jax.models import network
from sino_jax.train import config as train_config
from sino_jax.train import overrides, provenance
from solvers import generate
from solvers.configs import argument

RESULT = "result.json"
USAGE = "usage.json"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """How the configs of one experiment become a training run.

    Attributes:
      equation: a name of `sino_jax.equations`.
      data_config: ``config.data`` -> config of `solvers.generate`.
      model_fields: config -> fields of `sino_jax.models.build`, without the channels.
      prior: config -> distribution of inputs at larger scales, for `sino_jax.superdomain`; None
        continues the data by reflection.
      measure: ``measure(config, workdir, data)`` of a trained row -> JSON-like facts that its
        result gets as ``measures``; empty for none.
      name: of the module and its config file; that of the equation if empty.
    """

    equation: str
    data_config: Callable[[str], ConfigDict]
    model_fields: Callable[[ConfigDict], Mapping[str, Any]]
    prior: Callable[[ConfigDict], Callable | None] = lambda config: None
    measure: Callable[[ConfigDict, pathlib.Path, Mapping[str, pathlib.Path]], dict[str, Any]] = (
        lambda config, workdir, data: {}
    )
    name: str = ""


def row_label(config: ConfigDict) -> str:
    """The name of a config's row, as in the paper where the paper has it."""
    label = models.label(config)
    label += "" if config.base == "none" else f" on {config.base} base"
    parts = config.consistency.replace("sub+super", "scale")
    label += "" if parts == "none" else f"+{parts}"
    if "sub" in config.consistency and config.smallest_crop:
        label += f" from {config.smallest_crop}"
    label += "" if config.symmetries == "none" else f"+{config.symmetries}"
    # Runs of older versions do not know of changes.
    return label + (f" ({config.changes})" if config.get("changes") else "")


def base_options(config: ConfigDict) -> dict[str, Any]:
    """Fields of `models.build` about the base solution."""
    if config.base == "none":
        return {}
    if config.base == "heat":
        return {"base": "heat", "base_extent": config.base_extent}
    fields = ("base", "base_iterations", "base_gate", "base_centred")
    options = {field: config[field] for field in fields}
    return {**options, "base_shift": config.base_shift if config.base == "helmholtz" else 0.0}


def file_name(row: str) -> str:
    """A row's label as the name of its directory."""
    return re.sub(r"[^a-z0-9+.=-]+", "-", row.lower()).replace("-+", "+").strip("-")


def name_of(config: ConfigDict) -> str:
    """The experiment of a config; most have the name of their equation."""
    return config.get("experiment", config.equation)


def directory(config: ConfigDict, runs: pathlib.Path) -> pathlib.Path:
    """Where a row's run is; runs that are scored on validation data are apart from the others."""
    preset = config.preset + ("" if config.score == "test" else f"-{config.score}")
    row = file_name(row_label(config))
    return runs / name_of(config) / preset / row / f"seed-{config.seed}"


def config_text(config: ConfigDict) -> str:
    """The shortest text from which ``get_config`` makes this config."""
    module = importlib.import_module(f"experiments.configs.{name_of(config)}")
    preset = module.get_config(config.preset)
    own = [f"{name}={config[name]}" for name in configs.ROW_FIELDS if config[name] != preset[name]]
    changes = [config.changes.replace(", ", ",")] if config.changes else []
    return ",".join([config.preset, *own, *changes])


def command(config: ConfigDict) -> str:
    """The command that runs a row."""
    name = name_of(config)
    return (
        f"python -m experiments.{name} "
        f'--config="experiments/configs/{name}.py:{config_text(config)}"'
    )


def training_config(
    experiment: Experiment, config: ConfigDict, data: Mapping[str, pathlib.Path]
) -> dict[str, Any]:
    """The config of `sino_jax.train.fit` for one row."""
    equation = equations.get(experiment.equation)
    settings = {
        "seed": config.seed,
        "equation": equation.name,
        "model": {
            **base_options(config),
            **equation.model_fields(),
            **experiment.model_fields(config),
        },
        "loss": loss_options(config),
        "experiment": config.to_dict(),
        "data": {
            "train": tuple(str(path) for name, path in data.items() if name.startswith("train")),
            "test": tuple(
                str(path) for name, path in data.items() if name.startswith(config.score)
            ),
            "batch_size": config.batch_size,
            "stride": config.stride,
        },
        "epochs": config.epochs,
        "optimizer": {
            "name": config.optimizer,
            "learning_rate": config.learning_rate,
            "weight_decay": config.weight_decay,
            "warmup_part": config.warmup,
            "clip_norm": config.clip_norm,
        },
        "ema_decay": config.ema_decay,
        "evaluation": {
            "rollout_frames": config.rollout_frames,
            "every": config.evaluate_every,
        },
    }
    return overrides.apply(settings, config.train)


def check(experiment: Experiment, settings: Mapping[str, Any]) -> None:
    """Raises a ValueError for a training config that `fit` would refuse after data was made."""
    completed, equation = train_config.complete(settings), equations.get(experiment.equation)
    network.build(completed.model, equation, None)
    augment.check_symmetries(equation, completed.loss.symmetries)


def loss_options(config: ConfigDict) -> dict[str, Any]:
    """Options of `sino_jax.loss.training_loss`."""
    parts = set(config.consistency.split("+")) - {"none"}
    if unknown := parts - {"sub", "super", "stretch"}:
        raise ValueError(f"consistency is made of sub, super and stretch, got {sorted(unknown)}")
    smallest = config.smallest_crop
    sub_sizes = tuple(size for size in config.sub_sizes if size >= smallest)
    if "sub" in parts and not sub_sizes:
        raise ValueError(f"smallest_crop must leave some of {config.sub_sizes}, got {smallest}")
    if "stretch" in parts and not config.stretched_sizes:
        raise ValueError(
            f"consistency has no stretched sub-domains for {config.equation}, whose scaling law "
            f"holds for one ratio on all sides; got {config.consistency!r}"
        )
    if "super" in parts and not config.super_rates:
        raise ValueError(
            f"consistency has no super-domains for {config.equation}, whose inputs on a larger "
            f"domain are unknown; got {config.consistency!r}"
        )
    symmetries = () if config.symmetries == "none" else tuple(config.symmetries.split("+"))
    return {
        "sub_sizes": (
            *(sub_sizes if "sub" in parts else ()),
            *(config.stretched_sizes if "stretch" in parts else ()),
        ),
        "sub_count": config.sub_count,
        "super_rates": config.super_rates if "super" in parts else (),
        **{name: config[name] for name in configs.SUPER_OPTIONS},
        "symmetries": symmetries,
    }


def run(
    experiment: Experiment,
    config: ConfigDict,
    *,
    data: pathlib.Path,
    runs: pathlib.Path,
    keep_every: int = 0,
) -> dict[str, Any]:
    """Trains and evaluates one row, or reads its result if it is there.

    With `keep_every`, a checkpoint is made every so many steps and all of them are kept, for
    measurements over the course of training.
    """
    workdir = directory(config, runs)
    result_path = workdir / RESULT
    if result_path.exists():
        result = json.loads(result_path.read_text())
        # Results of older versions lack the fields that came later.
        recorded = {**json.loads(ConfigDict(configs.COMMON).to_json()), **result["config"]}
        if recorded == json.loads(config.to_json()):
            return result
        raise ValueError(f"{result_path} is the result of another config; move it away first")

    data_config = experiment.data_config(config.data)
    names = generate.data_sets(data_config)
    settings = training_config(
        experiment, config, {name: data / data_config.name / name for name in names}
    )
    check(experiment, settings)  # before data is made
    sets = generate.generate_all(data_config, data, log=print)
    settings["logging"] = {**settings.get("logging", {}), "show_errors": False}  # `report` does
    if keep_every:
        settings["checkpoint"] = {"every": keep_every, "keep": sys.maxsize}
    # `report` says it, on every call of the command.
    quiet = warnings.catch_warnings(action="ignore", category=scale_range.ScaleWarning)
    with quiet, measured(workdir / USAGE) as usage:
        train.fit(settings, workdir, super_prior=experiment.prior(config))
    meta = checkpoint.read_meta(workdir, checkpoint.newest(workdir))
    result = {
        "experiment": name_of(config),
        "preset": config.preset,
        "row": row_label(config),
        "seed": config.seed,
        "trained_scales": meta["scales"],
        "trained_range": meta["scale_range"],
        "errors": meta["evaluation"],
        "command": command(config),
        "seconds": usage["seconds"],
        "core_minutes": usage["core_seconds"] / 60,
        "config": json.loads(config.to_json()),
        "provenance": provenance.describe(),
    }
    if measures := experiment.measure(config, workdir, sets):
        result["measures"] = measures
    if jax.process_index() == 0:  # the others would write and rename the same file
        files.write_text(result_path, json.dumps(result, indent=2, sort_keys=True) + "\n")
    return result


@contextlib.contextmanager
def measured(path: pathlib.Path) -> Iterator[dict[str, float]]:
    """Adds the time and the time of cores that its block takes to those recorded in a file.

    Starts of one run add up; one that was killed is not counted.
    """
    usage = json.loads(path.read_text()) if path.exists() else {}
    before = {"seconds": time.monotonic(), "core_seconds": time.process_time()}
    try:
        yield usage
    finally:
        after = {"seconds": time.monotonic(), "core_seconds": time.process_time()}
        for name in before:
            usage[name] = usage.get(name, 0.0) + after[name] - before[name]
        files.write_text(path, json.dumps(usage) + "\n")


def errors_by_scale(
    result: Mapping[str, Any], *, metric: str = "relative_l2"
) -> dict[float, float]:
    """Relative errors of a result by scale."""
    return {
        float(name.rsplit("-", 1)[1]): metrics[metric] for name, metrics in result["errors"].items()
    }


def report(result: Mapping[str, Any]) -> str:
    """A result in words: every metric at every scale, and which scales were not trained on."""
    metrics = list(next(iter(result["errors"].values())))
    errors = {metric: errors_by_scale(result, metric=metric) for metric in metrics}
    scales = sorted(errors[metrics[0]])
    marks = [f"{s:g}{'*' if s in result['trained_scales'] else ''}" for s in scales]
    width = max(map(len, metrics))
    lines = [
        f"{result['row']}, seed {result['seed']}: errors in percent (* scale of the training data)",
        "scale".ljust(width) + "".join(f"{mark:>10}" for mark in marks),
        *(
            metric.ljust(width) + "".join(f"{100 * errors[metric][s]:10.3f}" for s in scales)
            for metric in metrics
        ),
    ]
    # Results from before the range was recorded have the scales of the data only.
    trained = result.get("trained_range", result["trained_scales"])
    if beyond := scale_range.outside(scales, trained):
        lines.append(f"warning: {beyond}")
    return "\n".join(lines)


def main(experiment: Experiment) -> None:
    """The command line of an experiment: ``python -m experiments.<name> --config=...``."""
    runtime.prepare()
    config = config_flags.DEFINE_config_file("config", None, argument.HELP)
    data = flags.DEFINE_string("data", "data", "directory of all data sets")
    runs = flags.DEFINE_string("runs", "runs", "directory of all runs")
    keep_every = flags.DEFINE_integer(
        "keep_every", 0, "steps between checkpoints that are all kept; 0 keeps the last ones only"
    )
    flags.mark_flag_as_required("config")

    def run_and_print(argv):
        del argv
        logging.set_verbosity(logging.WARNING)  # Orbax narrates every file at level INFO
        try:
            result = run(
                experiment,
                config.value,
                data=pathlib.Path(data.value),
                runs=pathlib.Path(runs.value),
                keep_every=keep_every.value,
            )
        except (ValueError, checkpoint.CheckpointError, OSError) as error:
            sys.exit(f"error: {error}")
        print(report(result))
        print(f"result: {directory(config.value, pathlib.Path(runs.value)) / RESULT}")

    files = pathlib.Path(configs.__file__).parent
    app.run(
        run_and_print, argument.expand(sys.argv, files, own=experiment.name or experiment.equation)
    )
