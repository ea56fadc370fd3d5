"""Flexible GMRES for batches of linear systems that may be indefinite, complex, near-singular.

`jax.scipy.sparse.linalg.gmres` returns neither residuals nor iterations, takes no preconditioner
that changes from step to step, and under `vmap` copies the whole basis in every iteration. Here all
examples of a batch share the loop and stop for themselves.

The system is preconditioned from the left by a linear map M, and the norm that is minimised and
judged is that of M (b - A u): for M an approximate inverse this is nearly the error. From the right
any map may be added, also one that is not linear, such as a network.

The error itself may be larger by ‖(M A)⁻¹‖, and is, near a resonance. The smallest singular value
of the matrix that the process projects M A to is an estimate of one over that norm. An example
stops when the residual times that norm is at most the tolerance, but not before the residual is
below `SEEN`: the process finds a resonant direction only when what that contributes to the first
residual is no longer small beside what is left of it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Inexact, Int

from sino_jax.krylov.history import (
    Fields,
    Iterations,
    Map,
    PerExample,
    each,
    inner,
    quotient,
)
from sino_jax.norms import l2_norm as norm

# Vectors of the basis that are orthogonalised at once: they are read from memory twice, not more.
BLOCK = 4
# Relative residual above which the estimate of the amplification is not believed. Of a few hundred
# directions one has some 5 % of a residual; a hundredth of that is a rare exception.
SEEN = 1e-4
# A cycle that leaves more of the residual than this has stalled.
STALL = 0.99


class Cycle(NamedTuple):
    """State of the Arnoldi process between two restarts.

    Attributes:
      step: iterations of this cycle.
      basis: ``[rows, batch, ...]``, orthonormal, and zero after the last step; rows is restart + 1
        or a little more.
      search: ``[restart, batch, ...]``, preconditioned from the right; None if there is no such
        preconditioner.
      hessenberg: ``[restart, batch, rows]``, its columns.
      null: ``[batch, rows]``, the vector with first entry one that all columns annul.
      count: iterations of every example in this cycle.
      history, alive: see `gmres`.
    """

    step: Array
    basis: Array
    search: Array | None
    hessenberg: Inexact[Array, "restart batch rows"]
    null: Inexact[Array, "batch rows"]
    count: Array
    history: Float[Array, "measures batch"]
    alive: Array


class Gmres(NamedTuple):
    """Result of `gmres`.

    Attributes:
      iterations: see `Iterations`; its history has the relative residuals.
      amplification: the estimate of ‖(M A)⁻¹‖, at least 1, which comes from below; infinite for a
        singular system.
    """

    iterations: Iterations
    amplification: PerExample


def gmres(
    matvec: Map,
    load: Fields,
    *,
    precondition: Map,
    start: Fields,
    tolerance: float | Float[Array, ""] | PerExample,
    iterations: int,
    limit: Int[Array, ""] | None = None,
    restart: int = 50,
    size: PerExample | None = None,
    flexible: Map | None = None,
) -> Gmres:
    """Solves ``matvec(u) = load`` for every example; jittable.

    Args:
      matvec: linear.
      load: right-hand sides ``[batch, ...]``, of the dtype that ``precondition(load)`` has.

    Keyword args:
      precondition: M, linear; an approximate inverse of `matvec`.
      start: the first iterate.
      tolerance: an example stops when ‖M (b - A u)‖ / size, times its amplification, is at most
        this, and itself at most `SEEN`.
      iterations: at most this many in all (static: the length of the history).
      limit: a smaller number, which may be traced.
      restart: iterations after which the basis is dropped (static): it bounds the memory.
      size: what the norm is relative to; ‖M b‖ by default.
      flexible: a further preconditioner, applied to the vectors of the basis.
    """
    if size is None:
        size = norm(precondition(load))
    restart = min(restart, iterations)
    most = iterations if limit is None else jnp.minimum(iterations, limit)
    residual = precondition(load - matvec(start))
    first = quotient(norm(residual), size)
    alive = ~is_small(first, jnp.ones_like(first), tolerance)
    history = jnp.full((iterations + 1, len(load)), jnp.nan, first.dtype).at[0].set(first)

    def unfinished(state):
        done, alive = state[0], state[-1]
        return (done < most) & jnp.any(alive)

    def cycle(state):
        done, solution, residual, count, history, amplification, alive = state
        length = norm(residual)
        after = _arnoldi(
            lambda v: precondition(matvec(v)),
            flexible,
            _over(residual, length),
            length / size,
            tolerance,
            done,
            most,
            restart,
            history,
            alive,
        )
        weights = _least_squares(after, length)
        vectors = after.basis[:restart] if after.search is None else after.search
        solution = solution + jnp.einsum("jb,jb...->b...", weights, vectors)
        here = _amplification(after.hessenberg, after.count)
        amplification = jnp.where(alive, jnp.maximum(amplification, here), amplification)
        # The true residual: what the process reports drifts from it by round-off.
        residual = precondition(load - matvec(solution))
        now = norm(residual)
        # A cycle without gain is followed by others without gain.
        small = is_small(quotient(now, size), amplification, tolerance)
        alive = alive & ~small & (now < STALL * length)
        count = count + after.count
        return done + after.step, solution, residual, count, after.history, amplification, alive

    count = jnp.zeros(len(load), jnp.int32)
    done, ones = jnp.zeros((), jnp.int32), jnp.ones_like(first)
    state = (done, start, residual, count, history, ones, alive)
    state = jax.lax.while_loop(unfinished, cycle, state)
    _, solution, residual, count, history, amplification, _ = state
    reached = is_small(quotient(norm(residual), size), amplification, tolerance)
    return Gmres(Iterations(solution, count, history, reached), amplification)


def is_small(value: PerExample, amplification: PerExample, tolerance) -> Bool[Array, "batch"]:
    """Whether a relative residual is good enough; `SEEN` tells why two conditions."""
    return (value * amplification <= tolerance) & (value <= SEEN)


def _arnoldi(
    operator, flexible, first, scale, tolerance, done, most, restart, history, alive
) -> Cycle:
    """Builds an orthonormal basis until every example is done, or the basis full."""
    batch, dtype = len(first), first.dtype
    rows = -(-(restart + 1) // BLOCK) * BLOCK
    empty = jnp.zeros((rows, *first.shape), dtype)
    state = Cycle(
        step=jnp.zeros((), jnp.int32),
        basis=empty.at[0].set(first),
        search=None if flexible is None else empty[:restart],
        hessenberg=jnp.zeros((restart, batch, rows), dtype),
        null=jnp.zeros((batch, rows), dtype).at[:, 0].set(1),
        count=jnp.zeros(batch, jnp.int32),
        history=history,
        alive=alive,
    )

    def unfinished(state):
        return (state.step < restart) & (done + state.step < most) & jnp.any(state.alive)

    def advance(state):
        step = state.step
        vector = state.basis[step]
        search = state.search
        if flexible is not None:
            vector = flexible(vector)
            search = search.at[step].set(vector)
        vector, column = _orthogonalise(operator(vector), state.basis, step)
        length = norm(vector)
        column = column.at[:, step + 1].set(length.astype(dtype))
        # The residual of least squares is the multiple of conj(null) with first entry `scale`.
        entry = -quotient(jnp.sum(state.null * column, axis=1), length.astype(dtype))
        null = state.null.at[:, step + 1].set(entry)
        value = jnp.where(length > 0, scale / norm(null), 0)
        hessenberg = state.hessenberg.at[step].set(column)
        count = state.count + state.alive.astype(state.count.dtype)
        # Singular values are asked for only by the last few iterations.
        ones = jnp.ones_like(value)
        small = is_small(value, ones, tolerance)
        factor = jax.lax.cond(
            jnp.any(state.alive & small), lambda: _amplification(hessenberg, count), lambda: ones
        )
        going = state.alive & ~is_small(value, factor, tolerance)
        return Cycle(
            step=step + 1,
            basis=state.basis.at[step + 1].set(_over(vector, length)),
            search=search,
            hessenberg=hessenberg,
            null=null,
            count=count,
            history=state.history.at[done + step + 1].set(jnp.where(state.alive, value, jnp.nan)),
            alive=going,
        )

    return jax.lax.while_loop(unfinished, advance, state)


def _orthogonalise(vector: Fields, basis: Array, step: Array) -> tuple[Fields, Array]:
    """`vector` without its components in the basis up to `step`, and these ``[batch, rows]``.

    Block by block, each block's components being removed before the next is read (modified
    Gram-Schmidt, which GMRES needs no second pass of).
    """
    rows, batch = basis.shape[:2]

    def remove(number, state):
        vector, column = state
        begin = number * BLOCK
        block = jax.lax.dynamic_slice_in_dim(basis, begin, BLOCK)
        components = jnp.stack([inner(block[i], vector) for i in range(BLOCK)], axis=1)
        for i in range(BLOCK):
            vector = vector - each(components[:, i], vector) * block[i]
        column = jax.lax.dynamic_update_slice_in_dim(column, components, begin, axis=1)
        return vector, column

    column = jnp.zeros((batch, rows), vector.dtype)
    return jax.lax.fori_loop(0, step // BLOCK + 1, remove, (vector, column))


def _least_squares(cycle: Cycle, length: PerExample) -> Inexact[Array, "restart batch"]:
    """Weights of the basis that make the residual smallest."""
    matrix, own = _own_columns(cycle.hessenberg, cycle.count)
    right = jnp.zeros((*matrix.shape[:2], 1), matrix.dtype)
    right = right.at[:, 0, 0].set(length.astype(matrix.dtype))
    left, values, adjoint_right = jnp.linalg.svd(matrix, full_matrices=False)
    # Directions that the operator annuls to working precision would only add round-off.
    kept = values > len(cycle.hessenberg) * jnp.finfo(values.dtype).eps * values[:, :1]
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)[..., None].astype(matrix.dtype)
    weights = _adjoint(adjoint_right) @ (inverse * (_adjoint(left) @ right))
    return jnp.where(own, weights[..., 0], 0).T


def _amplification(hessenberg: Inexact[Array, "restart batch rows"], count: Array) -> PerExample:
    values = jnp.linalg.svd(_own_columns(hessenberg, count)[0], compute_uv=False)
    usable = values[:, -1] > jnp.finfo(values.dtype).eps * values[:, 0]
    smallest = jnp.where(usable, values[:, -1], 1)
    return jnp.where(usable, jnp.maximum(1, 1 / smallest), jnp.inf)


def _own_columns(hessenberg: Inexact[Array, "restart batch rows"], count: Array):
    """Matrices ``[batch, rows, restart]``, and which columns belong to an example's own steps.

    Other columns are unit vectors, orthogonal to all that matters.
    """
    matrix = jnp.moveaxis(hessenberg, 0, -1)
    restart = matrix.shape[-1]
    own = jnp.arange(restart, dtype=count.dtype)[None, :] < count[:, None]
    unit = jnp.eye(matrix.shape[1], restart, -1, dtype=matrix.dtype)[None]
    return jnp.where(own[:, None, :], matrix, unit), own


def _adjoint(matrix: Array) -> Array:
    return jnp.conj(jnp.swapaxes(matrix, -1, -2))


def _over(vector: Fields, length: PerExample) -> Fields:
    return vector * each(quotient(jnp.ones_like(length), length), vector)
