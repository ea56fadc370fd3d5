"""A few preconditioned iterations on one field, unrolled: differentiable, the part of a model.

Derivatives are those of the iteration itself, not of the solution that it would converge to, which
is what `jax.scipy.sparse.linalg` differentiates.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import base
from sino_jax.krylov.conjugate_gradients import advance, begin
from sino_jax.krylov.history import Fields, Map, each, inner, quotient
from sino_jax.krylov.preconditioner import SHIFT, shifted_inverse
from sino_jax.krylov.system import INNER, system
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
    if k is None:
        mean = jnp.exp(jnp.mean(jnp.log(coefficient))).astype(field.dtype)
        one = lambda load: base.poisson(load, extent=extent) / mean  # noqa: E731
        method, wave_number = _conjugate_gradients, jnp.zeros((), coefficient.dtype)
    else:
        one = shifted_inverse(coefficient, k, shift=shift, extent=extent)
        method, wave_number = _conjugate_residuals, k
    solution, left = _improved(method, jax.vmap(one), field, coefficient, wave_number, iterations,
                               extent)  # fmt: skip
    return solution, quotient(l2_norm(left), l2_norm(solution[None]))[0]


def conjugate_steps(
    field: Sample,
    coefficient: Float[Array, "x y 1"],
    k: Float[Array, ""],
    *,
    iterations: int,
    extent: Sequence[float] = (1.0, 1.0),
) -> Sample:
    """`improve` by conjugate gradients for a coercive problem, also with a wave number."""
    precondition = jax.vmap(lambda load: base.poisson(load, extent=extent))
    return _improved(_conjugate_gradients, precondition, field, coefficient, k, iterations, extent)[
        0
    ]


def _improved(
    method, precondition: Map, field: Sample, coefficient, k, iterations: int, extent
) -> tuple[Sample, Fields]:
    """The field after the iterations, and M r then, as a batch of one."""
    matvec, lack = system(coefficient[None], jnp.asarray(k)[None], extent)
    correction, left = method(matvec, precondition, lack(field[None]), iterations)
    return field + jnp.pad(correction, INNER)[0], left


def _conjugate_gradients(matvec: Map, precondition: Map, residual: Fields, iterations: int):
    """The correction, and M r after it."""
    state = begin(matvec, residual, jnp.zeros_like(residual), precondition)
    for _ in range(iterations):
        state = advance(state, matvec, precondition)
    return state.solution, state.preconditioned


def _conjugate_residuals(matvec: Map, precondition: Map, residual: Fields, iterations: int):
    """The same by minimal ‖M r‖ over the Krylov space of M A."""
    total, left = jnp.zeros_like(residual), precondition(residual)
    pairs = []

    def component(image, other):
        return each(quotient(inner(image, other), inner(image, image)), other)

    for _ in range(iterations):
        direction, image = left, precondition(matvec(left))
        for former, former_image in pairs:
            part = component(former_image, image)
            direction, image = direction - part * former, image - part * former_image
        part = component(image, left)
        total, left = total + part * direction, left - part * image
        pairs.append((direction, image))
    return total, left
