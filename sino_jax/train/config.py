"""The configuration of a training run: its fields, their defaults, and comparison of two runs.

A config is an `ml_collections.ConfigDict`, or anything that converts to one. `complete` adds the
defaults and refuses fields that nobody reads and values that make no sense, so that a misspelt
field is an error and not a different experiment.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict, FrozenConfigDict

from sino_jax import checkpoint, checks
from sino_jax.train import optimizer

# ConfigDict has the interface of a mapping, but is not registered as one.
ConfigLike = Mapping | ConfigDict | FrozenConfigDict

# Read by other parts, each of which refuses unknown fields itself; `experiment` is free.
OPEN_SECTIONS = ("model", "loss", "experiment")
# How a run is watched, where it runs and what is checked first does not change its result.
RUNTIME_FIELDS = ("logging", "distributed", "data.verify")


def defaults() -> ConfigDict:
    """Every field that training reads. Lengths of time are in steps unless they say otherwise."""
    return ConfigDict(
        {
            "seed": 0,
            "equation": "darcy",  # a name of sino_jax.equations, or of the equation given to fit
            "model": {},  # see sino_jax.models.build
            "loss": {},  # options of the loss function
            "experiment": {},  # whatever a caller wants to have recorded
            "data": {
                "train": (),  # directories of data sets, see sino_jax.data
                "val": (),  # evaluated on during training; their mean error ranks checkpoints
                "test": (),  # evaluated on at the end, or, without val, during training
                "batch_size": 8,  # of all devices and processes together
                "stride": 0,  # frames between training windows of trajectories; 0: as stored
                "normalise": False,  # coefficient channels to mean 0 and deviation 1
                "verify": True,  # checksums and finiteness, see sino_jax.train.verification
            },
            "start_from": "",  # directory of a run whose weights are the first ones of this
            "steps": 0,  # either steps
            "epochs": 0,  # or epochs is positive
            "accumulate": 1,  # parts of a batch that are differentiated one after another
            "points_at_once": 0,  # grid points differentiated at once, per device; 0: all of a part
            "optimizer": {  # also arguments of the named optimiser, as b1 = 0.95
                "name": "adam",  # weight decay within the gradient; see sino_jax.train.optimizer
                "learning_rate": 1e-3,
                "weight_decay": 1e-4,
                "schedule": "cosine",  # to zero over all steps; or constant
                "warmup_steps": 0,
                "warmup_part": 0.0,  # the same as a part of all steps
                "clip_norm": 0.0,  # global norm of the gradient; 0 does not clip
                "momentum": 0.0,  # of sgd
            },
            "ema_decay": 0.0,  # of the averaged weights that evaluation then uses; 0 keeps none
            "on_nonfinite": "stop",  # or halve_rate: back to the last checkpoint, half the rate
            "evaluation": {
                "every": 0,  # 0: at the end only
                "points_per_batch": 2**18,  # bounds the memory of an evaluation, per device
                "rollout_frames": 1,  # frames predicted autoregressively from trajectories
            },
            "checkpoint": {"every": 500, "keep": 2},  # the newest ones; the best is kept, too
            "logging": {
                "every": 50,
                "show_errors": True,  # of the finished run; False if the caller shows them
                "tensorboard": False,
                "wandb_project": "",
            },
            "distributed": {
                "mode": "auto",  # auto: under SLURM with several tasks; on; off
                "coordinator": "",  # host:port; empty: as JAX detects it
                "processes": 0,
                "process": -1,
            },
        }
    )


_NOT_NEGATIVE = (lambda x: x >= 0, "zero or positive")
_AT_LEAST_ONE = (lambda x: x >= 1, "at least 1")
_PART = (lambda x: 0 <= x < 1, "in [0, 1)")
_RANGES = {
    # JAX's random keys see no more than 32 bits.
    "seed": (lambda x: 0 <= x < 2**32, "between 0 and 2**32 - 1"),
    "data.batch_size": _AT_LEAST_ONE,
    "data.stride": _NOT_NEGATIVE,
    "steps": _NOT_NEGATIVE,
    "epochs": _NOT_NEGATIVE,
    "accumulate": _AT_LEAST_ONE,
    "points_at_once": _NOT_NEGATIVE,
    "optimizer.learning_rate": (lambda x: x > 0, "positive"),
    "optimizer.weight_decay": _NOT_NEGATIVE,
    "optimizer.warmup_steps": _NOT_NEGATIVE,
    "optimizer.warmup_part": _PART,
    "optimizer.clip_norm": _NOT_NEGATIVE,
    "optimizer.momentum": _PART,
    "ema_decay": _PART,
    "evaluation.every": _NOT_NEGATIVE,
    "evaluation.points_per_batch": _AT_LEAST_ONE,
    "evaluation.rollout_frames": _AT_LEAST_ONE,
    "checkpoint.every": _AT_LEAST_ONE,
    "checkpoint.keep": _AT_LEAST_ONE,
    "logging.every": _AT_LEAST_ONE,
    "distributed.processes": _NOT_NEGATIVE,
    "distributed.process": (lambda x: x >= -1, "a number of a process, or -1"),
}
_CHOICES = {
    "optimizer.schedule": optimizer.SCHEDULES,
    "on_nonfinite": ("stop", "halve_rate"),
    "distributed.mode": ("auto", "on", "off"),
}


def complete(config: ConfigLike) -> FrozenConfigDict:
    """`config` with the defaults of `defaults` added; a ValueError names what is wrong with it."""
    given = _with_tuples(to_dict(config))
    checkpoint.check_precision(given)
    given.pop("precision", None)  # of configs before it was removed
    full = defaults()
    _merge(full, given, prefix="")
    leaves = _flat(full)
    for path, (holds, words) in _RANGES.items():
        if not holds(leaves[path]):
            raise ValueError(f"config.{path} must be {words}, got {leaves[path]}")
    for path, choices in _CHOICES.items():
        if leaves[path] not in choices:
            listed = ", ".join(choices)
            raise ValueError(f"config.{path} must be one of {listed}, got {leaves[path]!r}")
    if (full.steps > 0) == (full.epochs > 0):
        raise ValueError(
            f"exactly one of steps and epochs must be positive, "
            f"got steps={full.steps}, epochs={full.epochs}"
        )
    if full.optimizer.warmup_steps and full.optimizer.warmup_part:
        raise ValueError(
            "at most one of optimizer.warmup_steps and optimizer.warmup_part may be positive, got "
            f"{full.optimizer.warmup_steps} and {full.optimizer.warmup_part}"
        )
    return FrozenConfigDict(full)


def _with_tuples(value: Any) -> Any:
    """Lists as tuples: FrozenConfigDict fails on an empty list beside an empty tuple."""
    if isinstance(value, Mapping):
        return {name: _with_tuples(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_with_tuples(entry) for entry in value)
    return value


def differences(old: ConfigLike, new: ConfigLike, *, ignore: tuple[str, ...] = ()) -> list[str]:
    """One line ``field: old -> new`` for each field that differs.

    `ignore` names fields and sections of fields.
    """
    old, new = (_flat(json.loads(to_json(without(config, ignore)))) for config in (old, new))
    names = sorted(old.keys() | new.keys())
    missing = "(absent)"
    return [
        f"{name}: {old.get(name, missing)!r} -> {new.get(name, missing)!r}"
        for name in names
        if old.get(name, missing) != new.get(name, missing)
    ]


def without(config: ConfigLike, paths: Iterable[str]) -> dict[str, Any]:
    """The config without some fields or sections, named by their paths."""
    result = to_dict(config)
    for path in paths:
        *sections, name = path.split(".")
        place = result
        for section in sections:
            place = place.get(section, {})
        place.pop(name, None)
    return result


def to_dict(config: ConfigLike) -> dict[str, Any]:
    """The config as nested dictionaries."""
    return {
        name: to_dict(value) if isinstance(value, ConfigLike) else value
        for name, value in config.items()
    }


def to_json(config: ConfigLike) -> str:
    """The config as indented JSON text; tuples become lists."""
    return json.dumps(to_dict(config), indent=2, sort_keys=True) + "\n"


def reject_unknown(name: str, known: Sequence[str], *, where: str) -> None:
    """Raises a ValueError with the nearest known name unless `name` is one of `known`."""
    if name not in known:
        raise ValueError(f"{where} has no field {name!r}{checks.hint(name, known, cutoff=0.0)}")


def _merge(full: ConfigDict, given: Mapping[str, Any], prefix: str) -> None:
    extra = {}
    if prefix == "optimizer.":
        extra = optimizer.arguments(given.get("name", full.name))
    for name, value in given.items():
        path = f"{prefix}{name}"
        reject_unknown(name, (*full.keys(), *extra), where=f"config.{prefix}".rstrip("."))
        default = full.get(name, extra.get(name))
        if isinstance(default, ConfigDict):
            if not isinstance(value, Mapping):
                raise ValueError(f"config.{path} is a section of fields, got {value!r}")
            if path in OPEN_SECTIONS:
                full[name] = ConfigDict(value)
            else:
                _merge(default, value, prefix=f"{path}.")
        else:
            full[name] = checked(path, value, default)


def checked(path: str, value: Any, default: Any) -> Any:
    """`value` in the type of `default`; a ValueError if it is of another."""
    match default:
        case bool():
            words, right = "True or False", isinstance(value, bool | np.bool_)
        case int():
            words, right = "a whole number", _is_number(value) and int(value) == value
            right = right and not isinstance(value, float)
        case float():
            words, right = "a finite number", _is_number(value)
        case str():
            words, right = "text", isinstance(value, str)
        case ():
            words, right = "a tuple of directories", isinstance(value, list | tuple)
            right = right and all(isinstance(item, str | os.PathLike) for item in value)
            value = [os.fspath(item) for item in value] if right else value
        case tuple():
            words, right = "a tuple of numbers", isinstance(value, list | tuple)
            right = right and all(map(_is_number, value))
        case _:  # an argument of an optimiser that is None, a dtype or the like by default
            words, right = "a number, text or None", value is None or isinstance(value, bool | str)
            right, default = right or _is_number(value), None
    if not right:
        raise ValueError(f"config.{path} must be {words}, got {value!r}")
    return value if default is None else type(default)(value)


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool) and math.isfinite(value)


def _flat(tree: ConfigLike, prefix: str = "") -> dict[str, Any]:
    leaves = {}
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if isinstance(value, ConfigLike) and len(value):
            leaves |= _flat(value, f"{path}.")
        else:
            leaves[path] = value
    return leaves
