"""Runs one row of a table: data, training, evaluation, result; resumes, and never runs twice.

    runs/<experiment>/<preset>/<row>/seed-<n>/
        config.json, checkpoints, metrics     made by `sino_jax.train.fit`
        result.json                           errors at every scale, made last

`main` is the command line of every ``python -m experiments.<name>``.
"""

import contextlib
import json
import pathlib
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import jax
from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from experiments import configs, naming, outcome, training
from sino_jax import checkpoint, files, runtime, scale_range, train
from sino_jax.train import provenance
from solvers import generate
from solvers.configs import argument

USAGE = "usage.json"


def run(
    experiment: training.Experiment,
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
    workdir = naming.directory(config, runs)
    result_path = workdir / outcome.RESULT
    if result_path.exists():
        result = json.loads(result_path.read_text())
        if outcome.is_of(config, result):
            return result
        raise ValueError(f"{result_path} is the result of another config; move it away first")

    data_config = experiment.data_config(config.data)
    names = generate.data_sets(data_config)
    settings = training.training_config(
        experiment, config, {name: data / data_config.name / name for name in names}
    )
    training.check(experiment, settings)  # before data is made
    sets = generate.generate_all(data_config, data, log=print)
    # `outcome.report` shows them.
    settings["logging"] = {**settings.get("logging", {}), "show_errors": False}
    if keep_every:
        settings["checkpoint"] = {"every": keep_every, "keep": sys.maxsize}
    # `outcome.report` warns on every call of the command.
    quiet = warnings.catch_warnings(action="ignore", category=scale_range.ScaleWarning)
    with quiet, measured(workdir / USAGE) as usage:
        train.fit(settings, workdir, super_prior=experiment.prior(config))
    meta = checkpoint.read_meta(workdir, checkpoint.newest(workdir))
    result = {
        "experiment": naming.experiment_name(config),
        "preset": config.preset,
        "row": naming.label(config),
        "seed": config.seed,
        "trained_scales": meta["scales"],
        "trained_range": meta["scale_range"],
        "errors": meta["evaluation"],
        "command": naming.command(config),
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


def main(experiment: training.Experiment) -> None:
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
        print(outcome.report(result))
        print(
            f"result: {naming.directory(config.value, pathlib.Path(runs.value)) / outcome.RESULT}"
        )

    files = pathlib.Path(configs.__file__).parent
    app.run(
        run_and_print, argument.expand(sys.argv, files, own=experiment.name or experiment.equation)
    )
