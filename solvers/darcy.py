"""Darcy flow: -∇·(a∇u) = 0 on a rectangle with Dirichlet data, and its two-phase random media.

The random medium takes two values, a = 2 + 10·1[â > 0], where â is a Gaussian random field whose
coefficient at frequency ξ has the standard deviation exp(-(σ|ξ|)^½). σ = 4 / scale is a length: the
half of a sample of scale 8 is, in distribution, a sample of scale 4.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, PRNGKeyArray

from solvers import checks, elliptic, q1, random_fields

LOW_PERMEABILITY, JUMP = 2.0, 10.0
# Modes of â for each unit of scale: the Nyquist frequency of 32 points for each unit.
MODES_PER_SCALE = 32
# exp(-|ξ|) is below single precision from there on.
BOUNDARY_MODES = 16


def solve(
    coefficient: Inexact[Array, "x y"],
    boundary: Inexact[Array, "_ _"],
    *,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Float[Array, "x y"]:
    """Solution of -∇·(a∇u) = 0 with u = g on the boundary, at the nodes.

    Args:
      coefficient: a at the nodes of a grid that contains both end points; positive. An element
        takes the mean of its four corners.
      boundary: g, read on its outer ring only.
      extent: side lengths of the rectangle.

    Raises:
      ValueError: for grids below 3 x 3 nodes, unequal shapes, integers, sides that are not
        positive, and, outside of `jit` and `vmap`, for a coefficient that is not positive and
        finite and boundary values that are not finite.
    """
    coefficient = checks.array("coefficient", coefficient, ndim=2)
    boundary = checks.array("boundary", boundary, ndim=2, real=False)
    operator = q1.Operator(coefficient, extent)
    elliptic.check(operator)
    checks.same_shape("boundary", boundary, coefficient.shape, "coefficient")
    checks.finite_ring("boundary", boundary)
    return elliptic.solve(operator, jnp.zeros_like(coefficient), dirichlet=boundary)


def sample(key: PRNGKeyArray, n: int, scale: float) -> elliptic.Instance:
    """A random instance on n x n nodes; the same key gives the same problem for every n."""
    coefficient_key, boundary_key = jax.random.split(key)
    coefficient = sample_coefficient(coefficient_key, (n, n), scale)
    boundary = sample_boundary(boundary_key, (n, n))
    return elliptic.Instance(
        coefficient, boundary, jnp.asarray(scale, coefficient.dtype), solve(coefficient, boundary)
    )


def sample_coefficient(key: PRNGKeyArray, shape: tuple[int, int], scale: float) -> Array:
    """A two-phase medium."""
    spectrum = random_fields.stretched_exponential(4 / scale, 0.5)
    modes = max(2, round(MODES_PER_SCALE * scale))
    field = random_fields.sample(key, shape, spectrum, modes=modes)
    return LOW_PERMEABILITY + JUMP * (field > 0).astype(field.dtype)


def sample_boundary(key: PRNGKeyArray, shape: tuple[int, int]) -> Array:
    """Smooth boundary values on the outer ring, zero inside; alike at every scale."""
    spectrum = random_fields.stretched_exponential(1.0, 1.0)
    field = random_fields.sample(key, shape, spectrum, modes=BOUNDARY_MODES)
    return field.at[1:-1, 1:-1].set(0)
