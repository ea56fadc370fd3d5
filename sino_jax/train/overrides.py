"""Changes of a config by text, for command lines.

overrides.apply(config, ["optimizer.name=lion", "train.accumulate=2", "data.test=a:b"])
"""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ml_collections import ConfigDict

from sino_jax.train import config as configs
from sino_jax.train import optimizer


def apply(config: configs.ConfigLike, changes: Iterable[str]) -> dict[str, Any]:
    """`config` with fields changed by text, as in ``["optimizer.name=lion", "accumulate=2"]``.

    A leading ``train.`` is allowed, for command lines that have fields of other parts. Values take
    the type of the field: true or false, a whole number, a number, text, or directories separated
    by colons; those of open sections are read as Python literals (tuples also as ``17+25``), else
    as text. Names and types are
    checked here, ranges by `sino_jax.train.config.complete`.
    """
    result = configs.to_dict(config)
    values: dict[str, str] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        path = path.strip().removeprefix("train.")
        if not equals:
            raise ValueError(f"a change has the form field=value, got {change!r}")
        if path in values:
            raise ValueError(f"config.{path} is changed twice: to {values[path]} and {text}")
        values[path] = text.strip()
    # Which arguments an optimiser has depends on its name.
    for path in sorted(values, key=lambda path: path != "optimizer.name"):
        fields = path.split(".")
        chosen = result.get("optimizer", {}).get("name", configs.defaults().optimizer.name)
        value = _parse(fields, values[path], optimizer_name=chosen)
        section = result
        for name in fields[:-1]:
            section = section.setdefault(name, {})
        section[fields[-1]] = value
    return result


def _parse(fields: Sequence[str], text: str, *, optimizer_name: str) -> Any:
    """The value that `text` has for the field of that path."""
    path, place = ".".join(fields), configs.defaults()
    for depth, name in enumerate(fields):
        where = ".".join(["config", *fields[:depth]])
        if not isinstance(place, ConfigDict):
            raise ValueError(f"{where} is no section of fields, got {path}={text}")
        if fields[0] in configs.OPEN_SECTIONS and depth:
            place = None
            break
        known = {**place}
        if fields[:depth] == ["optimizer"]:
            known = {**optimizer.arguments(optimizer_name), **known}
        configs.reject_unknown(name, tuple(known), where=where)
        place = known[name]
    match place:
        case ConfigDict():
            raise ValueError(f"config.{path} is a section of fields, got {text!r}")
        case str():
            return text
        case ():
            return tuple(text.split(":")) if text else ()
        case bool():
            value = {"true": True, "false": False}.get(text.lower(), text)
        case None if re.fullmatch(r"[\d.]+(\+[\d.]+)+", text):  # as in configs of experiments
            value = tuple(ast.literal_eval(part) for part in text.split("+"))
        case _:
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                value = text
    return value if place is None else configs.checked(path, value, place)
