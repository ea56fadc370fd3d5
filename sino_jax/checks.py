"""Checks of options: one line that names the argument, what came, and what is expected."""

import difflib
import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np


def integer(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number, also one of NumPy's, as an int; compiled shapes are made of these."""
    try:
        if isinstance(value, bool | np.bool_ | jax.core.Tracer):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def is_single(value: Any) -> bool:
    """Whether one number was given, not one for each axis. `integer` then says what is wrong."""
    return isinstance(value, numbers.Number) or np.ndim(value) == 0


def number(
    name: str, value: Any, *, low: int | float = -math.inf, high: int | float = math.inf
) -> None:
    """Raises a ValueError unless `value` is a finite number between `low` and `high`.

    A traced value is not known yet and passes.
    """
    if isinstance(value, jax.core.Tracer):
        return
    try:
        if isinstance(value, str | bytes):  # NumPy would read a number from it
            raise TypeError
        array = np.asarray(value)
        concrete = float(array) if array.ndim == 0 else None
    except (TypeError, ValueError):
        concrete = None
    if concrete is None:
        raise ValueError(f"{name} must be one number, got {value!r}")
    if not (math.isfinite(concrete) and low <= concrete <= high):
        least = f", at least {low:g}" if low > -math.inf else ""
        most = f", at most {high:g}" if high < math.inf else ""
        raise ValueError(f"{name} must be finite{least}{most}, got {concrete}")


def one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raises a ValueError unless `value` is one of these words; suggests the nearest."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}{hint(value, allowed)}")


def hint(value: Any, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """``; did you mean ...?`` with the nearest of these words, or nothing if none is near."""
    nearest = difflib.get_close_matches(str(value), known, n=1, cutoff=cutoff)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def native(name: str, array: Any) -> None:
    """Raises a ValueError for a NumPy array in another byte order than the machine's.

    JAX takes no other, and says so in a way that names no argument. `sino_jax.operator` and
    `sino_jax.data` convert such arrays.
    """
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        raise ValueError(
            f"{name} must be in native byte order, got {array.dtype.str}: convert it by "
            f"{name}.astype({array.dtype.name!r})"
        )
