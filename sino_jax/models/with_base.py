"""A model on top of a base solution: exact on the boundary, whatever its weights are.

    output = base(g, k) + gate · b(x) · model(a, base, g; k)

The bubble b(x) = Π_d 4 x_d (1 - x_d) vanishes on the boundary, where the base equals g. The gate is
one number for each example: the size of what the base leaves out. For "harmonic" and "helmholtz"
that is the contrast c = std(a) / mean(a) of the coefficient and the base's own shift s,
√(c² + s²), so that without a shift the output is exact on constant coefficients, too, and its error
on nearly constant ones is of the order of the contrast.
"""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import base as bases
from sino_jax import boundary, channels, norms
from sino_jax.types import PerExample, RealBatch, Scale

BASES = ("coons", "harmonic", "helmholtz")
SIDES = boundary.all_sides(2)


class WithBase(nn.Module, kw_only=True):
    """Corrects a base solution of a Dirichlet problem on a rectangle with square cells.

    Inputs are those of any model: the coefficient first, the extended traces of the four sides
    last. The model inside sees the base as `out_channels` further channels before the traces.

    Attributes:
      model: the operator that gives the correction.
      base: "coons", "harmonic" (Darcy) or "helmholtz" (complex solutions; the scale is k).
      out_channels: real channels of the solution.
      shift: distance from resonances, see `sino_jax.base.helmholtz`; only that base has one.
    """

    model: nn.Module
    base: str
    out_channels: int
    shift: float = 0.0

    def __call__(self, inputs: RealBatch, scale: Scale) -> RealBatch:
        """Evaluates base and correction; see `sino_jax.models` for the shapes."""
        self._check(inputs)
        split = inputs.shape[-1] - len(SIDES) * self.out_channels
        interior, traces = inputs[..., :split], inputs[..., split:]
        coefficient = interior[..., 0]
        base = self._solve(boundary_field(traces), coefficient, scale)
        correction = self.model(jnp.concatenate([interior, base, traces], axis=-1), scale)
        gate = channels.per_example(self._gate(coefficient), inputs)
        return base + gate * bubble(inputs) * correction

    def smallest_grid(self) -> int:
        """Points that every axis must have at least: those of the model inside."""
        return self.model.smallest_grid()

    def _solve(
        self, field: RealBatch, coefficient: Float[Array, "batch x y"], scale: Scale
    ) -> RealBatch:
        extent = bases.square_cells(field.shape[1:-1])
        if self.base == "coons":
            return jax.vmap(bases.coons)(field)
        if self.base == "harmonic":
            return jax.vmap(lambda g: bases.harmonic(g, extent=extent))(field)
        mean = jnp.mean(coefficient, axis=(1, 2))
        solutions = jax.vmap(
            lambda g, k, a: bases.helmholtz(
                channels.from_channels(g), k, a, shift=self.shift, extent=extent
            )
        )(field, scale, mean)
        return channels.to_channels(solutions)

    def _gate(self, coefficient: Float[Array, "batch x y"]) -> PerExample:
        if self.base == "coons":
            return jnp.ones_like(coefficient[:, 0, 0])
        mean = jnp.mean(coefficient, axis=(1, 2))
        # The contrast first, then squares: those of the coefficient itself may overflow.
        contrast = coefficient / mean[:, None, None] - 1
        square = jnp.mean(contrast**2, axis=(1, 2)) + self.shift**2
        return norms.root(square)

    def _check(self, inputs: RealBatch) -> None:
        if self.base not in BASES:
            raise ValueError(f"base must be one of {BASES}, got {self.base!r}")
        if self.shift and self.base != "helmholtz":
            raise ValueError(f'shift is an option of base "helmholtz" only, got {self.base!r}')
        if self.base == "helmholtz" and self.out_channels % 2:
            raise ValueError(
                f"out_channels must be (re, im) pairs for base 'helmholtz', got {self.out_channels}"
            )
        traces = len(SIDES) * self.out_channels
        if inputs.ndim != 4 or inputs.shape[-1] <= traces:
            raise ValueError(
                f"inputs must be [batch, x, y, channel] with a coefficient before the {traces} "
                f"channels of boundary traces, got shape {inputs.shape}"
            )


def correct(
    model: type[nn.Module], fields: Mapping[str, Any], *, base: str, shift: float
) -> WithBase:
    """A model with these fields on top of a base solution.

    To the model inside, the base is further boundary data: like the traces it is linear in g, and
    normalised together with them.
    """
    out_channels = fields["out_channels"]
    more = {
        name: fields[name] + out_channels
        for name in ("in_channels", "boundary_channels")
        if fields.get(name)
    }
    inside = model(**{**fields, **more})
    return WithBase(model=inside, base=base, out_channels=out_channels, shift=shift)


def boundary_field(traces: RealBatch) -> RealBatch:
    """The field on the outer ring whose extended traces these channels are, and zero inside."""
    faces = jnp.split(traces, len(SIDES), axis=-1)
    field = jnp.zeros_like(faces[0])
    for side, face in zip(SIDES, faces, strict=True):
        where = (slice(None),) * (side.axis + 1) + (side.index,)
        field = field.at[where].set(face[where])
    return field


def bubble(like: RealBatch) -> Float[Array, "1 x y 1"]:
    """Π_d 4 x_d (1 - x_d) on the node-centred unit box: one in the middle, zero on the boundary."""
    axes = [jnp.linspace(0, 1, points, dtype=like.dtype) for points in like.shape[1:-1]]
    first, second = (4 * x * (1 - x) for x in axes)
    return (first[:, None] * second[None, :])[None, :, :, None]
