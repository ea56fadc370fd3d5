"""What an iteration returns, and inner products of one example each in a batch of fields."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Inexact, Int

Fields = Inexact[Array, "batch *field"]
# A linear map of every field of a batch.
Map = Callable[[Fields], Fields]
PerExample = Float[Array, "batch"]


class Iterations(NamedTuple):
    """Result of an iteration on a batch of systems.

    Attributes:
      solution: the last iterate of every example.
      count: iterations that every example made.
      history: ``[most iterations + 1, batch]``, the measure that is compared with the tolerance, of
        the start and after each iteration; NaN after an example's last.
      reached: whether the measure came down to the tolerance.
    """

    solution: Fields
    count: Int[Array, "batch"]
    history: Float[Array, "measures batch"]
    reached: Bool[Array, "batch"]


def inner(left: Fields, right: Fields) -> Inexact[Array, "batch"]:
    """Σ conj(left) right for every example."""
    axes = tuple(range(1, left.ndim))
    return jnp.sum(jnp.conj(left) * right, axis=axes)


def each(values: Inexact[Array, "batch"], like: Fields) -> Inexact[Array, "batch *ones"]:
    """One value per example, as a factor of the batch `like` in its dtype."""
    return values.reshape(-1, *(1,) * (like.ndim - 1)).astype(like.dtype)


def quotient(numerator: Array, denominator: Array) -> Array:
    """numerator / denominator, and zero, with zero gradients, where the denominator is zero."""
    usable = denominator != 0
    return jnp.where(usable, numerator / jnp.where(usable, denominator, 1), 0)
