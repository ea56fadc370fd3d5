"""Dealiased Fourier modes of real fields on periodic boxes.

A field on n points an axis is represented by its modes |k| <= (n - 1) // 3 (Orszag's 2/3 rule):
a product of two such fields, formed on the grid, has no aliasing error in those modes. The modes
that the rule sets to zero are not stored, so that everything pointwise in Fourier space works on
4/9 of the modes in two dimensions.

Mode arrays, marked `_hat`, are those of `jnp.fft.rfftn` (unnormalised) with the rows of high wave
numbers cut out: ``[2 K_x + 1, K_y + 1]``, k_x = 0 .. K_x, -K_x .. -1, k_y = 0 .. K_y. Odd and
unequal sizes work.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float


def cutoff(points: int) -> int:
    """Largest wave number that is kept on an axis of `points` points."""
    return (points - 1) // 3


def wave_numbers(
    shape: Sequence[int], dtype: jax.typing.DTypeLike
) -> tuple[Float[Array, "..."], ...]:
    """Integer wave numbers of the stored modes, one array for each axis, ready to broadcast."""
    *leading, last = [jnp.arange(cutoff(n) + 1) for n in shape]
    axes = [jnp.concatenate([k, -k[:0:-1]]) for k in leading] + [last]
    return tuple(jnp.meshgrid(*[k.astype(dtype) for k in axes], indexing="ij", sparse=True))


def scale(factor: Float[Array, "..."], modes: Complex[Array, "*modes"]) -> Complex[Array, "*modes"]:
    """Real factors times modes; two real products, where promotion would make it a complex one."""
    return jax.lax.complex(factor * modes.real, factor * modes.imag)


def differentiate(
    wave_number: Float[Array, "..."], modes: Complex[Array, "*modes"]
) -> Complex[Array, "*modes"]:
    """i k times modes."""
    return jax.lax.complex(-wave_number * modes.imag, wave_number * modes.real)


def to_modes(field: Float[Array, "*grid"]) -> Complex[Array, "*modes"]:
    """Modes of a real field up to the cut-off; what lies above is dropped."""
    modes = jnp.fft.rfftn(field)[..., : cutoff(field.shape[-1]) + 1]
    for axis, points in enumerate(field.shape[:-1]):
        k = cutoff(points)
        low, high = jnp.split(modes, [points - k], axis=axis)
        modes = jnp.concatenate([low[(slice(None),) * axis + (slice(k + 1),)], high], axis=axis)
    return modes


def resample(field: Float[Array, "*grid"], shape: Sequence[int]) -> Float[Array, "*shape"]:
    """The same function on another periodic grid, without the modes that one of both cuts off."""
    modes = to_modes(field)
    for axis, (old, new) in enumerate(zip(field.shape, shape, strict=True)):
        old, new = cutoff(old), cutoff(new)
        kept = min(old, new)
        low = jax.lax.slice_in_dim(modes, 0, kept + 1, axis=axis)
        zeros = jnp.zeros_like(modes, shape=(*low.shape[:axis], 1, *low.shape[axis + 1 :]))
        if axis == field.ndim - 1:
            parts = [low, jnp.repeat(zeros, new - kept, axis)]
        else:
            high = jax.lax.slice_in_dim(modes, 2 * old + 1 - kept, 2 * old + 1, axis=axis)
            parts = [low, jnp.repeat(zeros, 2 * (new - kept), axis), high]
        modes = jnp.concatenate(parts, axis=axis) * (shape[axis] / field.shape[axis])
    return to_grid(modes, shape)


def restrict(field: Float[Array, "x y"], points: int) -> Float[Array, "points points"]:
    """A field on a square of `points` points a side, without what that grid cannot hold.

    All wave numbers |k| < points / 2 are kept, more than `resample` keeps: for data that models are
    given, not for a solver that forms products.
    """
    n, kept = field.shape[0], (points - 1) // 2
    if field.shape != (n, n) or not 4 <= points <= n:
        raise ValueError(f"points must be from 4 to those of a square, {field.shape}, got {points}")
    if points == n:
        return field
    modes = jnp.fft.rfft2(field)[:, : kept + 1]
    empty = jnp.zeros((points - 2 * kept - 1, kept + 1), modes.dtype)
    modes = jnp.concatenate([modes[: kept + 1], empty, modes[n - kept :]])
    modes = jnp.pad(modes, [(0, 0), (0, points // 2 - kept)])
    return jnp.fft.irfft2(modes, (points, points)) * (points / n) ** 2


def to_grid(modes: Complex[Array, "*modes"], shape: Sequence[int]) -> Float[Array, "*grid"]:
    """Values on a grid of `shape` points; inverse of `to_modes` for fields below the cut-off."""
    for axis, points in enumerate(shape[:-1]):
        k = cutoff(points)
        low, high = jnp.split(modes, [k + 1], axis=axis)
        zeros = jnp.zeros(
            (*modes.shape[:axis], points - 2 * k - 1, *modes.shape[axis + 1 :]), modes.dtype
        )
        modes = jnp.concatenate([low, zeros, high], axis=axis)
    unused = shape[-1] // 2 - cutoff(shape[-1])
    modes = jnp.pad(modes, [(0, 0)] * (len(shape) - 1) + [(0, unused)])
    return jnp.fft.irfftn(modes, shape)
