"""What the rest of the package knows about a partial differential equation.

An `Equation` is data: its axes, where boundary values are given, the scaling law, the residual, and
the symmetries that hold. A new equation is one more instance of it; no other file has to change.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sino_jax import boundary, channels, checks, grid
from sino_jax.boundary import Side
from sino_jax.types import Count, Instance, Sample

# How a field transforms under rotations and reflections of space.
FieldKind = Literal["scalar", "pseudoscalar", "vector"]
Symmetry = Literal["rotation", "reflection"]


@dataclasses.dataclass(frozen=True)
class Axis:
    """One grid axis.

    Attributes:
      name: "x", "y" and "z" are space, "t" is time.
      centring: see `sino_jax.grid`.
      anchored: True for a time axis on which the past ends where the prediction begins. A crop then
        keeps that junction: the last frames of the past, the first ones of the solution.
    """

    name: Literal["x", "y", "z", "t"]
    centring: grid.Centring
    anchored: bool = False


@dataclasses.dataclass(frozen=True)
class Equation:
    """A family of problems, closed under restriction to a sub-domain.

    Attributes:
      name: as in `sino_jax.equations.get`.
      axes: the grid axes, in array order.
      sides: where the solution is known and given to the model.
      rescale: the scaling law ``rescale(scale, ratio) -> scale`` of a sub-domain of side `ratio`.
      residual: ``residual(coefficient, solution, scale, *, extent, ...)`` of one sample; it is zero
        for exact solutions up to the order (two) of its stencils, none of which is periodic.
      coefficient_channels: channels of what is given in the interior; 0 if nothing is.
      solution_channels: channels of the solution; a complex channel counts once.
      complex_valued: whether the solution is complex.
      coefficient_powers: on a sub-domain of side λ, channel i of the interior data is multiplied by
        λ to this power: 0 for a coefficient of the highest derivatives, 2 for a right-hand side of
        second-order equations (f̂ = λ²f). Empty: 0 for all.
      side_powers: for each axis the powers of its side ratio by which scale and solution are
        multiplied on a box of unequal sides, so that the law is exact there as well. Empty: such a
        box has the geometric mean of its side ratios for λ, which is an approximation.
      linear: whether the solution is proportional to the boundary data. Models then are, too: they
        see traces divided by their magnitude, by which their output is multiplied.
      free_constant: whether a solution plus a constant solves the problem whose boundary data has
        that constant added. Models may then see boundary data without its mean (`centred`).
      elliptic: whether the first channel of the interior data is the coefficient of an elliptic
        operator, which must be positive.
      coefficient_kind: how the interior data transforms under rotations and reflections.
      solution_kind: the same for the solution.
      symmetries: the symmetries of the equation that `sino_jax.augment` may use.
    """

    name: str
    axes: tuple[Axis, ...]
    sides: tuple[Side, ...]
    rescale: Callable[[Array, float], Array]
    residual: Callable[..., Array]
    coefficient_channels: int = 1
    solution_channels: int = 1
    complex_valued: bool = False
    coefficient_powers: tuple[int, ...] = ()
    side_powers: tuple[tuple[float, float], ...] = ()
    linear: bool = False
    free_constant: bool = False
    elliptic: bool = False
    coefficient_kind: FieldKind = "scalar"
    solution_kind: FieldKind = "scalar"
    symmetries: frozenset[Symmetry] = frozenset({"rotation", "reflection"})

    def __post_init__(self):
        if self.coefficient_powers and len(self.coefficient_powers) != self.coefficient_channels:
            raise ValueError(
                f"coefficient_powers must have one entry for each of {self.coefficient_channels} "
                f"channels, got {self.coefficient_powers}"
            )
        if self.side_powers and len(self.side_powers) != len(self.axes):
            raise ValueError(
                f"side_powers must have one pair for each of {len(self.axes)} axes, "
                f"got {self.side_powers}"
            )

    @property
    def centrings(self) -> tuple[grid.Centring, ...]:
        return tuple(axis.centring for axis in self.axes)

    @property
    def spatial_axes(self) -> tuple[int, ...]:
        return tuple(i for i, axis in enumerate(self.axes) if axis.name != "t")

    @property
    def output_channels(self) -> int:
        """Real channels of a model's output."""
        return self.solution_channels * (2 if self.complex_valued else 1)

    @property
    def boundary_channels(self) -> int:
        """Real channels of the boundary data: the last channels of a model's input."""
        return len(self.sides) * self.output_channels

    @property
    def input_channels(self) -> int:
        """Real channels of a model's input."""
        return self.coefficient_channels + self.boundary_channels

    @property
    def centring(self) -> grid.Centring:
        """The centring that all axes have in common."""
        if len(set(self.centrings)) > 1:
            raise ValueError(
                f"models take axes of one centring, but those of {self.name} are {self.centrings}"
            )
        return self.centrings[0]

    def model_fields(self) -> dict[str, int | str]:
        """Fields of `sino_jax.models.build` that follow from the equation."""
        return {
            "in_channels": self.input_channels,
            "out_channels": self.output_channels,
            "boundary_channels": self.boundary_channels if self.linear else 0,
            "centring": self.centring,
        }

    def ratio(self, size: Sequence[int], shape: Sequence[int]) -> float:
        """λ of a crop of `size` points from a grid of `shape` points."""
        return grid.ratio(size, shape, self.centrings)

    def rescale_box(
        self, scale: float | Array, size: Sequence[int], shape: Sequence[int]
    ) -> tuple[float | Array, float]:
        """Parameter on a crop of `size` points, and the factor of the solution there.

        The factor is 1 unless the sides are unequal and the equation has `side_powers`: a box that
        is λ wide in space and μ long in time sees Burgers' velocities in units of λ/μ.
        """
        if not self.side_powers:
            return self.rescale(scale, self.ratio(size, shape)), 1.0
        sides = grid.side_ratios(size, shape, self.centrings)
        of_scale, of_solution = (
            math.prod(side**power for side, power in zip(sides, powers, strict=True))
            for powers in zip(*self.side_powers, strict=True)
        )
        return scale * of_scale, of_solution

    def rescale_coefficient(self, coefficient: Array, ratio: float | Array) -> Array:
        """Interior data ``[..., channel]`` of a sub-domain of side `ratio`; see the attribute."""
        if not any(self.coefficient_powers):
            return coefficient
        powers = jnp.asarray(self.coefficient_powers, coefficient.dtype)
        factors = jnp.asarray(ratio, coefficient.dtype) ** powers
        return coefficient * factors.reshape((1,) * (coefficient.ndim - 1) + (-1,))

    def coefficient_growth(self, coefficient: Array) -> Array:
        """The derivative of `rescale_coefficient` by the ratio, at ratio 1."""
        one = jnp.ones((), coefficient.dtype)
        return jax.jvp(lambda r: self.rescale_coefficient(coefficient, r), (one,), (one,))[1]

    def crop_size(self, size: Count | Sequence[Count], shape: Sequence[int]) -> tuple[int, ...]:
        """Points of a crop on every axis; an integer sets the first axis and ties the others to it.

        Tied axes have equal side ratios, so that one λ describes the crop.
        """
        if checks.is_single(size):
            size = checks.integer("size", size)
            return grid.matching_size(size, shape, self.centrings)
        size = tuple(checks.integer("size", points) for points in size)
        grid.check_box(size, shape)
        return size

    def inputs(self, coefficient: Sample | None, field: Sample | None) -> Float[Array, "*grid _"]:
        """Model inputs of one sample: interior data, then the traces of `field` as channels.

        Args:
          coefficient: ``[*grid, coefficient_channels]``, None if the equation has none.
          field: ``[*grid, solution_channels]``; only its values on `sides` are read. May be None
            for an equation without boundary data.
        """
        parts = []
        if self.coefficient_channels:
            self._check_field("coefficient", coefficient, self.coefficient_channels)
            parts.append(channels.to_channels(coefficient))
        if self.sides:
            self._check_field("field", field, self.solution_channels)
            field = channels.as_complex(field) if self.complex_valued else field
            traces = boundary.extended_traces(field, self.sides)
            parts.append(channels.to_channels(traces))
        if len({part.shape[:-1] for part in parts}) > 1:
            raise ValueError(
                f"coefficient and field must have the same grid, got shapes "
                f"{coefficient.shape} and {field.shape}"
            )
        return jnp.concatenate(parts, axis=-1)

    def split(
        self, inputs: Float[Array, "*grid _"]
    ) -> tuple[Float[Array, "*grid _"] | None, Sample]:
        """Inverse of `inputs`: the interior data, and a field with the traces and zeros inside.

        With it a numerical solver can take the place of a model.
        """
        field = jnp.zeros((*inputs.shape[:-1], self.output_channels), inputs.dtype)
        first = self.coefficient_channels
        for side in self.sides:
            extended = inputs[..., first : first + self.output_channels]
            place = (slice(None),) * side.axis + (side.index,)
            field = field.at[place].set(boundary.trace(extended, side))
            first += self.output_channels
        field = channels.from_channels(field) if self.complex_valued else field
        coefficient = inputs[..., : self.coefficient_channels]
        return coefficient if self.coefficient_channels else None, field

    def validate(self, instance: Instance, *, prefix: str = "instance.") -> None:
        """Raises a ValueError if a batch of problems cannot belong to this equation.

        Shapes and dtypes are always checked; values (finite, positive scale) only where they are
        concrete, that is outside of `jit`, `vmap` and `grad`. Messages name a field as `prefix` and
        its name.
        """
        fields = {
            "coefficient": (instance.coefficient, self.coefficient_channels),
            "boundary": (instance.boundary, self.solution_channels),
            "solution": (instance.solution, self.solution_channels),
        }
        if self.coefficient_channels and instance.coefficient is None:
            raise ValueError(f"{prefix}coefficient is needed by {self.name}, got None")
        if self.sides and instance.boundary is None and instance.solution is None:
            raise ValueError(
                f"{self.name} needs {prefix}boundary or {prefix}solution, got None for both"
            )
        batch_shapes = {}
        for name, (field, count) in fields.items():
            if field is not None:
                self._check_field(f"{prefix}{name}", field, count, batched=True)
                batch_shapes[name] = field.shape[:-1]
        if len(set(batch_shapes.values())) > 1:
            raise ValueError(f"the fields of an instance must have one grid, got {batch_shapes}")
        batch, *points = next(iter(batch_shapes.values()))
        if batch == 0 or 0 in points:
            raise ValueError(
                f"the fields of an instance must hold at least one example and one point on each "
                f"axis, got {batch_shapes}"
            )
        shape = getattr(instance.scale, "shape", None)
        if shape != (batch,):
            got = type(instance.scale).__name__ if shape is None else shape
            raise ValueError(f"{prefix}scale must have shape ({batch},), got {got}")
        _check_values(f"{prefix}scale", instance.scale, positive=True)
        for name, (field, _) in fields.items():
            if field is not None:
                _check_values(f"{prefix}{name}", field)

    def check_coefficient(self, name: str, values: Any) -> None:
        """Raises a ValueError if concrete interior data is none that a solution exists for."""
        if values is None or not self.elliptic or isinstance(values, jax.core.Tracer):
            return
        smallest = np.min(np.asarray(values)[..., 0])
        if not smallest > 0:
            raise ValueError(
                f"{name} of {self.name} must be positive, got {smallest:.4g} somewhere"
            )

    def _check_field(
        self, name: str, field: Array | None, channels: int, *, batched: bool = False
    ) -> None:
        layout = [axis.name for axis in self.axes] + [str(channels)]
        layout = ["batch", *layout] if batched else layout
        expected = f"{self.name} takes {name} of shape [{', '.join(layout)}]"
        if field is None:
            raise ValueError(f"{expected}, got None")
        if not hasattr(field, "shape") or not hasattr(field, "dtype"):
            raise ValueError(f"{expected}, got {type(field).__name__}")
        checks.native(name, field)
        if field.ndim != len(layout) or field.shape[-1] != channels:
            raise ValueError(f"{expected}, got shape {field.shape}")
        if not jnp.issubdtype(field.dtype, jnp.inexact):
            raise ValueError(f"{expected} and a floating dtype, got {field.dtype}")
        if jnp.iscomplexobj(field) and (not self.complex_valued or "coefficient" in name):
            raise ValueError(f"{expected} and real values, got {field.dtype}")
        if (
            batched
            and self.complex_valued
            and not ("coefficient" in name or jnp.iscomplexobj(field))
        ):
            raise ValueError(f"{expected} and complex values, got {field.dtype}")


def _check_values(name: str, values: Array, *, positive: bool = False) -> None:
    if isinstance(values, jax.core.Tracer):
        return
    values = np.asarray(values)
    if not np.isfinite(values).all():
        where = np.unique(np.nonzero(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite, got NaN or infinity in examples {where.tolist()}")
    if positive and not (values > 0).all():
        raise ValueError(f"{name} must be positive, got {values.tolist()}")


def power_law(exponent: int) -> Callable[[Array, float], Array]:
    """The scaling law ``scale -> ratio**exponent * scale``."""
    return lambda scale, ratio: scale * ratio**exponent
