"""Neural operators. `build(config)` makes one from the vocabulary of a configuration.

Every model is a Flax module used as ``model.init(key, inputs, scale)`` and
``model.apply(variables, inputs, scale)``: inputs ``[batch, *grid, channel]``, scale ``[batch]``.
"""

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import numpy as np
from ml_collections import ConfigDict

from sino_jax import checks
from sino_jax.equations.burgers import BURGERS
from sino_jax.models import with_base
from sino_jax.models.cno import CNO
from sino_jax.models.fno import FNO
from sino_jax.models.fno_unet import FNOUNet
from sino_jax.models.sino import SINO
from sino_jax.models.sino_u import SINOU
from sino_jax.models.unet import UNet
from sino_jax.models.uno import UNO
from sino_jax.models.with_extrapolation import WithExtrapolation
from sino_jax.models.with_heat_base import WithHeatBase
from sino_jax.models.with_last_frame import WithLastFrame

MODELS: dict[str, type[nn.Module]] = {
    "fno": FNO,
    "sino": SINO,
    "sino_u": SINOU,
    "unet": UNet,
    "uno": UNO,
    "cno": CNO,
    "fno_unet": FNOUNet,
}
# Bases of frames, that a model adds to and does nothing else with.
ON_FRAMES = {"last_frame": WithLastFrame, "extrapolation": WithExtrapolation}
BASES = ("none", *with_base.BASES, "heat", *ON_FRAMES)


def build(config: Mapping[str, Any] | ConfigDict) -> nn.Module:
    """The model that a configuration names, with the configuration's other fields.

    Args:
      config: a mapping or ConfigDict with `name`, one of `MODELS`, and
        fields of that model's class; `base`, one of `BASES`, names a base solution that the model
        corrects, and `base_shift`, `base_iterations`, `base_gate` and `base_centred` its options
        (see `with_base.WithBase`).

    Raises:
      ValueError: an unknown model or field (the nearest valid one is suggested), a missing field, a
        value of another type or range.

    Example:
      >>> build(dict(name="fno", n_modes=(8, 8), hidden_channels=16, out_channels=1)).n_layers
      4
    """
    fields = {key: _static(value) for key, value in config.items()}
    name = fields.pop("name", None)
    base = fields.pop("base", "none")
    if base == "heat":
        return _on_heat_base(name, fields)
    if base in ON_FRAMES:
        model = build({"name": name, **fields})
        return ON_FRAMES[base](model=model, out_channels=model.out_channels)
    options = {
        option: fields.pop(f"base_{option}")
        for option in ("shift", "iterations", "gate", "centred")
        if f"base_{option}" in fields
    }
    if name not in MODELS:
        raise ValueError(f"unknown model name {name!r}{_suggestion(str(name), MODELS)}")
    if base not in BASES:
        raise ValueError(f"base must be one of {BASES}, got {base!r}")
    model = MODELS[name]
    valid = {field.name: field for field in dataclasses.fields(model) if field.init}
    for flax_field in ("parent", "name"):
        del valid[flax_field]
    for key in fields:
        if key not in valid:
            raise ValueError(f"model {name!r} has no field {key!r}{_suggestion(key, valid)}")
    required = {key for key, field in valid.items() if field.default is dataclasses.MISSING}
    if missing := sorted(required - set(fields)):
        raise ValueError(f"model {name!r} needs the fields {missing}")
    fields = {key: _checked(f"{name}.{key}", fields[key], valid[key].type) for key in fields}
    of_base = {field.name: field.type for field in dataclasses.fields(with_base.WithBase)}
    options = {
        option: _checked(f"base_{option}", value, of_base[option])
        for option, value in options.items()
    }
    if base == "none":
        return model(**fields)
    if fields.get("centred"):
        raise ValueError("centred must be False for a model with a base; set base_centred instead")
    return with_base.correct(model, fields, base=base, **options)


def _on_heat_base(name: str | None, fields: dict[str, Any]) -> WithHeatBase:
    extent = fields.pop("base_extent", None)
    if not isinstance(extent, tuple) or len(extent) != 2:
        raise ValueError(f"base_extent must be the window's (time, length), got {extent!r}")
    for side in extent:
        checks.number("base_extent", side, low=0)
    model = build({"name": name, **fields, "in_channels": BURGERS.input_channels + 1})
    return WithHeatBase(model=model, extent=tuple(map(float, extent)))


# Zero is a meaning of its own: no boundary data, the spacing of the input.
_MAY_BE_ZERO = ("boundary_channels", "size", "base_iterations")
_LARGEST_PADDING = 4.0


def _checked(name: str, value: Any, annotation: Any) -> Any:
    """The value of a field, if its annotation and its meaning allow it; else a ValueError."""
    field = name.rpartition(".")[2]
    options = typing.get_args(annotation)
    if annotation is bool:
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return bool(value)
    if annotation is float:
        checks.number(name, value, low=0, high=_LARGEST_PADDING if field == "padding" else math.inf)
        return float(value)
    if annotation is int or annotation == int | None:
        if value is None and annotation is not int:
            return None
        return checks.integer(name, value, least=0 if field in _MAY_BE_ZERO else 1)
    if typing.get_origin(annotation) is tuple:
        if not isinstance(value, tuple) or not value:
            raise ValueError(f"{name} must be one whole number for each axis, got {value!r}")
        return tuple(checks.integer(name, entry) for entry in value)
    if typing.get_origin(annotation) is typing.Literal:
        checks.one_of(name, value, options)
    return value


def _static(value: Any) -> Any:
    """Lists as tuples: fields of a module are compile-time constants and have to be hashable."""
    return tuple(value) if isinstance(value, list) else value


def _suggestion(word: str, valid: Mapping[str, Any]) -> str:
    return f"{checks.hint(word, valid, cutoff=0.5)} (one of {', '.join(sorted(valid))})"
