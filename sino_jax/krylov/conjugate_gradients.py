"""Preconditioned conjugate gradients for batches of symmetric positive definite systems.

`jax.scipy.sparse.linalg.cg` tells neither residuals nor iterations, stops by the Euclidean norm of
the residual only, and under `vmap` goes on with examples that are done. Here every example stops by
itself, by a measure that may be a bound of its error: the square of the residual's norm in the
metric of the preconditioner, ⟨r, M r⟩, comes with the iteration, and for M the inverse of the
Laplacian it is ‖r‖₋₁² of `sino_jax.diagnostics`.

Directions may come from another map than M, too, also one that is neither symmetric nor linear,
such as a network (`flexible`). An iteration then takes the one of the two directions that lowers
the energy of the error more, made conjugate to the last `KEPT`: the iterate has the smallest energy
of all of their combinations, and a map that helps no longer does no harm.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Inexact, Int

from sino_jax.krylov.history import Fields, Iterations, Map, PerExample, each, inner, quotient

# Directions that a flexible iteration keeps: two fields each.
KEPT = 30


class State(NamedTuple):
    """Between two iterations: iterate, residual r, M r, next direction, and ⟨r, M r⟩."""

    solution: Fields
    residual: Fields
    preconditioned: Fields
    direction: Fields
    square: PerExample


class Former(NamedTuple):
    """Directions p of former iterations ``[kept, batch, ...]``, A p and ⟨p, A p⟩; else zeros."""

    directions: Inexact[Array, "kept batch *field"]
    images: Inexact[Array, "kept batch *field"]
    curvatures: Float[Array, "kept batch"]


def begin(matvec: Map, load: Fields, start: Fields, precondition: Map) -> State:
    """The state before the first iteration."""
    residual = load - matvec(start)
    preconditioned = precondition(residual)
    square = inner(residual, preconditioned).real
    return State(start, residual, preconditioned, preconditioned, square)


def advance(
    state: State, matvec: Map, precondition: Map, *, alive: Bool[Array, "batch"] | bool = True
) -> State:
    """One iteration of those examples that are not done; differentiable."""
    image = matvec(state.direction)
    length = quotient(state.square, inner(state.direction, image).real)
    moved = _moved(state, image, length, precondition, alive)
    ratio = quotient(moved.square, state.square)
    direction = moved.preconditioned + each(ratio, image) * state.direction
    return moved._replace(direction=direction)


def _moved(state: State, image: Fields, length: PerExample, precondition: Map, alive) -> State:
    """The state after a step along its direction, which stays the same."""
    # A zero step freezes an example that is done; its directions no longer matter.
    length = jnp.where(alive, length, 0)
    residual = state.residual - each(length, image) * image
    preconditioned = precondition(residual)
    return State(
        state.solution + each(length, image) * state.direction,
        residual,
        preconditioned,
        state.direction,
        inner(residual, preconditioned).real,
    )


def _advance_flexibly(
    state: State, former: Former, step: Array, matvec: Map, precondition: Map, flexible, alive
) -> tuple[State, Former]:
    """One iteration along the better of two directions, conjugate to former ones."""

    def candidate(direction):
        # Twice: what round-off leaves of a large component may be as large as the rest.
        for _ in range(2):
            components = jax.vmap(inner, (0, None))(former.images, direction)
            weights = quotient(components, former.curvatures.astype(components.dtype))
            direction = direction - jnp.einsum("jb,jb...->b...", weights, former.directions)
        image = matvec(direction)
        curvature = inner(direction, image).real
        slope = inner(direction, state.residual).real
        return (direction, image, curvature), quotient(slope, curvature), slope**2 / curvature

    (first, length, gain), (second, other_length, other_gain) = map(
        candidate, (flexible(state.solution, state.residual), state.preconditioned)
    )
    better = gain > other_gain  # also false for NaN

    def chosen(one, other):
        return jnp.where(better.reshape(-1, *(1,) * (one.ndim - 1)), one, other)

    direction, image, _ = kept = jax.tree.map(chosen, first, second)
    length = chosen(length, other_length)
    moved = _moved(state._replace(direction=direction), image, length, precondition, alive)
    entries = zip(former, kept, strict=True)
    place = step % len(former.directions)
    return moved, Former(*(array.at[place].set(entry) for array, entry in entries))


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
    flexible: Callable[[Fields, Fields], Fields] | None = None,
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
      flexible: ``flexible(solution, residual) -> direction``, any map, beside `precondition`.
    """
    if measure is None:
        size = inner(load, precondition(load)).real
        measure = lambda solution, square: jnp.sqrt(quotient(square, size))  # noqa: E731
    most = iterations if limit is None else jnp.minimum(iterations, limit)
    first = begin(matvec, load, start, precondition)
    value = measure(start, first.square)
    history = jnp.full((iterations + 1, len(load)), jnp.nan, value.dtype).at[0].set(value)
    former = None
    if flexible is not None:
        kept = min(iterations, KEPT)
        nothing = jnp.zeros((kept, *load.shape), load.dtype)
        former = Former(nothing, nothing, jnp.zeros((kept, len(load)), value.dtype))

    def unfinished(carry):
        step, *_, alive = carry
        return (step < most) & jnp.any(alive)

    def iterate(carry):
        step, state, former, count, history, alive = carry
        if flexible is None:
            state = advance(state, matvec, precondition, alive=alive)
        else:
            state, former = _advance_flexibly(
                state, former, step, matvec, precondition, flexible, alive
            )
        value = measure(state.solution, state.square)
        history = history.at[step + 1].set(jnp.where(alive, value, jnp.nan))
        count = count + alive.astype(count.dtype)
        return step + 1, state, former, count, history, alive & (value > tolerance)

    count = jnp.zeros(len(load), jnp.int32)
    carry = (0, first, former, count, history, value > tolerance)
    _, last, _, count, history, alive = jax.lax.while_loop(unfinished, iterate, carry)
    return Iterations(last.solution, count, history, ~alive)
