"""Norms that hold over the whole range of a dtype and never take NaN for a small number.

A sum of squares overflows where its root would not, and underflows to an error of zero: values are
divided by a power of two near their largest first, which changes no digit of the result. NaN goes
through every function here: a comparison with it is false, so each tests for the exception (zero),
not for the rule (positive).
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sino_jax.types import PerExample, Sample


def l2_norm(field: Inexact[Array, "batch *values"]) -> PerExample:
    """Root of the sum of squares of each example: the discrete L2 norm up to the grid's constant.

    It has a gradient at zero, which is zero. Half precision is summed and returned in single.
    """
    # Flat: sums over several axes, of which the last is short, are many times slower (CPU).
    scaled, factor = to_unit_size(field.reshape(len(field), -1), (1,))
    return factor.reshape(-1) * root(jnp.sum(squares(scaled), axis=1))


def bilinear_l2_norm(field: Sample, extent: Sequence[float]) -> Float[Array, ""]:
    """L2 norm over a rectangle of the field that is bilinear between nodes, by exact quadrature."""
    values, factor = to_unit_size(field, None)
    for axis in (0, 1):
        low = jax.lax.slice_in_dim(values, 0, values.shape[axis] - 1, axis=axis)
        high = jax.lax.slice_in_dim(values, 1, values.shape[axis], axis=axis)
        # The two Gauss points of an element are exact for squares of linear functions.
        weights = [0.5 + sign * 0.5 / 3**0.5 for sign in (-1, 1)]
        values = jnp.concatenate([low + w * (high - low) for w in weights], axis=axis)
    area_of_point = extent[0] * extent[1] / (values.shape[0] * values.shape[1])
    return factor.reshape(()) * root(jnp.sum(squares(values)) * area_of_point)


def relative(error: Float[Array, "*batch"], size: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Quotient of two norms that stays finite where `size` is zero."""
    return error / jnp.maximum(size, jnp.finfo(size.dtype).tiny)


def root(square: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The square root, with derivative zero at zero, where it has none."""
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


def squares(field: Inexact[Array, "..."]) -> Float[Array, "..."]:
    """|v|², real for complex values too."""
    return field.real**2 + field.imag**2 if jnp.iscomplexobj(field) else field**2


def to_unit_size(
    field: Inexact[Array, "..."], axes: Sequence[int] | None
) -> tuple[Inexact[Array, "..."], Float[Array, "..."]]:
    """The field over a power of two, so that its largest value over `axes` is near one, and that.

    The factor is constant to differentiation, positive, and finite: one for zeros and where a
    value is NaN or infinite. It keeps the reduced axes.
    """
    if field.dtype in (jnp.float16, jnp.bfloat16):
        field = field.astype(jnp.float32)
    parts = [field.real, field.imag] if jnp.iscomplexobj(field) else [field]
    factor = _power_of_two(parts, axes)
    scaled = [part * (1 / factor) for part in parts]
    return jax.lax.complex(*scaled) if len(scaled) == 2 else scaled[0], factor


def _power_of_two(
    parts: Sequence[Float[Array, "..."]], axes: Sequence[int] | None
) -> Float[Array, "..."]:
    """The power of two below the largest absolute value of all parts over `axes`, which are kept.

    Exponents are compared as integers: that costs a twentieth of the largest value itself, since
    XLA vectorises no maximum that lets NaN through (CPU).
    """
    dtype = parts[0].dtype
    info = jnp.finfo(dtype)
    integer = jnp.int32 if info.bits == 32 else jnp.int64
    mask = np.array(np.inf, dtype).view(integer)

    def largest_exponent(values):
        exponents = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(values), integer) & mask
        return jnp.max(exponents, axis=axes, keepdims=True, initial=0)

    largest = functools.reduce(jnp.maximum, map(largest_exponent, parts))
    power = jax.lax.bitcast_convert_type(largest, dtype)
    # The inverse of a larger or smaller one would not be a normal number.
    power = jnp.clip(power, info.tiny, 1 / info.tiny)
    return jnp.where((largest > 0) & (largest < mask), power, 1)
