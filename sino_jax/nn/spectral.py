"""Truncated real Fourier transforms, and linear maps between Fourier coefficients.

Fields are ``[first, channel, batch, *rest]``: the first axis of the grid, then channel and batch,
then the other axes of the grid. So a transform of the first axis, one of the last and a map of the
channels are products of flattened matrices, nothing as large as a field is ever transposed, and the
loops of pointwise functions are long however few the channels are. Spectra are *mode-first*,
``[*modes, 2, batch, channel]``, the axis of length 2 holding real and imaginary parts.

    f_hat(ξ) = 1/P Σ_x f(x) e^{-2πi ξ·x/P},     f(x) = Σ_ξ f_hat(ξ) e^{2πi ξ·x/P}

so that coefficients do not depend on the resolution. P is the *period* in points, the grid itself
unless given: a field on a larger period is zero outside its grid, and only its grid is evaluated.
"""

import functools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sino_jax.nn import backend, bands, dft
from sino_jax.nn.activation import gelu
from sino_jax.nn.products import mode_product

Field = Float[Array, "first _channel batch *rest"]  # pointwise maps change the channels
Spectrum = Float[Array, "*modes 2 batch channel"]
Method = Literal["auto", "matrix", "fft"]
METHODS = ("auto", "matrix", "fft")


class ModeWeights(NamedTuple):
    """A complex matrix for each mode, its parts stored apart: optimisers see real numbers."""

    real: Float[Array, "*modes channel out"]
    imag: Float[Array, "*modes channel out"]


class SharedWeights(NamedTuple):
    """One complex matrix for all modes, its parts stored apart."""

    real: Float[Array, "channel out"]
    imag: Float[Array, "channel out"]


def to_field(array: Float[Array, "batch first *rest channel"]) -> Field:
    """A field from an array that is batch-first and channel-last."""
    return jnp.moveaxis(array, (1, -1), (0, 1))


def from_field(field: Field) -> Float[Array, "batch first *rest channel"]:
    """Inverse of `to_field`."""
    return jnp.moveaxis(field, (0, 1), (1, -1))


def grid_of(field: Field) -> tuple[int, ...]:
    """Points of a field on each axis of its grid."""
    return (field.shape[0], *field.shape[3:])


def transform(
    field: Field,
    modes: Sequence[int],
    *,
    period: Sequence[int] | None = None,
    method: Method = "auto",
) -> Spectrum:
    """Fourier coefficients of a real field, truncated to the band `modes`.

    Args:
      field: real, ``[first, channel, batch, *rest]``.
      modes: band on each grid axis (see `bands`); their number is the dimension.
      period: points of the period on each axis, at least the grid's.
      method: "matrix" products with the DFT matrix, the "fft", or whichever is cheaper.

    Raises:
      ValueError: a band that the period cannot hold, a period shorter than the grid, bad method.
    """
    grid = grid_of(field)
    period = _checked_period(grid, modes, period)
    if _chosen(method, grid, modes, period) == "fft":
        return dft.fft_transform(jnp.moveaxis(field, (1, 2), (-1, -2)), modes, period)
    first = dft.forward_matrix(grid[0], modes[0], period[0]).astype(field.dtype)
    array = _left_multiply(first, field.reshape(1, grid[0], -1))
    array = array.reshape(modes[0], 2, *field.shape[1:])
    # The last axis first, which leaves the others less work: [mode, re/im, channel, batch, *rest].
    for axis in reversed(range(1, len(grid))):
        waves = dft.forward_waves(grid[axis], modes[axis], period[axis]).astype(field.dtype)
        array = _join_signs(_along(waves, array, axis + 3), axis + 3)
    return jnp.moveaxis(array, (1, 2, 3), (-3, -1, -2))


def inverse(
    spectrum: Spectrum,
    grid: Sequence[int],
    *,
    period: Sequence[int] | None = None,
    method: Method = "auto",
) -> Field:
    """The real field on `grid` with the given Fourier coefficients; see `transform`.

    Of coefficients that are not Hermitian (the two halves of the plane ξ_0 = 0 are both stored) the
    Hermitian part is used. Any grid may be asked for that holds the band: this also resamples.
    """
    *shape, _, batch, channel = spectrum.shape
    modes = bands.modes_of(shape)
    period = _checked_period(grid, modes, period)
    if _chosen(method, grid, modes, period) == "fft":
        return jnp.moveaxis(dft.fft_inverse(spectrum, grid, modes, period), (-1, -2), (1, 2))
    array = jnp.moveaxis(spectrum, (-3, -1, -2), (1, 2, 3))
    for axis in range(1, len(grid)):
        waves = dft.inverse_waves(grid[axis], modes[axis], period[axis]).astype(spectrum.dtype)
        array = _along(waves, _split_signs(array, axis + 3), axis + 3)
    last = dft.inverse_matrix(grid[0], modes[0], period[0]).astype(spectrum.dtype)
    array = _left_multiply(last, array.reshape(1, 2 * modes[0], -1))
    return array.reshape(grid[0], channel, batch, *grid[1:])


