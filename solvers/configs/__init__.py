"""Configs of the data sets: ``get_config("preset,field=value")`` for each equation.

Every config has these fields, and those of its equation:

    name              directory below the output directory
    equation          as in `solvers.recipes`
    seed              of everything random
    dtype             of the stored real numbers; the solvers run in float64
    points            ((scale, points a side of the solver's grid), ...): one grid for each scale
    train_scales, train_samples, val_scales, val_samples, test_scales, test_samples
                      validation data is for choices that training leaves open: its samples are
                      those of neither other split, and some of its scales are seen in none
    block_points      grid points that are solved together; bounds the memory
    limits            for each measure of quality the largest value that a sample may have
"""

import ast
import difflib
from collections.abc import Mapping
from typing import Any

import ml_collections


def resolve(
    text: str, common: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]
) -> ml_collections.ConfigDict:
    """The locked config that `text` asks for.

    Args:
      text: ``"preset"`` or ``"preset,field=value,..."``. A tuple is written ``4+8``.
      common: fields of all presets.
      presets: for each preset the fields in which it differs.

    Raises:
      ValueError: unknown presets and fields, with the nearest one that exists, and values of
        another type than the field's.
    """
    preset, *changes = text.split(",")
    fields = {**common, **presets[_known(preset, presets, "preset")]}
    fields["name"] = f"{fields['equation']}-{preset}"
    for change in changes:
        field, _, value = change.partition("=")
        fields[field] = _parse(value, fields[_known(field, fields, "field")], field)
    return ml_collections.ConfigDict(fields).lock()


def _known(name: str, names: Mapping[str, Any], what: str) -> str:
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"there is no {what} {name!r}, only {', '.join(sorted(names))}; "
            f"did you mean {nearest!r}?"
        )
    return name


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _parse(text: str, default: Any, field: str) -> Any:
    if isinstance(default, str):
        return text
    try:
        if isinstance(default, tuple) and all(isinstance(entry, int | float) for entry in default):
            return tuple(_number(part) for part in text.split("+") if text)
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = None
    if isinstance(default, float) and isinstance(value, int):
        value = float(value)
    if type(value) is not type(default):
        raise ValueError(f"{field} takes a value like {default!r} (tuples as 4+8), got {text!r}")
    return value
