"""A few preconditioned iterations on one field, unrolled: differentiable, the part of a model.

Derivatives are those of the iteration itself, not of the solution that it would converge to, which
is what `jax.scipy.sparse.linalg` differentiates.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import base
from sino_jax.base import elements
from sino_jax.krylov.history import quotient
from sino_jax.krylov.preconditioner import SHIFT, shifted_inverse
from sino_jax.norms import l2_norm
from sino_jax.types import Sample


def improve(
    field: Sample,
    coefficient: Float[Array, "x y 1"],
    k: Float[Array, ""] | None = None,
    *,
    iterations: int,
    shift: float = SHIFT,
    extent: Sequence[float] = (1.0, 1.0),
) -> tuple[Sample, Float[Array, ""]]:
    """Improves a field as a solution of -∇·(a∇u) - k² u = 0 with the field's own boundary values.

    Args:
      field: the start ``[x, y, channel]``; complex if k is given.
      coefficient: a > 0 at the nodes.
      k: wave number; None for Darcy flow, which is solved by conjugate gradients preconditioned
        with the inverse of the Laplacian; otherwise GCR (the iterates of GMRES) preconditioned with
        `shifted_inverse`.

    Keyword args:
      iterations: number of iterations (static); 0 returns the field.
      shift: of `shifted_inverse`.
      extent: side lengths.

    Returns:
      The improved field, and how far off it seems to be: the size of the correction that the
      preconditioner would make next, relative to the field, in the Euclidean norm.
    """
    if iterations < 0:
        raise ValueError(f"iterations must not be negative, got {iterations}")
    matvec, residual = _system(field, coefficient, 0.0 if k is None else k, extent)
    if k is None:
        scale = jnp.exp(-jnp.mean(jnp.log(coefficient))).astype(field.dtype)
        precondition = lambda load: scale * base.poisson(load, extent=extent)  # noqa: E731
        correction, left = _conjugate_gradients(matvec, precondition, residual, iterations)
    else:
        precondition = shifted_inverse(coefficient, k, shift=shift, extent=extent)
        correction, left = _conjugate_residuals(matvec, precondition, residual, iterations)
    solution = field + jnp.pad(correction, elements.INNER)
    return solution, quotient(_norm(left), _norm(solution))


def conjugate_steps(
    field: Sample,
    coefficient: Float[Array, "x y 1"],
    k: Float[Array, ""],
    *,
    iterations: int,
    extent: Sequence[float] = (1.0, 1.0),
) -> Sample:
    """`improve` by conjugate gradients for a coercive problem, also with a wave number."""
    matvec, residual = _system(field, coefficient, k, extent)
    precondition = lambda load: base.poisson(load, extent=extent)  # noqa: E731
    correction, _ = _conjugate_gradients(matvec, precondition, residual, iterations)
    return field + jnp.pad(correction, elements.INNER)


def _system(field: Sample, coefficient: Array, k: float | Array, extent: Sequence[float]):
    """The operator at the inner nodes, and what the field lacks there."""

    def matvec(inner):
        full = jnp.pad(inner, elements.INNER)
        return elements.residual_load(coefficient, full, k=k, extent=extent)

    return matvec, -elements.residual_load(coefficient, field, k=k, extent=extent)


def _conjugate_gradients(matvec: Callable, precondition: Callable, residual: Array, iterations):
    """The correction, and M r after it."""
    total = jnp.zeros_like(residual)
    direction = preconditioned = precondition(residual)
    square = _inner(residual, preconditioned)
    for _ in range(iterations):
        image = matvec(direction)
        length = quotient(square, _inner(direction, image))
        total = total + length * direction
        residual = residual - length * image
        preconditioned = precondition(residual)
        previous, square = square, _inner(residual, preconditioned)
        direction = preconditioned + quotient(square, previous) * direction
    return total, preconditioned


def _conjugate_residuals(matvec: Callable, precondition: Callable, residual: Array, iterations):
    """The same by minimal ‖M r‖ over the Krylov space of M A."""
    total = jnp.zeros_like(residual)
    left = precondition(residual)
    pairs = []
    for _ in range(iterations):
        direction, image = left, precondition(matvec(left))
        for other, other_image in pairs:
            component = quotient(_inner(other_image, image), _inner(other_image, other_image))
            direction, image = direction - component * other, image - component * other_image
        length = quotient(_inner(image, left), _inner(image, image))
        total, left = total + length * direction, left - length * image
        pairs.append((direction, image))
    return total, left


def _inner(left: Array, right: Array) -> Array:
    return jnp.sum(jnp.conj(left) * right)


def _norm(field: Array) -> Float[Array, ""]:
    return l2_norm(field[None])[0]
