"""A solution restricted to a sub-domain is the solution of the rescaled problem there.

`restrict` is that sentence as a function. The losses, the decomposition and the diagnostics are
built on it.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Int

from sino_jax import grid
from sino_jax.equations import Equation
from sino_jax.types import Instance, Key, Sample


def restrict(
    equation: Equation,
    coefficient: Sample | None,
    field: Sample,
    scale: Array,
    *,
    start: Int[Array, "axis"],
    size: Sequence[int],
) -> Instance:
    """The problem that one solution solves on a sub-domain, rescaled to the nominal domain.

        â = a|Ω̂,   ĝ = u|∂Ω̂,   k̂ = rescale(k, λ),   û = u|Ω̂

    (a right-hand side f among the interior data becomes λ²f|Ω̂, see `Equation.coefficient_powers`;
    on a box of unequal sides û may be a multiple of u|Ω̂, see `Equation.rescale_box`).

    Args:
      equation: gives the axes and the scaling law.
      coefficient: ``[*grid, channel]`` or None.
      field: the solution, or an estimate of it, ``[*grid, channel]``.
      scale: parameter of the full domain.
      start: first index of the sub-domain on each axis; may be traced.
      size: points of the sub-domain on each axis; static.

    Returns:
      An instance without batch axis whose `boundary` and `solution` are the cropped field.
    """
    shape = field.shape[:-1]
    local_scale, amplitude = equation.rescale_box(scale, size, shape)
    local = grid.crop(field, start, size)
    local = amplitude * local if amplitude != 1 else local
    if coefficient is not None:
        # On an anchored axis the past ends where the field begins: keep its last frames.
        ends = [n - m for n, m in zip(shape, size, strict=True)]
        anchored = jnp.array([axis.anchored for axis in equation.axes])
        coefficient_start = jnp.where(anchored, jnp.array(ends, start.dtype), start)
        coefficient = grid.crop(coefficient, coefficient_start, size)
        coefficient = equation.rescale_coefficient(coefficient, equation.ratio(size, shape))
        if amplitude != 1 and any(axis.anchored for axis in equation.axes):
            coefficient = amplitude * coefficient  # the past of the solution
    return Instance(
        coefficient=coefficient,
        boundary=local,
        scale=local_scale,
        solution=local,
    )


def random_starts(
    equation: Equation, key: Key, count: int, size: Sequence[int], shape: Sequence[int]
) -> Int[Array, "count axis"]:
    """Uniformly random positions of `count` sub-domains; anchored axes start at zero."""
    starts = grid.random_starts(key, count, size, shape)
    free = jnp.array([[int(not axis.anchored) for axis in equation.axes]], starts.dtype)
    return starts * free
