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
from types import MappingProxyType
from typing import Any

import ml_collections

from solvers.configs import rules

# They say what the config is: a change would file it under the name of another.
FIXED = ("experiment", "equation", "preset", "changes", "train")


def resolve(
    text: str,
    common: Mapping[str, Any],
    presets: Mapping[str, Mapping[str, Any]],
    *,
    more_rules: Mapping[str, rules.Rule] = MappingProxyType({}),
) -> ml_collections.ConfigDict:
    """The locked config that `text` asks for.

    Args:
      text: ``"preset"`` or ``"preset,field=value,..."``. A tuple is written ``4+8``, one of tuples
        ``4x8+8x4``.
      common: fields of all presets.
      presets: for each preset the fields in which it differs.
      more_rules: for the values of fields, beside and before those of `solvers.configs.rules`.

    Raises:
      ValueError: unknown presets and fields, with the nearest one that exists, repeated fields,
        fields that cannot be changed, and values of another type or range than the field's.
    """
    preset, *changes = text.split(",")
    fields = {**common, **presets[_known(preset, presets, "preset")]}
    fields["name"] = f"{fields['equation']}-{preset}"
    changed = set()
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise ValueError(f"a change is written field=value, got {change!r}")
        _known(field, fields, "field")
        if field in changed:
            raise ValueError(f"{field} is given twice; give it once")
        if field in FIXED:
            raise ValueError(f"{field} is {fields[field]!r} here and cannot be changed")
        changed.add(field)
        fields[field] = _parse(value, fields[field], field)
    for field, value in fields.items():
        rules.check(field, value, {**rules.RULES, **more_rules})
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


def _entry(text: str) -> int | float | tuple[int | float, ...]:
    """One entry of a tuple: a number, or several for the axes of a box."""
    numbers = tuple(map(_number, text.split("x")))
    return numbers if len(numbers) > 1 else numbers[0]


def _parse(text: str, default: Any, field: str) -> Any:
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() not in rules.TRUTH:
            raise ValueError(f"{field} takes true or false, got {text!r}")
        return rules.TRUTH[text.lower()]
    try:
        if isinstance(default, tuple) and not any(isinstance(entry, str) for entry in default):
            return tuple(_entry(part) for part in text.split("+") if text)
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, OverflowError, MemoryError, RecursionError):
        value = None
    if isinstance(default, float) and isinstance(value, int):
        value = float(value)
    # A truth value is an int to Python, but not to a reader.
    if type(value) is not type(default):
        raise ValueError(
            f"{field} takes a value like {default!r} (tuples as 4+8, boxes as 4x8), got {text!r}"
        )
    return value
