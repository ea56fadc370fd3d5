"""Bilinear (Q1) finite elements for -∇·(a∇u) - k² u on a rectangle, matrix-free.

Nodes are ``[x, y, channel]`` with both end points. Rows of the operator belong to the inner nodes,
its columns to all nodes: applied to a field it gives the residual, boundary data included; applied
to a field that is zero on the outer ring it is the symmetric matrix of the Dirichlet problem. An
element takes the mean of `a` at its four corners, which makes this the discretisation of
`solvers.q1`. On fields that vanish on the boundary the sines of `sino_jax.base.sine_transform` are
eigenvectors of the stiffness and the mass matrix of a constant coefficient.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sino_jax.base.sine_transform import angles
from sino_jax.types import Sample

INNER = ((1, 1), (1, 1), (0, 0))


def residual_load(
    coefficient: Float[Array, "x y 1"],
    prediction: Sample,
    *,
    k: float | Float[Array, ""] = 0.0,
    extent: Sequence[float] = (1.0, 1.0),
) -> Inexact[Array, "inner_x inner_y _"]:
    """r_i = ∫ a ∇u·∇φ_i - k² u φ_i for the bilinear nodal function φ_i of every inner node."""
    step = steps(prediction.shape[:2], extent)
    k_squared = jnp.asarray(k, prediction.dtype) ** 2
    mass = apply_mass(apply_mass(prediction, 0), 1)
    diffusion = diffusion_load(coefficient, prediction, extent=extent)
    return diffusion - k_squared * step[0] * step[1] * mass


def diffusion_load(
    coefficient: Float[Array, "x y 1"], field: Sample, *, extent: Sequence[float] = (1.0, 1.0)
) -> Inexact[Array, "inner_x inner_y _"]:
    """∫ a ∇u·∇φ for the bilinear nodal function φ of every inner node."""
    cells = cell_means(coefficient).astype(field.dtype)
    step = steps(field.shape[:2], extent)

    def along_first(cells: Array, field: Array, weight: float) -> Array:
        difference = weight * jnp.diff(field, axis=0)
        low, high = difference[:, :-1], difference[:, 1:]  # on both edges of each element
        to_low, to_high = cells * (2 * low + high) / 6, cells * (low + 2 * high) / 6
        return -jnp.diff(to_high[:, :-1] + to_low[:, 1:], axis=0)

    transposed = (jnp.swapaxes(array, 0, 1) for array in (cells, field))
    second = along_first(*transposed, step[0] / step[1])
    return along_first(cells, field, step[1] / step[0]) + jnp.swapaxes(second, 0, 1)


def cell_means(coefficient: Float[Array, "x y 1"]) -> Float[Array, "cell_x cell_y 1"]:
    """Mean of the four corners of every element."""
    rows = coefficient[1:] + coefficient[:-1]
    return (rows[:, 1:] + rows[:, :-1]) / 4


def apply_mass(values: Sample, axis: int) -> Array:
    """The mass stencil (1, 4, 1) / 6 of linear elements at the inner nodes of an axis."""
    v = jnp.moveaxis(values, axis, 0)
    return jnp.moveaxis((v[:-2] + 4 * v[1:-1] + v[2:]) / 6, 0, axis)


def eigenvalues(shape: Sequence[int], extent: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues ``[inner_x, inner_y]`` of the stiffness (of -Δ) and the mass over the cell area.

    They belong to the sines that vanish on the boundary of a grid of `shape` nodes.
    """
    theta = [angles(points - 2) for points in shape]
    step = steps(shape, extent)
    stiffness = [4 * np.sin(t / 2) ** 2 / h**2 for t, h in zip(theta, step, strict=True)]
    mass = [(2 + np.cos(t)) / 3 for t in theta]
    return np.outer(stiffness[0], mass[1]) + np.outer(mass[0], stiffness[1]), np.outer(*mass)


def steps(shape: Sequence[int], extent: Sequence[float]) -> list[float]:
    """Distance of neighbouring nodes on both axes."""
    if len(extent) != 2 or min(extent) <= 0:
        raise ValueError(f"extent must be two positive side lengths, got {tuple(extent)}")
    return [length / (points - 1) for length, points in zip(extent, shape, strict=True)]
