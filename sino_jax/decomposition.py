"""Test-time refinement by overlapping domain decomposition (paper, Algorithm 3).

A solution restricted to a patch solves the rescaled problem on the patch. `refine` iterates that:

    g_i = u⁽ᵏ⁾|∂Ω_i (true data on the outer boundary)
    u_i = Ψ(a|Ω_i, g_i, k̂)
    u⁽ᵏ⁺¹⁾ = Σ_i χ_i u_i

with a partition of unity χ_i that is zero on the patch boundaries inside the domain. With an exact
operator Ψ this is the parallel Schwarz method in restricted form.
"""

import collections
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import channels, checks, equations, subdomain
from sino_jax.equations import Equation
from sino_jax.krylov import anderson
from sino_jax.loss.relative import relative_l2
from sino_jax.norms import l2_norm, relative
from sino_jax.partition import Patches, cover, inner_edges, merge
from sino_jax.problem import predict, with_scales
from sino_jax.types import ApplyFn, Batch, Instance, PerExample, Scale

CRITERIA = ("change", "residual")
STARTS = ("coarse", "zeros")
_change = jax.jit(relative_l2)


class Refinement(NamedTuple):
    """Result of `refine_history`.

    Attributes:
      solution: the last estimate, ``[batch, *grid, channel]``.
      change: ``[iterations, batch]``, relative L2 change of each iteration.
      residual: ``[iterations + 1, batch]``, root mean square of the equation's residual
        of the start and after each iteration.
    """

    solution: Batch
    change: Float[Array, "iterations batch"]
    residual: Float[Array, "estimates batch"]


def refine(
    apply_fn: ApplyFn,
    params,
    coefficient: Batch | None,
    boundary: Batch,
    scale: Scale | float | int,
    *,
    equation: str | Equation,
    patches: int | Sequence[int],
    overlap: int | Sequence[int],
    iterations: int,
    **options,
) -> Batch:
    """The refined solution alone; arguments and options are those of `refine_history`."""
    return refine_history(
        apply_fn,
        params,
        coefficient,
        boundary,
        scale,
        equation=equation,
        patches=patches,
        overlap=overlap,
        iterations=iterations,
        **options,
    ).solution


def refine_history(
    apply_fn: ApplyFn,
    params,
    coefficient: Batch | None,
    boundary: Batch,
    scale: Scale | float | int,
    *,
    equation: str | Equation,
    patches: int | Sequence[int],
    overlap: int | Sequence[int],
    iterations: int,
    start: str | Array = "coarse",
    blend: str = "linear",
    ramp: int | None = None,
    tolerance: float | None = None,
    criterion: str = "change",
    extent: Sequence[float] | None = None,
    patches_per_call: int | None = None,
    memory: int = 0,
) -> Refinement:
    """Improves an operator's solution by solving repeatedly on overlapping patches.

    Args:
      apply_fn: ``apply_fn(params, inputs, scale) -> prediction`` as in
        `sino_jax.loss.scale_consistency`; compile it (`jax.jit`) for speed.
      params: passed through to `apply_fn`.
      coefficient: ``[batch, *grid, channel]``, None if the equation has none.
      boundary: a field that holds the boundary data on the equation's sides.
      scale: the equation's parameter on the whole domain, ``[batch]`` or one number.

    Keyword args:
      equation: a name of `sino_jax.equations` or an `Equation`; one with boundary data.
      patches: number of patches on each axis, or one number for all axes that can be cut.
      overlap: points that neighbouring patches share at least, at least 2.
      iterations: at most this many; exactly this many without a tolerance.
      start: the operator's prediction for the whole domain, zeros inside, or an estimate.
      blend: "linear" or "smooth" (cubic) transition between patches.
      ramp: points over which a patch's weight rises from zero at its edge to one; by default over
        the whole overlap.
      tolerance: stop once the criterion is at most this for all examples. It needs concrete
        values: under `jit`, leave it out.
      criterion: "change" (relative, of the last iteration) or "residual" (relative to the start's).
      extent: side lengths of the domain, for the residual; one each by default.
      patches_per_call: bound on the batch given to `apply_fn` at once; by default all patches of
        all examples go in one call.
      memory: number of former estimates that the next one is combined from (`krylov.anderson`), so
        that the values on the patches' edges agree best; 0 iterates as in the paper. It
        accelerates the convergence, to the same limit.

    Raises:
      ValueError: patches that do not fit, an equation without boundary data, NaN in the input.

    Example:
      >>> ones = jnp.ones((1, 17, 17, 1))
      >>> from sino_jax import base
      >>> def harmonic(params, inputs, scale):  # exact where the coefficient is constant
      ...     field = jax.vmap(equations.get("darcy").split)(inputs)[1]
      ...     return jax.vmap(base.harmonic)(field)
      >>> refined = refine_history(harmonic, None, ones, ones, jnp.ones(1), equation="darcy",
      ...                          patches=2, overlap=5, iterations=2, start="zeros")
      >>> refined.change.shape
      (2, 1)
    """
    equation = equations.get(equation)
    _check_options(equation, iterations, criterion, patches_per_call, tolerance, memory)
    if equation.complex_valued:
        boundary = channels.as_complex(boundary)
    whole = with_scales(Instance(coefficient, boundary, scale))
    equation.validate(whole)
    shape = boundary.shape[1:-1]
    extent = (1.0,) * len(shape) if extent is None else tuple(extent)
    counts = _patches_per_axis(equation, patches)
    layout = cover(shape, counts, overlap, blend=blend, ramp=ramp)

    estimate = _start(start, apply_fn, params, whole, equation)
    changes, residuals = [], [_residual(estimate, whole, equation=equation, extent=extent)]
    edges = inner_edges(layout)
    history = collections.deque(maxlen=memory + 1)
    for _ in range(iterations):
        problems = _problems(estimate, whole, equation=equation, layout=layout)
        solutions = _solve(apply_fn, params, problems, equation, patches_per_call)
        previous, estimate = estimate, _blend(solutions, boundary, equation=equation, layout=layout)
        changes.append(_change(previous, estimate))
        if memory:
            history.append((previous, estimate))
            estimate = anderson.mix(*zip(*history, strict=True), edges)
        residuals.append(_residual(estimate, whole, equation=equation, extent=extent))
        if tolerance is not None:
            # The largest of numbers of which one is NaN is NaN, and that is not below anything.
            measure = (
                changes[-1] if criterion == "change" else relative(residuals[-1], residuals[0])
            )
            if float(jnp.max(measure)) <= tolerance:
                break
    nothing = jnp.zeros((0, len(whole.scale)), residuals[0].dtype)
    return Refinement(estimate, jnp.stack(changes) if changes else nothing, jnp.stack(residuals))


