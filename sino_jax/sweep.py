"""A trained operator on overlapping patches as a preconditioner of Darcy's equation.

An operator Ψ(a, g) knows no right-hand side, and an error has no boundary values: on the whole
domain Ψ has nothing to say about a residual. On patches Ω_i it does. For an estimate u with the
residual r = -A u, and M the inverse of the Laplacian over the mean of a, the direction is

    z = Σ_i χ_i Ψ(a|Ω_i, w|∂Ω_i) - u,    w = u + M r.

With the exact operator G_i of a patch, G_i(w|∂Ω_i) - w is the exact local correction of the
residual of w, and z that of a Schwarz method with two levels, which depends on u through r alone.
With a network z has an error, too, that is a part of u and not of the error of u: directions are
useful until the error is as small as that of the network on a patch, and no longer.
"""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import base, grid, partition
from sino_jax.equations import Equation
from sino_jax.krylov.system import INNER
from sino_jax.problem import predict
from sino_jax.types import ApplyFn, Instance

Fields = Float[Array, "batch x y 1"]
InnerFields = Float[Array, "batch inner_x inner_y 1"]


def sweep(
    apply_fn: ApplyFn, params, *, equation: Equation, patch: int, overlap: int
) -> Callable[[Fields, Fields, InnerFields], InnerFields]:
    """``z(coefficient, estimate, residual)``: an option `flexible` of `sino_jax.krylov.solve`.

    Args:
      apply_fn, params: as in `sino_jax.decomposition.refine`; they see single precision.

    Keyword args:
      equation: Darcy flow.
      patch: points that a patch has at most on each axis.
      overlap: points that neighbours share at least.
    """
    if equation.name != "darcy":
        raise ValueError(f"equation must be darcy, got {equation.name}")

    def direction(coefficient: Fields, estimate: Fields, residual: InnerFields) -> InnerFields:
        shape = coefficient.shape[1:-1]
        counts = partition.counts(shape, (patch, patch), (overlap, overlap))
        layout = partition.cover(shape, counts, overlap)
        starts = jnp.array(list(itertools.product(*layout.starts)))

        def patches(fields):
            one = jax.vmap(lambda field, start: grid.crop(field, start, layout.size), (None, 0))
            cut = jax.vmap(one, (0, None))(fields, starts)
            return cut.reshape(-1, *cut.shape[2:]).astype(jnp.float32)

        mean = jnp.exp(jnp.mean(jnp.log(coefficient), axis=(1, 2), keepdims=True))
        extent = base.square_cells(shape)
        step = jax.vmap(lambda load: base.poisson(load, extent=extent))(residual) / mean
        better = estimate + jnp.pad(step, INNER)
        medium, edges = patches(coefficient), patches(better)
        # The mean of a patch would cost digits: a solution less a constant is a solution.
        offsets = jnp.mean(edges, axis=(1, 2), keepdims=True)
        problems = Instance(medium, edges - offsets, jnp.ones(len(medium), jnp.float32))
        solutions = predict(apply_fn, params, problems, equation) + offsets
        grouped = solutions.astype(estimate.dtype)
        grouped = grouped.reshape(len(estimate), *layout.counts, *solutions.shape[1:])
        return (partition.merge(grouped, layout) - estimate)[:, 1:-1, 1:-1]

    return direction
