"""Batches of Dirichlet problems, solved to a tolerance from any start.

    bound      ‖u_j - u‖ / ‖u‖ ≤ β / (‖u_j‖ - β),   β = ‖r‖₋₁ / (√λ₁ μ),   μ = a_min - k²/λ₁ > 0
    estimate   ‖M r‖ / ‖u_j‖ times `amplification`                            otherwise

A coercive problem (first line; Darcy flow always is) stops when the bound of its error is at most
the tolerance: u is then known to that accuracy, up to round-off, as the bilinear finite element
solution on this grid. An indefinite one has no such bound. M r is the correction that the
preconditioner would make next, nearly the error if no resonance is near; near one the error is
larger by the norm of the inverse, which the iteration estimates (`sino_jax.krylov.gmres`), from
below. An estimate that has seen little of the operator is not believed: whatever the tolerance,
‖M r‖ / ‖u_j‖ must come down to `gmres.SEEN`.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sino_jax import base, boundary, channels
from sino_jax.base import elements
from sino_jax.equations import Equation
from sino_jax.krylov.conjugate_gradients import conjugate_gradients
from sino_jax.krylov.gmres import gmres, is_small
from sino_jax.krylov.history import Fields, PerExample, inner
from sino_jax.krylov.preconditioner import SHIFT, shifted_inverse
from sino_jax.krylov.solution import Solution, compact, joined
from sino_jax.krylov.system import INNER, system
from sino_jax.norms import bilinear_l2_norm, l2_norm
from sino_jax.types import Batch, Instance, Sample

Coefficient = Float[Array, "batch x y 1"]
# The linear equations that are known here, and whether their scale is k.
LINEAR = {"darcy": False, "helmholtz": True}
# An iteration goes on from its end if round-off, or a changed size of the solution, deceived it.
ROUNDS = 3
# Problems whose inverse is larger than one over this are resonant.
RESONANCE = 1e-8


def solve(
    instance: Instance,
    *,
    equation: Equation,
    tolerance: float,
    iterations: int = 200,
    start: Batch | None = None,
    extent: Sequence[float] | None = None,
    shift: float = SHIFT,
    restart: int = 50,
    flexible: Callable[[Coefficient, Batch, Fields], Fields] | None = None,
) -> Solution:
    """Solves a batch in the precision of its arrays. Not to be traced: it looks at values.

    Args:
      instance: coefficient, boundary and scale.

    Keyword args:
      equation: one of `LINEAR`.
      tolerance: of the relative error bound or the relative residual.
      iterations: at most this many, for each problem.
      start: see `first_iterate`.
      extent: side lengths; square cells and unit area by default.
      shift, restart: see `shifted_inverse` and `gmres`.
      flexible: ``flexible(coefficient, estimates, residuals) -> directions``, the last two at inner
        nodes: a preconditioner for coercive problems beside the inverse of the Laplacian, such as
        `sino_jax.sweep`. It is compiled once for each grid as long as it is the same object.
    """
    _check(instance, equation, tolerance, iterations)
    extent = _extent(instance, extent)
    first = first_iterate(instance, equation=equation, start=start, extent=extent, shift=shift)
    arrays = (instance.coefficient, first, _wave_number(instance, equation))
    coercive = np.asarray(_is_coercive(instance.coefficient, arrays[2], extent=extent))
    methods = {
        True: functools.partial(_coercive, extent=extent, flexible=flexible),
        False: functools.partial(_indefinite, extent=extent, shift=shift, restart=restart),
    }
    parts, places = [], []
    for kind, method in methods.items():
        where = np.flatnonzero(coercive == kind)
        if len(where):
            chosen = [array[where] for array in arrays] if len(where) < len(first) else arrays
            parts.append(_rounds(method, *chosen, tolerance, iterations))
            places.append(where)
    return parts[0] if len(parts) == 1 else joined(parts, np.argsort(np.concatenate(places)))


def first_iterate(
    instance: Instance,
    *,
    equation: Equation,
    start: Batch | None = None,
    extent: Sequence[float] | None = None,
    shift: float = SHIFT,
) -> Batch:
    """What `solve` begins with: a field with the right boundary values.

    Keyword args:
      start: a field for each problem, such as a prediction; its boundary values are corrected. By
        default the base solution of a constant coefficient.
      others: see `solve`.
    """
    extent, field = _extent(instance, extent), instance.boundary
    if equation.complex_valued:
        field = channels.as_complex(field)
    if start is None:
        k = _wave_number(instance, equation)
        return _base(instance.coefficient, field, k, shift=shift, extent=extent)
    return _with_boundary(start.astype(field.dtype), field, extent=extent)


def _extent(instance: Instance, extent: Sequence[float] | None) -> tuple[float, ...]:
    return base.square_cells(instance.boundary.shape[1:-1]) if extent is None else tuple(extent)


def _wave_number(instance: Instance, equation: Equation) -> PerExample:
    return instance.scale if LINEAR[equation.name] else jnp.zeros_like(instance.scale)


def _rounds(method, coefficient, solution, k, tolerance, iterations) -> Solution:
    """Runs an iteration until the solution itself passes, not only what the iteration believes."""
    total, rows, amplification = np.zeros(len(solution), int), [], np.ones(len(solution))
    for number in range(ROUNDS):
        found = method(
            coefficient,
            solution,
            k,
            jnp.asarray(tolerance / amplification, solution.real.dtype),
            jnp.asarray(iterations - int(total.max()), jnp.int32),
            iterations=iterations,
        )
        solution = found.solution
        made = np.asarray(found.iterations)
        rows.append(np.asarray(found.history)[int(number > 0) : int(made.max()) + 1])
        total = total + made
        # A later round sees less of the operator.
        amplification = np.maximum(amplification, np.asarray(found.amplification))
        reached = np.asarray(found.reached) & (
            np.asarray(found.residual) * amplification <= tolerance
        )
        if reached.all() or total.max() >= iterations or not made.any():
            break
    return found._replace(
        iterations=jnp.asarray(total.astype(np.int32)),
        history=jnp.asarray(compact(np.concatenate(rows))),
        reached=jnp.asarray(reached),
        amplification=jnp.asarray(amplification.astype(solution.real.dtype)),
    )


@functools.partial(jax.jit, static_argnames=("iterations", "extent", "flexible"))
def _coercive(coefficient, start, k, tolerance, limit, *, iterations, extent, flexible) -> Solution:
    matvec, load, embed = _inner_problem(coefficient, start, k, extent)
    factor = 1 / (_lowest_eigenvalue(extent) ** 0.5 * _margin(coefficient, k, extent))
    norm = jax.vmap(lambda u: bilinear_l2_norm(u, extent))
    precondition = jax.vmap(functools.partial(base.poisson, extent=extent))

    def bound(inner_values, square):
        absolute = factor * jnp.sqrt(jnp.maximum(square, 0))
        rest = norm(embed(inner_values)) - absolute
        return jnp.where(rest > 0, absolute / jnp.where(rest > 0, rest, 1), jnp.inf)

    if flexible is not None:
        directions = flexible
        flexible = lambda values, residual: directions(  # noqa: E731
            coefficient, embed(values), residual
        )
    found = conjugate_gradients(
        matvec,
        load,
        precondition=precondition,
        start=start[:, 1:-1, 1:-1],
        tolerance=tolerance,
        iterations=iterations,
        limit=limit,
        measure=bound,
        flexible=flexible,
    )
    residual = load - matvec(found.solution)
    value = bound(found.solution, inner(residual, precondition(residual)).real)
    return Solution(
        solution=embed(found.solution),
        iterations=found.count,
        history=found.history,
        residual=value,
        bound=value,
        reached=value <= tolerance,
        amplification=jnp.ones_like(value),
    )


@functools.partial(jax.jit, static_argnames=("iterations", "extent", "shift", "restart"))
def _indefinite(
    coefficient, start, k, tolerance, limit, *, iterations, extent, shift, restart
) -> Solution:
    matvec, load, embed = _inner_problem(coefficient, start, k, extent)

    def precondition(loads):
        def one(a, k, load):
            return shifted_inverse(a, k, shift=shift, extent=extent)(load)

        return jax.vmap(one)(coefficient, k, loads)

    found, amplification = gmres(
        matvec,
        load,
        precondition=precondition,
        start=start[:, 1:-1, 1:-1],
        tolerance=tolerance,
        iterations=iterations,
        limit=limit,
        restart=restart,
        size=l2_norm(start),
    )
    solution = embed(found.solution)
    value = l2_norm(precondition(load - matvec(found.solution))) / l2_norm(solution)
    return Solution(
        solution=solution,
        iterations=found.count,
        history=found.history,
        residual=value,
        bound=jnp.full_like(value, jnp.inf),
        reached=is_small(value, amplification, tolerance),
        amplification=amplification,
    )


def _inner_problem(coefficient, start, k, extent):
    """Operator and loads at the inner nodes, and the map from inner values to whole fields."""
    matvec, lack = system(coefficient, k, extent)
    ring = jax.vmap(boundary.ring)(start)
    return matvec, lack(ring), lambda values: ring + jnp.pad(values, INNER)


@functools.partial(jax.jit, static_argnames=("extent", "shift"))
def _base(coefficient, field, k, *, extent, shift) -> Batch:
    """The base solution: harmonic if k is zero."""

    def one(a, g, k) -> Sample:
        return base.helmholtz(g, k, 1 / jnp.mean(1 / a), shift=shift, extent=extent)

    return jax.vmap(one)(coefficient, field, k)


@functools.partial(jax.jit, static_argnames="extent")
def _with_boundary(start: Batch, field: Batch, *, extent) -> Batch:
    """A start with the right boundary values: corrected by the harmonic field of the difference."""
    return start + jax.vmap(functools.partial(base.harmonic, extent=extent))(field - start)


@functools.partial(jax.jit, static_argnames="extent")
def _is_coercive(coefficient, k, *, extent) -> Bool[Array, "batch"]:
    return _margin(coefficient, k, extent) > 0


def _margin(coefficient, k, extent) -> PerExample:
    """μ: the operator is at least this times the Laplacian's."""
    smallest = jnp.min(jax.vmap(elements.cell_means)(coefficient), axis=(1, 2, 3))
    return smallest - k**2 / _lowest_eigenvalue(extent)


def _lowest_eigenvalue(extent) -> float:
    return float(np.pi**2 * sum(1 / length**2 for length in extent))


def check_equation(equation: Equation) -> None:
    """Raises a ValueError for an equation that cannot be solved here."""
    if equation.name not in LINEAR:
        raise ValueError(
            f"equation must be linear and known to the solver, {' or '.join(LINEAR)}, to be solved "
            f"to a tolerance; got {equation.name}"
        )


def _check(instance: Instance, equation: Equation, tolerance: float, iterations: int) -> None:
    check_equation(equation)
    shape = instance.boundary.shape[1:-1]
    if min(shape) < 3:
        raise ValueError(f"the grid must have at least 3 points on each axis, got {shape}")
    precision = instance.coefficient.dtype
    smallest = float(jnp.finfo(precision).eps)
    if not tolerance >= smallest:
        raise ValueError(
            f"tolerance must be at least {smallest:.1e}, the round-off of {precision}, "
            f"got {tolerance}"
        )
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    equation.check_coefficient("coefficient", instance.coefficient)
