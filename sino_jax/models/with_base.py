"""A model on top of a base solution: exact on the boundary, whatever its weights are.

    output = base(g, k) + gate · b(x) · model(a, base, g; k)

The bubble b(x) = Π_d 4 x_d (1 - x_d) vanishes on the boundary, where the base equals g. The base
may be improved by a few preconditioned iterations on the equation itself, see
`sino_jax.krylov.improve`. The gate is one number for each example: the size of what the base leaves
out.

    contrast   √(c² + s²) with the contrast c = std(a) / mean(a) and the base's own shift s
    residual   ‖M r‖ / ‖base‖, at most 1, of the base's residual r and the preconditioner M

Either makes the output exact on constant coefficients (without a shift), and its error on nearly
constant ones of the order of the contrast. The second knows, too, where a base is good for another
reason (a small wave number, many iterations), and leaves the network no room to spoil it.
"""

import functools
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import base as bases
from sino_jax import boundary, channels, krylov, norms
from sino_jax.types import PerExample, RealBatch, Scale

BASES = ("coons", "harmonic", "helmholtz")
GATES = ("contrast", "residual")
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
      iterations: of `sino_jax.krylov.improve`, after the base. They read the coefficient as it is
        in the equation, which therefore must not be normalised.
      gate: one of `GATES`; "residual" reads the coefficient likewise.
      centred: as in `sino_jax.models.frame.Model`, here for base and correction together.
    """

    model: nn.Module
    base: str
    out_channels: int
    shift: float = 0.0
    iterations: int = 0
    gate: str = "contrast"
    centred: bool = False

    def __call__(self, inputs: RealBatch, scale: Scale) -> RealBatch:
        """Evaluates base and correction; see `sino_jax.models` for the shapes."""
        self._check(inputs)
        split = inputs.shape[-1] - len(SIDES) * self.out_channels
        interior, traces = inputs[..., :split], inputs[..., split:]
        coefficient = interior[..., 0]
        if self.centred:
            traces, mean = boundary.centre(traces, len(SIDES))
        base = self._solve(boundary_field(traces), coefficient, scale)
        if self.iterations or self.gate == "residual":
            base, left = self._improve(base, coefficient, scale)
        gate = self._contrast(coefficient) if self.gate == "contrast" else jnp.minimum(left, 1)
        correction = self.model(jnp.concatenate([interior, base, traces], axis=-1), scale)
        output = base + channels.per_example(gate, inputs) * bubble(inputs) * correction
        return output + mean if self.centred else output

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

    def _improve(
        self, base: RealBatch, coefficient: Float[Array, "batch x y"], scale: Scale
    ) -> tuple[RealBatch, PerExample]:
        """The base after the iterations, and how far off it still seems to be."""
        extent = bases.square_cells(base.shape[1:-1])
        improve = functools.partial(krylov.improve, iterations=self.iterations, extent=extent)
        medium = coefficient[..., None]
        if self.base == "harmonic":
            return jax.vmap(improve)(base, medium)
        waves, left = jax.vmap(improve)(jax.vmap(channels.from_channels)(base), medium, scale)
        return channels.to_channels(waves), left

    def _contrast(self, coefficient: Float[Array, "batch x y"]) -> PerExample:
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
        if self.centred and self.base != "harmonic":
            raise ValueError(f'centred is an option of base "harmonic" only, got {self.base!r}')
        if self.gate not in GATES:
            raise ValueError(f"gate must be one of {GATES}, got {self.gate!r}")
        if self.base == "coons" and (self.iterations or self.gate != "contrast"):
            raise ValueError(
                "iterations and gate are options of a base that knows its equation, got 'coons'"
            )
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
    model: type[nn.Module], fields: Mapping[str, Any], *, base: str, **options: Any
) -> WithBase:
    """A model with these fields on top of a base solution with these options of `WithBase`.

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
    return WithBase(model=inside, base=base, out_channels=out_channels, **options)


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
