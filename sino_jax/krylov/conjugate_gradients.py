"""Preconditioned conjugate gradients for batches of symmetric positive definite systems.

`jax.scipy.sparse.linalg.cg` tells neither residuals nor iterations, stops by the Euclidean norm of
the residual only, and under `vmap` goes on with examples that are done. Here every example stops by
itself, by a measure that may be a bound of its error: the square of the residual's norm in the
metric of the preconditioner, ⟨r, M r⟩, comes with the iteration, and for M the inverse of the
Laplacian it is ‖r‖₋₁² of `sino_jax.diagnostics`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sino_jax.krylov.history import Fields, Iterations, Map, PerExample, each, inner, quotient


def conjugate_gradients(
    matvec: Map,
    load: Fields,
    *,
    precondition: Map,
    start: Fields,
    tolerance: float | Float[Array, ""] | PerExample,
    iterations: int,
    limit: Int[Array, ""] | None = None,
    measure: Callable[[Fields, PerExample], PerExample] | None = None,
) -> Iterations:
    """Solves ``matvec(u) = load`` for every example; jittable.

    Args:
      matvec: symmetric (or Hermitian) and positive definite for every example.
      load: right-hand sides ``[batch, ...]``.

    Keyword args:
      precondition: an approximate inverse, symmetric and positive definite.
      start: the first iterate.
      tolerance: an example stops when its measure is at most this.
      iterations: at most this many (static: the length of the history).
      limit: a smaller number, which may be traced.
      measure: ``measure(solution, square)`` with square = ⟨r, M r⟩; by default its root over that
        of the load.
    """
    if measure is None:
        size = inner(load, precondition(load)).real
        measure = lambda solution, square: jnp.sqrt(quotient(square, size))  # noqa: E731

    def judged(solution, square, alive):
        value = measure(solution, square)
        return value, alive & (value > tolerance)

    most = iterations if limit is None else jnp.minimum(iterations, limit)
    residual = load - matvec(start)
    preconditioned = precondition(residual)
    square = inner(residual, preconditioned).real
    first, alive = judged(start, square, jnp.ones(len(load), bool))
    history = jnp.full((iterations + 1, len(load)), jnp.nan, first.dtype).at[0].set(first)
    count = jnp.zeros(len(load), jnp.int32)

    def unfinished(state):
        step, alive = state[0], state[-1]
        return (step < most) & jnp.any(alive)

    def advance(state):
        step, solution, residual, direction, square, count, history, alive = state
        image = matvec(direction)
        # A zero step freezes an example that is done; its directions no longer matter.
        length = jnp.where(alive, quotient(square, inner(direction, image).real), 0)
        solution = solution + each(length, solution) * direction
        residual = residual - each(length, residual) * image
        preconditioned = precondition(residual)
        previous, square = square, inner(residual, preconditioned).real
        ratio = quotient(square, previous)
        direction = preconditioned + each(ratio, direction) * direction
        value, going = judged(solution, square, alive)
        history = history.at[step + 1].set(jnp.where(alive, value, jnp.nan))
        count = count + alive.astype(count.dtype)
        return step + 1, solution, residual, direction, square, count, history, going

    state = (0, start, residual, preconditioned, square, count, history, alive)
    state = jax.lax.while_loop(unfinished, advance, state)
    _, solution, _, _, _, count, history, alive = state
    return Iterations(solution, count, history, ~alive)
