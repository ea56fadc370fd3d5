"""What a row of a table is called: its label, directory, config text and command."""

import importlib
import pathlib
import re

from ml_collections import ConfigDict

from experiments import configs, models


def label(config: ConfigDict) -> str:
    """The name of a config's row, as in the paper where the paper has it."""
    text = models.label(config)
    base = config.base.replace("_", " ")
    text += "" if base == "none" else f" on {base} base"
    parts = config.consistency.replace("sub+super", "scale")
    text += "" if parts == "none" else f"+{parts}"
    if "sub" in config.consistency and config.smallest_crop:
        text += f" from {config.smallest_crop}"
    text += "" if config.symmetries == "none" else f"+{config.symmetries}"
    # Runs of older versions do not know of changes.
    return text + (f" ({config.changes})" if config.get("changes") else "")


def file_name(row: str) -> str:
    """A row's label as the name of its directory."""
    return re.sub(r"[^a-z0-9+.=-]+", "-", row.lower()).replace("-+", "+").strip("-")


def experiment_name(config: ConfigDict) -> str:
    """The experiment of a config; most have the name of their equation."""
    return config.get("experiment", config.equation)


def directory(config: ConfigDict, runs: pathlib.Path) -> pathlib.Path:
    """Where a row's run is; runs that are scored on validation data are apart from the others."""
    preset = config.preset + ("" if config.score == "test" else f"-{config.score}")
    row = file_name(label(config))
    return runs / experiment_name(config) / preset / row / f"seed-{config.seed}"


def config_text(config: ConfigDict) -> str:
    """The shortest text from which ``get_config`` makes this config."""
    module = importlib.import_module(f"experiments.configs.{experiment_name(config)}")
    preset = module.get_config(config.preset)
    own = [f"{name}={config[name]}" for name in configs.ROW_FIELDS if config[name] != preset[name]]
    changes = [config.changes.replace(", ", ",")] if config.changes else []
    return ",".join([config.preset, *own, *changes])


def command(config: ConfigDict) -> str:
    """The command that runs a row."""
    name = experiment_name(config)
    return (
        f"python -m experiments.{name} "
        f'--config="experiments/configs/{name}.py:{config_text(config)}"'
    )
