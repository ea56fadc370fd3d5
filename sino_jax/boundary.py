"""Boundary data: traces of a field, their extension to channels, and their magnitude.

A `Side` is one face of the box. The trace on a side is extended to the whole grid by repeating it
along the side's own axis, so that a network sees boundary data as ordinary channels (paper,
section "Boundary condition"). The extended channel of side ``(axis, end)`` is constant along
`axis`, hence the trace is read back from any slice of it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Inexact

from sino_jax import norms
from sino_jax.types import PerExample, RealBatch, Sample


class Side(NamedTuple):
    """A face of the box: a grid axis and which of its ends."""

    axis: int
    end: Literal["low", "high"]

    @property
    def index(self) -> int:
        return 0 if self.end == "low" else -1


def all_sides(dimensions: int) -> tuple[Side, ...]:
    """Every face of a box: ``(0, low), (0, high), (1, low), (1, high), ...``."""
    return tuple(Side(axis, end) for axis in range(dimensions) for end in ("low", "high"))


def trace(field: Sample, side: Side) -> Inexact[Array, "*face _"]:
    """Restriction of one sample to a side; the side's axis is dropped."""
    return jnp.take(field, side.index, axis=side.axis)


def extend(face: Inexact[Array, "*face _"], side: Side, points: int) -> Sample:
    """Repeats a trace `points` times along the axis of its side."""
    expanded = jnp.expand_dims(face, side.axis)
    shape = (*face.shape[: side.axis], points, *face.shape[side.axis :])
    return jnp.broadcast_to(expanded, shape)


def extended_traces(field: Sample, sides: Sequence[Side]) -> Sample:
    """The traces of one sample on `sides` as channels: ``[*grid, len(sides) * channel]``."""
    traces = [extend(trace(field, side), side, field.shape[side.axis]) for side in sides]
    return jnp.concatenate(traces, axis=-1)


def ring(field: Sample) -> Sample:
    """The field on the outer ring of the grid and zero inside: all that boundary data may hold."""
    inside = tuple(slice(1, -1) for _ in field.shape[:-1])
    return field.at[inside].set(0)


def centre(traces: RealBatch, sides: int) -> tuple[RealBatch, Array]:
    """Extended traces of so many sides less the mean of the boundary values, and that mean."""
    parts = jnp.split(traces, sides, axis=-1)
    axes = tuple(range(1, traces.ndim - 1))
    mean = jnp.mean(sum(parts) / sides, axis=axes, keepdims=True)
    return traces - jnp.tile(mean, sides), mean


def magnitude(channels: RealBatch) -> PerExample:
    """Size of the boundary data: the standard deviation over all extended traces of an example.

    Constant boundary data has standard deviation zero; its root mean square is used then. Zero only
    if the data is zero everywhere, and homogeneous: c times the data has exactly c times the
    magnitude for every power of two c, as long as the data itself does not over- or underflow.
    """
    axes = tuple(range(1, channels.ndim))
    scaled, factor = norms.to_unit_size(channels, axes)
    variance = jnp.var(scaled, axis=axes)
    mean_square = jnp.mean(scaled**2, axis=axes)
    # A deviation at the level of round-off carries no scale.
    constant = variance <= (100 * jnp.finfo(channels.dtype).eps) ** 2 * mean_square
    size = factor.reshape(-1) * norms.root(jnp.where(constant, mean_square, variance))
    return size.astype(channels.dtype)
