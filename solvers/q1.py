"""Bilinear (Q1) finite elements for -∇·(a∇u) - κ u on a rectangle, matrix-free.

    (A u)_v = ∫ a ∇u·∇v - κ ∫ u v - γ ∮ u v          for every nodal function v

Nodes are ``[nx, ny]`` with both end points, ``extent = (Lx, Ly)``. An element takes the mean of `a`
at its four corners. Bilinear elements are tensor products: with the stiffness K and the mass M of
the linear element, an element matrix is a (K_x ⊗ M_y + M_x ⊗ K_y) - κ M_x ⊗ M_y.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

# Of the linear element on [0, 1]; an element of length h has STIFFNESS / h and MASS * h.
STIFFNESS = np.array([[1.0, -1.0], [-1.0, 1.0]])
MASS = np.array([[2.0, 1.0], [1.0, 2.0]]) / 6

Nodal = Inexact[Array, "x y"]


class Operator(NamedTuple):
    """The discrete operator A; a pytree.

    Attributes:
      coefficient: a at the nodes, real and positive.
      extent: side lengths (Lx, Ly).
      shift: κ, a scalar (k² for Helmholtz); None for no such term.
      robin: γ, a scalar of the condition a ∂ₙu = γ u + g (ikβ for the impedance condition); None
        for Dirichlet conditions.
    """

    coefficient: Float[Array, "x y"]
    extent: tuple[float | Array, float | Array] = (1.0, 1.0)
    shift: Inexact[Array, ""] | None = None
    robin: Inexact[Array, ""] | None = None

    @property
    def spacing(self) -> tuple[float | Array, float | Array]:
        (nx, ny), (lx, ly) = self.coefficient.shape, self.extent
        return lx / (nx - 1), ly / (ny - 1)


def cell_means(coefficient: Nodal) -> Inexact[Array, "x-1 y-1"]:
    """Mean of the four corners of every element."""
    rows = coefficient[1:] + coefficient[:-1]
    return (rows[:, 1:] + rows[:, :-1]) / 4


def apply(operator: Operator, u: Nodal) -> Nodal:
    """A u on all nodes: the outer ring has natural conditions, Robin's if `robin` is given."""
    hx, hy = operator.spacing
    cells = cell_means(operator.coefficient).astype(u.dtype)
    corner = [[u[:-1, :-1], u[:-1, 1:]], [u[1:, :-1], u[1:, 1:]]]
    difference_x = [corner[1][q] - corner[0][q] for q in (0, 1)]
    difference_y = [corner[p][1] - corner[p][0] for p in (0, 1)]
    flux_x = [_like(hy / hx, u) * cells * _weighted(MASS[q], difference_x) for q in (0, 1)]
    flux_y = [_like(hx / hy, u) * cells * _weighted(MASS[p], difference_y) for p in (0, 1)]
    out = sum(
        jnp.pad((2 * p - 1) * flux_x[q] + (2 * q - 1) * flux_y[p], ((p, 1 - p), (q, 1 - q)))
        for p in (0, 1)
        for q in (0, 1)
    )
    if operator.shift is not None:
        out -= operator.shift.astype(u.dtype) * volume_load(u, operator.extent)
    if operator.robin is not None:
        out -= operator.robin.astype(u.dtype) * boundary_load(u, operator.extent)
    return out


def volume_load(forcing: Nodal, extent: tuple[float | Array, float | Array]) -> Nodal:
    """∫ f v for every nodal function v, f bilinear between the nodes."""
    for axis in (0, 1):
        step = extent[axis] / (forcing.shape[axis] - 1)
        forcing = _like(step, forcing) * _line_mass(forcing, axis)
    return forcing


def boundary_load(flux: Nodal, extent: tuple[float | Array, float | Array]) -> Nodal:
    """∮ g v for every nodal function v, g linear between the nodes; only g's outer ring is read."""
    out = jnp.zeros_like(flux)
    for axis in (0, 1):
        step = extent[1 - axis] / (flux.shape[1 - axis] - 1)
        weighted = _like(step, flux) * _line_mass(flux, 1 - axis)
        ends = jnp.moveaxis(weighted, axis, 0).at[1:-1].set(0)
        out += jnp.moveaxis(ends, 0, axis)
    return out


def _line_mass(u: Nodal, axis: int) -> Nodal:
    """Mass matrix of linear elements of unit length along one axis."""
    low, high = (
        jax.lax.slice_in_dim(u, first, u.shape[axis] - 1 + first, axis=axis) for first in (0, 1)
    )
    pad = lambda part, before: jnp.pad(  # noqa: E731
        part, [(before, 1 - before) if d == axis else (0, 0) for d in range(u.ndim)]
    )
    return pad(_weighted(MASS[0], [low, high]), 0) + pad(_weighted(MASS[1], [low, high]), 1)


def _weighted(weights: np.ndarray, parts: list[Array]) -> Array:
    return sum(float(weight) * part for weight, part in zip(weights, parts, strict=True))


def _like(value: float | Array, array: Array) -> Array:
    return jnp.asarray(value).astype(array.dtype)