def mix(spectrum: Spectrum, weights: ModeWeights) -> Float[Array, "*modes 2 batch out"]:
    """Multiplies the channels of every mode by that mode's own complex matrix.

    Weights of a larger band are aligned with the spectrum by frequency (`truncate`); a spectrum
    with more modes than the weights raises a ValueError.
    """
    *shape, _, batch, channel = spectrum.shape
    modes, held = bands.modes_of(shape), bands.modes_of(weights.real.shape[:-2])
    if any(m > n for m, n in zip(modes, held, strict=True)):
        raise ValueError(f"spectrum has more modes than there are weights: {modes}, not {held}")
    rows = spectrum.reshape(-1, 2 * batch, channel)
    out = weights.real.shape[-1]
    matrices = (bands.truncate(part, modes).reshape(-1, channel, out) for part in weights)
    # Two products that do not depend on each other: small matrices keep only one core busy each.
    products = (mode_product(rows, part).reshape(*shape, 2, batch, out) for part in matrices)
    return _complex_sum(*products)


def mix_shared(
    spectrum: Spectrum, weights: SharedWeights, bias: Float[Array, "2 out"] | None = None
) -> Float[Array, "*modes 2 batch out"]:
    """Multiplies the channels of every mode by one complex matrix, and adds one complex bias."""
    rows = spectrum.reshape(-1, spectrum.shape[-1])
    shape = (*spectrum.shape[:-1], weights.real.shape[-1])
    mixed = _complex_sum(*((rows @ part).reshape(shape) for part in weights))
    if bias is None:
        return mixed
    return mixed + bias.reshape(*(1,) * (mixed.ndim - 3), 2, 1, shape[-1])


def complex_gelu(spectrum: Spectrum) -> Spectrum:
    """GeLU of real and imaginary part separately (paper, "Activation Functions on Complex Space").

    It vanishes at zero and is smooth there: decaying coefficients keep their rate of decay.
    """
    return gelu(spectrum)


