"""The configuration of a training run: its fields, their defaults, and comparison of two runs.

A config is an `ml_collections.ConfigDict`, or anything that converts to one. `complete` adds the
defaults and refuses fields that nobody reads, so that a misspelt field is an error and not a
different experiment.
"""

import difflib
import json
from collections.abc import Mapping
from typing import Any

import ml_collections
from ml_collections import ConfigDict, FrozenConfigDict

# ConfigDict has the interface of a mapping, but is not registered as one.
ConfigLike = Mapping | ConfigDict | FrozenConfigDict

# Read by other parts, each of which refuses unknown fields itself; `experiment` is free.
OPEN_SECTIONS = ("model", "loss", "experiment")
# How a run is watched and where it runs does not change its result.
RUNTIME_SECTIONS = ("logging", "distributed")

_AT_LEAST_ONE = (
    "accumulate",
    "data.batch_size",
    "checkpoint.every",
    "checkpoint.keep",
    "logging.every",
)


def defaults() -> ConfigDict:
    """Every field that training reads. Lengths of time are in steps unless they say otherwise."""
    return ConfigDict(
        {
            "seed": 0,
            "equation": "darcy",  # a name of sino_jax.equations
            "model": {},  # see sino_jax.models.build
            "loss": {},  # options of the loss function
            "experiment": {},  # whatever a caller wants to have recorded
            "data": {
                "train": (),  # directories of data sets, see sino_jax.data
                "test": (),
                "batch_size": 8,  # of all devices and processes together
                "normalise": False,  # coefficient channels to mean 0 and deviation 1
            },
            "steps": 0,  # either steps
            "epochs": 0,  # or epochs is positive
            "accumulate": 1,  # parts of a batch that are differentiated one after another
            "optimizer": {
                "name": "adam",  # weight decay within the gradient; see sino_jax.train.optimizer
                "learning_rate": 1e-3,
                "weight_decay": 1e-4,
                "schedule": "cosine",  # to zero over all steps; or constant
                "warmup_steps": 0,
                "warmup_part": 0.0,  # the same as a part of all steps
                "clip_norm": 0.0,  # global norm of the gradient; 0 does not clip
                "momentum": 0.0,  # of sgd
            },
            "precision": "float32",  # bfloat16: of pointwise layers, see sino_jax.train.precision
            "ema_decay": 0.0,  # of the averaged weights that evaluation then uses; 0 keeps none
            "on_nonfinite": "stop",  # or halve_rate: back to the last checkpoint, half the rate
            "evaluation": {
                "every": 0,  # 0: at the end only
                "points_per_batch": 2**18,  # bounds the memory of an evaluation, per device
                "rollout_frames": 1,  # frames predicted autoregressively from trajectories
            },
            "checkpoint": {"every": 500, "keep": 2},  # the newest ones; the best is kept, too
            "logging": {"every": 50, "tensorboard": False, "wandb_project": ""},
            "distributed": {
                "mode": "auto",  # auto: under SLURM with several tasks; on; off
                "coordinator": "",  # host:port; empty: as JAX detects it
                "processes": 0,
                "process": -1,
            },
        }
    )


def complete(config: ConfigLike) -> FrozenConfigDict:
    """`config` with the defaults of `defaults` added; a ValueError names what is wrong with it."""
    given = to_dict(config)
    full = defaults()
    _merge(full, given, prefix="")
    if (full.steps > 0) == (full.epochs > 0):
        raise ValueError(
            f"exactly one of steps and epochs must be positive, "
            f"got steps={full.steps}, epochs={full.epochs}"
        )
    _check_choice("on_nonfinite", full.on_nonfinite, ("stop", "halve_rate"))
    _check_choice("distributed.mode", full.distributed.mode, ("auto", "on", "off"))
    for name in _AT_LEAST_ONE:
        value = _get(full, name)
        if value < 1:
            raise ValueError(f"config.{name} must be at least 1, got {value}")
    if not 0 <= full.ema_decay < 1:
        raise ValueError(f"config.ema_decay must be in [0, 1), got {full.ema_decay}")
    return FrozenConfigDict(full)


def differences(old: ConfigLike, new: ConfigLike, *, ignore: tuple[str, ...] = ()) -> list[str]:
    """One line ``field: old -> new`` for each field that differs; `ignore` names sections."""
    old, new = _flat(_as_json(old)), _flat(_as_json(new))
    names = sorted(
        name for name in old.keys() | new.keys() if name.split(".", maxsplit=1)[0] not in ignore
    )
    missing = "(absent)"
    return [
        f"{name}: {old.get(name, missing)!r} -> {new.get(name, missing)!r}"
        for name in names
        if old.get(name, missing) != new.get(name, missing)
    ]


def to_dict(config: ConfigLike) -> dict[str, Any]:
    """The config as nested dictionaries."""
    if isinstance(config, ConfigDict | FrozenConfigDict):
        return ml_collections.ConfigDict(config).to_dict()
    return dict(config)


def to_json(config: ConfigLike) -> str:
    """The config as indented JSON text; tuples become lists."""
    return json.dumps(to_dict(config), indent=2, sort_keys=True) + "\n"


def from_json(text: str) -> FrozenConfigDict:
    """Inverse of `to_json` up to lists in the place of tuples."""
    return FrozenConfigDict(json.loads(text))


def reject_unknown(name: str, known: tuple[str, ...], *, where: str) -> None:
    """Raises a ValueError with the nearest known name unless `name` is one of `known`."""
    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"{where} has no field {name!r}{hint}")


def _merge(full: ConfigDict, given: Mapping[str, Any], prefix: str) -> None:
    for name, value in given.items():
        path = f"{prefix}{name}"
        if path in OPEN_SECTIONS:
            full[name] = ConfigDict(value)
            continue
        reject_unknown(name, tuple(full.keys()), where=f"config.{prefix}".rstrip("."))
        if isinstance(full[name], ConfigDict):
            if not isinstance(value, Mapping):
                raise ValueError(f"config.{path} is a section of fields, got {value!r}")
            _merge(full[name], value, prefix=f"{path}.")
            continue
        try:
            full[name] = tuple(value) if isinstance(full[name], tuple) else value
        except TypeError as error:
            raise ValueError(f"config.{path}: {error}") from None


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"config.{name} must be one of {', '.join(choices)}, got {value!r}")


def _get(config: ConfigDict, path: str) -> Any:
    for name in path.split("."):
        config = config[name]
    return config


def _as_json(config: ConfigLike) -> dict[str, Any]:
    return json.loads(to_json(config))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves = {}
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            leaves |= _flat(value, f"{path}.")
        else:
            leaves[path] = value
    return leaves
