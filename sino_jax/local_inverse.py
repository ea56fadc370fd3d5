"""A trained operator on overlapping patches as an approximate inverse of Darcy's operator.

An operator Ψ(a, g) knows no right-hand side, and an error has no boundary values: on the whole
domain Ψ has nothing to say about a residual r. On patches Ω_i it continues a first guess of the
error from the patch's edge inwards, in the medium as it is:

    v   = M r                                  M the inverse of the Laplacian over the mean of a
    w_i = Ψ(a|Ω_i, v|∂Ω_i) + M_i r|Ω_i         M_i the same on a patch
    B r = Σ_i χ_i w_i                          blended as in `sino_jax.decomposition`

B is neither symmetric nor, with a network inside, linear: an iteration must be flexible.
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

Coefficient = Float[Array, "batch x y 1"]
Loads = Float[Array, "batch inner_x inner_y 1"]


def local_inverse(
    apply_fn: ApplyFn, params, *, equation: Equation, patch: int, overlap: int
) -> Callable[[Coefficient, Loads], Loads]:
    """``B(coefficient, residuals)`` at the inner nodes; an option `flexible` of `krylov.solve`.

    Args:
      apply_fn, params: as in `sino_jax.decomposition.refine`; they see single precision.

    Keyword args:
      equation: Darcy flow.
      patch: points that a patch has at most on each axis.
      overlap: points that neighbours share at least.
    """
    if equation.name != "darcy":
        raise ValueError(f"equation must be darcy, got {equation.name}")

    def apply(coefficient: Coefficient, residuals: Loads) -> Loads:
        shape = coefficient.shape[1:-1]
        counts = partition.counts(shape, (patch, patch), (overlap, overlap))
        layout = partition.cover(shape, counts, overlap)
        starts = jnp.array(list(itertools.product(*layout.starts)))

        def patches(fields):
            one = jax.vmap(lambda field, start: grid.crop(field, start, layout.size), (None, 0))
            cut = jax.vmap(one, (0, None))(fields, starts)
            return cut.reshape(-1, *cut.shape[2:])

        guess = jnp.pad(_constant_inverse(coefficient, residuals), INNER)
        medium, edge, loads = map(patches, (coefficient, guess, jnp.pad(residuals, INNER)))
        problems = Instance(
            medium.astype(jnp.float32),
            edge.astype(jnp.float32),
            jnp.ones(len(medium), jnp.float32),
        )
        continued = predict(apply_fn, params, problems, equation).astype(residuals.dtype)
        own = _constant_inverse(medium, loads[:, 1:-1, 1:-1])
        local = continued + jnp.pad(own, INNER)
        grouped = local.reshape(len(coefficient), *layout.counts, *local.shape[1:])
        return partition.merge(grouped, layout)[:, 1:-1, 1:-1]

    return apply


def _constant_inverse(coefficient: Coefficient, loads: Loads) -> Loads:
    """The inverse of the Laplacian over the geometric mean of the coefficient."""
    mean = jnp.exp(jnp.mean(jnp.log(coefficient), axis=(1, 2), keepdims=True))
    # In two dimensions the stiffness matrix of square cells does not know their size.
    extent = base.square_cells(coefficient.shape[1:-1])
    return jax.vmap(lambda load: base.poisson(load, extent=extent))(loads) / mean
