"""The finite element problem of a batch as a linear system for the values at inner nodes."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax.base import elements
from sino_jax.krylov.history import Fields, Map
from sino_jax.types import Batch, PerExample

INNER = ((0, 0), *elements.INNER)


class System(NamedTuple):
    """-∇·(a∇u) - k² u = 0 at the inner nodes.

    Attributes:
      matvec: symmetric; of fields that are zero on the boundary, given at inner nodes.
      lack: of whole fields ``[batch, x, y, 1]``: what is missing for them to be solutions.
    """

    matvec: Map
    lack: Callable[[Batch], Fields]


def system(
    coefficient: Float[Array, "batch x y 1"], k: PerExample, extent: Sequence[float]
) -> System:
    """The problems of a batch; k is zero for Darcy flow."""

    def image(fields):
        def one(a, u, k):
            return elements.residual_load(a, u, k=k, extent=extent)

        return jax.vmap(one)(coefficient, fields, k)

    return System(lambda inner: image(jnp.pad(inner, INNER)), lambda fields: -image(fields))