def _start(
    start: str | Array, apply_fn: ApplyFn, params, whole: Instance, equation: Equation
) -> Batch:
    if isinstance(start, str):
        checks.one_of("start", start, STARTS)
        coarse = start == "coarse"
        zeros = jnp.zeros_like(whole.boundary)
        start = predict(apply_fn, params, whole, equation) if coarse else zeros
    if start.shape != whole.boundary.shape:
        raise ValueError(f"start must have the shape {whole.boundary.shape}, got {start.shape}")
    field = start.astype(whole.boundary.dtype)
    return _with_boundary(field, whole.boundary, equation=equation)


# What surrounds `apply_fn` is compiled here; `apply_fn` itself need not be traceable.
@functools.partial(jax.jit, static_argnames=("equation", "layout"))
def _problems(estimate: Batch, whole: Instance, *, equation: Equation, layout: Patches) -> Instance:
    """The problem on every patch of every example: one batch of batch · patches problems."""
    starts = jnp.array(list(itertools.product(*layout.starts)))

    def restrict(start, coefficient, field, scale):
        return subdomain.restrict(
            equation, coefficient, field, scale, start=start, size=layout.size
        )._replace(solution=None)

    over_patches = jax.vmap(restrict, in_axes=(0, None, None, None))
    over_batch = jax.vmap(over_patches, in_axes=(None, 0, 0, 0))
    local = over_batch(starts, whole.coefficient, estimate, whole.scale)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), local)


def _solve(
    apply_fn: ApplyFn, params, problems: Instance, equation: Equation, at_once: int | None
) -> Batch:
    count = len(problems.scale)
    step = count if at_once is None else at_once
    parts = []
    for first in range(0, count, step):
        chunk = jax.tree.map(lambda x, first=first: x[first : first + step], problems)
        parts.append(predict(apply_fn, params, chunk, equation))
    return jnp.concatenate(parts)


@functools.partial(jax.jit, static_argnames=("equation", "layout"))
def _blend(solutions: Array, boundary: Batch, *, equation: Equation, layout: Patches) -> Batch:
    """The global field of the solutions ``[batch · patches, *size, channel]`` of all patches."""
    shape = boundary.shape[1:-1]
    _, amplitude = equation.rescale_box(1.0, layout.size, shape)
    solutions = solutions / amplitude  # in the units of the whole domain
    grouped = solutions.reshape(len(boundary), *layout.counts, *solutions.shape[1:])
    field = merge(grouped.astype(boundary.dtype), layout)
    return _with_boundary(field, boundary, equation=equation)


@functools.partial(jax.jit, static_argnames="equation")
def _with_boundary(field: Batch, boundary: Batch, *, equation: Equation) -> Batch:
    """`field` with the given data on the equation's sides."""
    for side in equation.sides:
        place = (slice(None),) * (side.axis + 1) + (side.index,)
        field = field.at[place].set(boundary[place])
    return field


@functools.partial(jax.jit, static_argnames=("equation", "extent"))
def _residual(
    estimate: Batch, whole: Instance, *, equation: Equation, extent: tuple[float, ...]
) -> PerExample:
    """Root mean square of the equation's residual."""
    residual = jax.vmap(functools.partial(equation.residual, extent=extent))(
        whole.coefficient, estimate, whole.scale
    )
    return l2_norm(residual) / residual[0].size ** 0.5


def _patches_per_axis(equation: Equation, patches: int | Sequence[int]) -> tuple[int, ...]:
    """An integer cuts every axis but anchored ones: the past before a later patch is unknown."""
    anchored = [axis.anchored for axis in equation.axes]
    if checks.is_single(patches):
        patches = checks.integer("patches", patches)
        return tuple(1 if fixed else patches for fixed in anchored)
    if any(fixed and count != 1 for fixed, count in zip(anchored, patches, strict=False)):
        raise ValueError(
            f"patches must be 1 on the anchored time axis of {equation.name}, got {tuple(patches)}"
        )
    return tuple(checks.integer("patches", count) for count in patches)


def _check_options(
    equation: Equation,
    iterations: int,
    criterion: str,
    patches_per_call: int | None,
    tolerance: float | None,
    memory: int,
) -> None:
    if not equation.sides:
        raise ValueError(f"{equation.name} has no boundary data to exchange between patches")
    checks.integer("iterations", iterations, least=0)
    checks.one_of("criterion", criterion, CRITERIA)
    checks.integer("memory", memory, least=0)
    if patches_per_call is not None:
        checks.integer("patches_per_call", patches_per_call)
    if tolerance is not None:
        checks.number("tolerance", tolerance, low=0)
