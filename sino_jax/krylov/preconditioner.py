"""Inverses of the operator of a constant coefficient, by sine transforms, as preconditioners."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from sino_jax.base import elements
from sino_jax.base.sine_transform import sine_transforms

# Of k². ``python -m benchmarks shift`` compares it with others.
SHIFT = 0.005


def shifted_inverse(
    coefficient: Float[Array, "x y 1"],
    k: Float[Array, ""],
    *,
    shift: float = SHIFT,
    extent: Sequence[float] = (1.0, 1.0),
) -> Callable[[Complex[Array, "inner_x inner_y 1"]], Complex[Array, "inner_x inner_y 1"]]:
    """M = D (K - (1 + i shift) c k² E)⁻¹ D, an approximate inverse of the matrix of
    -∇·(a∇u) - k² u, as a function of one load at the inner nodes.

    K and E are stiffness and mass matrix of the coefficient one, D = a^(-1/2) at the nodes and c
    the mean of 1/a: with w = √a u the equation reads -Δw - (k²/a) w = lower-order terms, so that M
    is exact for short waves whatever a is, and for all waves if a is constant.

    Args:
      coefficient: a > 0 at all nodes.
      k: wave number.

    Keyword args:
      shift: keeps M away from the resonances of the constant coefficient.
      extent: side lengths of the rectangle.
    """
    shape = coefficient.shape[:2]
    step = elements.steps(shape, extent)
    stiffness, mass = (
        jnp.asarray(step[0] * step[1] * values, k.dtype)
        for values in elements.eigenvalues(shape, extent)
    )
    reaction = k**2 * jnp.mean(1 / coefficient)
    real = stiffness - reaction * mass
    inverse = (1 / jax.lax.complex(real, -shift * reaction * mass))[..., None]
    scaling = jax.lax.rsqrt(coefficient[1:-1, 1:-1])

    def apply(load):
        weights = scaling.astype(load.dtype)
        return weights * sine_transforms(inverse * sine_transforms(weights * load))

    return apply