def group_norm(
    spectrum: Spectrum,
    gain: Float[Array, "channel"],
    *,
    groups: int = 1,
    epsilon: float = 1e-6,
) -> Spectrum:
    """Divides each group of channels by the root mean square of its fields in physical space.

    By Parseval this is a weighted *sum* over modes. A mean over modes would shrink as a finer grid
    adds empty modes, and a subtracted mean or an added bias would fill those modes: either one
    would make the result depend on the resolution.
    """
    *modes, _, batch, channel = spectrum.shape
    if channel % groups:
        raise ValueError(f"groups must divide the number of channels {channel}, got {groups}")
    weights = jnp.asarray(bands.energy_weights(bands.modes_of(modes)), spectrum.dtype)
    # [modes, 2, batch, channel] -> energy of each example and channel
    count = math.prod(modes)
    flat = spectrum.reshape(count, 2, batch, channel)
    energy = jnp.einsum("m,mrbc->bc", weights.reshape(count), flat**2)
    mean = jnp.mean(energy.reshape(batch, groups, channel // groups), axis=-1)
    factor = jnp.repeat(1 / jnp.sqrt(mean + epsilon), channel // groups, axis=-1)
    scaled = flat * (factor * gain[None]).reshape(1, 1, batch, channel)
    return scaled.reshape(spectrum.shape)


def _chosen(
    method: Method, grid: Sequence[int], modes: Sequence[int], period: Sequence[int]
) -> Method:
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    return dft.cheapest_method(grid, modes, period) if method == "auto" else method


def _checked_period(
    grid: Sequence[int], modes: Sequence[int], period: Sequence[int] | None
) -> tuple[int, ...]:
    period = tuple(grid) if period is None else tuple(period)
    if not len(grid) == len(modes) == len(period):
        raise ValueError(
            "grid, modes and period must have one entry for each axis, "
            f"got {tuple(grid)}, {tuple(modes)} and {period}"
        )
    if any(map(int.__lt__, period, grid)):
        raise ValueError(f"period must be at least the grid {tuple(grid)}, got {period}")
    held = tuple(map(bands.largest_band, period))
    if any(not 1 <= m <= h for m, h in zip(modes, held, strict=True)):
        raise ValueError(
            f"modes must be between 1 and the {held} that a period of {period} points holds, "
            f"got {tuple(modes)}"
        )
    return period


def _complex_sum(by_real: Array, by_imag: Array) -> Array:
    """(re, im) of a product from those of (re, im) with the weights' real and imaginary part."""
    real = by_real[..., 0, :, :] - by_imag[..., 1, :, :]
    imaginary = by_imag[..., 0, :, :] + by_real[..., 1, :, :]
    return jnp.stack([real, imaginary], axis=-3)


def _join_signs(parts: Float[Array, "mode 2 *others"], axis: int) -> Float[Array, "mode 2 *others"]:
    """Coefficients at -ξ, 0 and ξ from the products (re, im) with cos(ξx) and with sin(ξx).

    Waves are cosines for ξ = 0, …, m-1, then sines for ξ = 1, …, m-1, which two signs of ξ share:
    f_hat(±ξ) = <f, cos> ∓ i <f, sin>.
    """
    band = (parts.shape[axis] + 1) // 2
    zero, even, sines = jnp.split(parts, [1, band], axis=axis)
    odd = jnp.stack([sines[:, 1], -sines[:, 0]], axis=1)  # -i <f, sin>
    return jnp.concatenate([jnp.flip(even - odd, axis), zero, even + odd], axis=axis)


def _split_signs(
    spectrum: Float[Array, "mode 2 *others"], axis: int
) -> Float[Array, "mode 2 *others"]:
    """Amplitudes of cosines and sines, ordered as in `_join_signs`, from coefficients at ±ξ."""
    band = (spectrum.shape[axis] + 1) // 2
    negative, zero, positive = jnp.split(spectrum, [band - 1, band], axis=axis)
    negative = jnp.flip(negative, axis)
    difference = positive - negative
    sines = jnp.stack([-difference[:, 1], difference[:, 0]], axis=1)  # i (f_hat(ξ) - f_hat(-ξ))
    return jnp.concatenate([zero, positive + negative, sines], axis=axis)


def _along(matrix: np.ndarray, array: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """The product of a matrix with every line of the array along an axis."""
    before, after = array.shape[:axis], array.shape[axis + 1 :]
    if after:
        product = _left_multiply(matrix, array.reshape(-1, array.shape[axis], math.prod(after)))
    else:
        product = _right_multiply(array.reshape(-1, array.shape[axis]), matrix.T.copy())
    return product.reshape(*before, len(matrix), *after)


def _constant_product(contract, matrix: np.ndarray, array: Array) -> Array:
    """A product with a constant matrix, whose gradient is the same with its transpose."""
    product = jax.custom_vjp(functools.partial(contract, matrix))
    product.defvjp(
        lambda array: (contract(matrix, array), ()),
        lambda _, cotangent: (contract(np.ascontiguousarray(matrix.T), cotangent),),
    )
    return product(array)


def _left_multiply(matrix: np.ndarray, blocks: Float[Array, "n q r"]) -> Float[Array, "n p r"]:
    """matrix @ blocks; on CPU, both it and its gradient in the form that XLA spreads over cores."""
    if not backend.forms_for_cpu():
        return jnp.einsum("pq,nqr->npr", jnp.asarray(matrix), blocks)
    return _constant_product(_left_product, matrix, blocks)


def _right_multiply(rows: Float[Array, "n q"], matrix: np.ndarray) -> Float[Array, "n p"]:
    """rows @ matrix."""
    if not backend.forms_for_cpu():
        return rows @ jnp.asarray(matrix)
    return _constant_product(_right_product, matrix, rows)


def _left_product(matrix: np.ndarray, blocks: Float[Array, "n q r"]) -> Float[Array, "n p r"]:
    if len(blocks) == 1:
        return (jnp.asarray(matrix) @ blocks[0])[None]
    repeated = jnp.broadcast_to(jnp.asarray(matrix), (len(blocks), *matrix.shape))
    return repeated @ blocks


def _right_product(matrix: np.ndarray, rows: Float[Array, "n q"]) -> Float[Array, "n p"]:
    return rows @ jnp.asarray(matrix)
