"""Base solutions: cheap fields that take given Dirichlet data exactly.

    coons      transfinite interpolation: smooth, whatever the equation
    harmonic   the Q1 finite element solution of -Δu = 0
    helmholtz  the Q1 finite element solution of -a Δu - k² u = 0 for a constant a

On an n0 × n1 node-centred grid over a rectangle the bilinear (Q1) stiffness and consistent mass
matrices are tensor products of three-point stencils, so that sine transforms invert them exactly:
for a constant coefficient the last two are the finite element solution itself, not an
approximation of it. All three are linear in the boundary data, differentiable in everything, act
on one sample ``[x, y, channel]``, real or complex, and read only the outer ring of `boundary`.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sino_jax.base import elements
from sino_jax.base.sine_transform import sine_transforms
from sino_jax.types import Sample

RealScalar = float | Float[Array, ""]


def coons(boundary: Sample) -> Sample:
    """Transfinite (bilinearly blended Coons) interpolation of the boundary values.

    The sum of the linear interpolations between opposite sides, less the bilinear interpolation
    of the corners; exact for fields that are a sum of f(x) (c + d y) and (a + b x) f(y).
    """
    _check_boundary(boundary)
    first, second, _ = boundary.shape
    along_first = _between_sides(_sides(boundary, 0), 0, first)
    along_second = _between_sides(_sides(boundary, 1), 1, second)
    corners = _between_sides(_sides(along_second, 0), 0, first)
    return along_first + along_second - corners


def harmonic(boundary: Sample, *, extent: Sequence[float] = (1.0, 1.0)) -> Sample:
    """Discrete harmonic extension: -Δu = 0 with u = g, in bilinear finite elements.

    Args:
      boundary: field whose outer ring holds g.
      extent: side lengths of the rectangle (only their ratio matters).
    """
    return _solve_by_sine_transforms(boundary, jnp.zeros((), boundary.real.dtype), extent)


def helmholtz(
    boundary: Sample,
    k: RealScalar,
    coefficient: RealScalar,
    *,
    shift: float = 0.0,
    extent: Sequence[float] = (1.0, 1.0),
) -> Sample:
    """-a Δu - k² u = 0 with u = g, for a constant a, in bilinear finite elements.

    Args:
      boundary: field whose outer ring holds g.
      k: wave number.
      coefficient: the constant a > 0, such as the mean of a variable one.
      shift: distance kept from Dirichlet resonances, as a fraction of k². The inverse 1/λ of an
        eigenvalue λ of -aΔ - k² is replaced by the real part of 1/(λ + i shift k²), that is by
        λ / (λ² + shift² k⁴). A resonant sine then keeps its amplitude in the Coons interpolation,
        and others change by no more than (shift k² / λ)². With 0 the solution is exact, and
        unbounded at resonances.
      extent: side lengths of the rectangle.
    """
    if shift < 0:
        raise ValueError(f"shift must not be negative, got {shift}")
    reaction = jnp.asarray(k**2 / coefficient, boundary.real.dtype)
    return _solve_by_sine_transforms(boundary, reaction, extent, shift=shift)


def poisson(
    load: Inexact[Array, "inner_x inner_y _"], *, extent: Sequence[float] = (1.0, 1.0)
) -> Inexact[Array, "inner_x inner_y _"]:
    """The inner nodes of -Δv = f with v = 0 on the boundary, in bilinear finite elements.

    Args:
      load: ∫ f φ for the nodal function φ of every inner node.
      extent: side lengths of the rectangle.
    """
    shape = tuple(points + 2 for points in load.shape[:2])
    steps = elements.steps(shape, extent)
    zero = jnp.zeros((), load.real.dtype)
    inverse = _q1_inverse_eigenvalues(shape, zero, extent, 0.0) / (steps[0] * steps[1])
    return sine_transforms(sine_transforms(load) * inverse[..., None].astype(load.dtype))


def square_cells(shape: Sequence[int]) -> tuple[float, ...]:
    """Extent of a node-centred grid of `shape` with square cells and unit area.

    This is the extent of a sub-domain that was rescaled by λ, the geometric mean of its side
    ratios, out of a domain with square cells and unit area (see `sino_jax.grid.rescaled_extent`).
    """
    sides = [points - 1 for points in shape]
    return tuple(float(side / np.prod(sides) ** (1 / len(sides))) for side in sides)


def _solve_by_sine_transforms(
    boundary: Sample, reaction: Float[Array, ""], extent: Sequence[float], *, shift: float = 0.0
) -> Sample:
    """Solves -Δu - reaction u = 0, u = g: Coons interpolation and a correction that vanishes on
    the boundary. The smooth start keeps the right-hand side, and with it round-off, small."""
    _check_boundary(boundary)
    steps = elements.steps(boundary.shape[:2], extent)
    start = coons(boundary)
    mass = elements.apply_mass(elements.apply_mass(start, 0), 1)
    residual = _negative_laplacian_of_coons(boundary, steps) - reaction.astype(mass.dtype) * mass
    inverse = _q1_inverse_eigenvalues(boundary.shape[:2], reaction, extent, shift)
    coefficients = sine_transforms(residual) * inverse[..., None].astype(residual.dtype)
    return start - jnp.pad(sine_transforms(coefficients), elements.INNER)


def _negative_laplacian_of_coons(boundary: Sample, steps: Sequence[float]) -> Array:
    """The Q1 stiffness over the cell area, applied to `coons(boundary)`, at the inner nodes.

    The second difference along an axis sees only the interpolation across it, which is linear in
    the other axis and so unchanged by the mass stencil there. Neighbours on the sides are
    subtracted first: sums, or the interpolated field, would lose digits to rounding.
    """
    total = 0
    for axis, across in ((0, 1), (1, 0)):
        curvature = -jnp.diff(_sides(boundary, across), n=2, axis=axis) / steps[axis] ** 2
        interpolated = _between_sides(curvature, across, boundary.shape[across])
        total += jax.lax.slice_in_dim(interpolated, 1, -1, axis=across)
    return total


def _q1_inverse_eigenvalues(
    shape: Sequence[int], reaction: Float[Array, ""], extent: Sequence[float], shift: float
) -> Float[Array, "x y"]:
    """λ / (λ² + shift²) for the Q1 operator over the cell area on fields zero on the boundary."""
    laplacian, identity = (
        jnp.asarray(values, reaction.dtype) for values in elements.eigenvalues(shape, extent)
    )
    eigenvalues = laplacian - reaction * identity
    return eigenvalues / (eigenvalues**2 + (shift * reaction * identity) ** 2)


def _sides(field: Sample, axis: int) -> Array:
    """The first and the last slice along an axis."""
    return jnp.take(field, jnp.array([0, field.shape[axis] - 1]), axis=axis)


def _between_sides(sides: Sample, axis: int, points: int) -> Array:
    """Linear interpolation along `axis` to `points` nodes between two slices."""
    weight = jnp.linspace(0, 1, points, dtype=sides.real.dtype).astype(sides.dtype)
    weight = weight.reshape([points if i == axis else 1 for i in range(sides.ndim)])
    low, high = jnp.split(sides, 2, axis=axis)
    return (1 - weight) * low + weight * high


def _check_boundary(boundary: Sample) -> None:
    if boundary.ndim != 3 or min(boundary.shape[:2]) < 3:
        raise ValueError(
            "boundary must be one sample [x, y, channel] with at least 3 points on each axis, "
            f"got shape {boundary.shape}"
        )
