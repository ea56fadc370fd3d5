"""Checks of arguments: a ValueError of one line says the argument, what it takes and what came.

Shapes and types are always checked; values only where they are known, that is not inside of `jit`,
`vmap` and `grad`.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def array(name: str, values: Any, *, ndim: int, real: bool = True) -> Array:
    """`values` as an array of `ndim` axes of floating-point numbers, complex ones if not `real`.

    Integers are refused: a parameter that is brought to their type would lose its fraction.
    """
    try:
        values = jnp.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.60}") from None
    kind, words = (jnp.floating, "a real floating-point") if real else (jnp.inexact, "a floating")
    if values.ndim != ndim or not jnp.issubdtype(values.dtype, kind):
        raise ValueError(
            f"{name} must be {words} array of {ndim} axes, "
            f"got {values.dtype} of shape {values.shape}"
        )
    return values


def finite(name: str, values: Array) -> None:
    """Every value is a number."""
    if isinstance(values, jax.core.Tracer):
        return
    bad = int(np.size(values) - np.isfinite(np.asarray(values)).sum())
    if bad:
        raise ValueError(
            f"{name} must be finite, got {bad} of {np.size(values)} values that are not"
        )


def finite_ring(name: str, values: Array) -> None:
    """The values on the outer ring, the only ones that are read, are numbers."""
    if isinstance(values, jax.core.Tracer):
        return
    values = np.asarray(values)
    ring = np.ones(values.shape, bool)
    ring[1:-1, 1:-1] = False
    bad = int((ring & ~np.isfinite(values)).sum())
    if bad:
        raise ValueError(
            f"{name} must be finite on its outer ring, got {bad} of {ring.sum()} that are not"
        )


def same_shape(name: str, values: Array, shape: Sequence[int], of: str) -> None:
    if values.shape != tuple(shape):
        raise ValueError(f"{name} must have the shape {tuple(shape)} of {of}, got {values.shape}")


def positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """One finite number above zero."""
    if isinstance(value, jax.core.Tracer):
        return
    number = _number(value)
    if not (math.isfinite(number) and (number > 0 or (or_zero and number == 0))):
        words = "a finite number, not negative" if or_zero else "a positive, finite number"
        raise ValueError(f"{name} must be {words}, got {value!r:.60}")


def finite_number(name: str, value: Any) -> None:
    """One finite number."""
    if not isinstance(value, jax.core.Tracer) and not math.isfinite(_number(value)):
        raise ValueError(f"{name} must be a finite number, got {value!r:.60}")


def extent(sides: Any) -> None:
    """Side lengths of a rectangle."""
    try:
        pair = tuple(sides)
    except TypeError:
        pair = ()
    if len(pair) != 2:
        raise ValueError(f"extent must be two side lengths, got {sides!r:.60}")
    for side in pair:
        positive("a side of extent", side)


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    if isinstance(value, list | dict) or value not in known:
        raise ValueError(f"{name} must be one of {sorted(known)}, got {value!r:.60}")


def _number(value: Any) -> float:
    """The value of a real scalar; NaN for whatever is none."""
    if isinstance(value, str | bool) or np.ndim(value) or np.iscomplexobj(value):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
