"""Truncated real Fourier transforms, and linear maps between Fourier coefficients.

Fields are *grid-first*, ``[*grid, batch, channel]``, and spectra *mode-first*, ``[*modes, 2, batch,
channel]``, the axis of length 2 holding real and imaginary parts. In these orders every step is a
product of flattened matrices, and nothing as large as a field is ever transposed.

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

Field = Float[Array, "*grid batch channel"]
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


def transform(
    field: Field,
    modes: Sequence[int],
    *,
    period: Sequence[int] | None = None,
    method: Method = "auto",
) -> Spectrum:
    """Fourier coefficients of a real field, truncated to the band `modes`.

    Args:
      field: real, ``[*grid, batch, channel]``.
      modes: band on each grid axis (see `bands`); their number is the dimension.
      period: points of the period on each axis, at least the grid's.
      method: "matrix" products with the DFT matrix, the "fft", or whichever is cheaper.

    Raises:
      ValueError: a band that the period cannot hold, a period shorter than the grid, bad method.
    """
    *grid, batch, channel = field.shape
    period = _checked_period(grid, modes, period)
    if _chosen(method, grid, modes, period) == "fft":
        return dft.fft_transform(field, modes, period)
    first = dft.forward_matrix(grid[0], modes[0], period[0]).astype(field.dtype)
    array = first @ field.reshape(grid[0], -1)
    # One axis at a time: [finished modes, re/im, points, rest] -> [.., modes, re/im, rest].
    finished = modes[0]
    for points, kept, length in zip(grid[1:], modes[1:], period[1:], strict=True):
        waves = dft.forward_waves(points, kept, length).astype(field.dtype)
        parts = _left_multiply(waves, array.reshape(2 * finished, points, -1))
        array = _join_signs(parts.reshape(finished, 2, len(waves), -1))
        finished *= len(waves)
    return array.reshape(*bands.band_shape(modes), 2, batch, channel)


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
        return dft.fft_inverse(spectrum, grid, modes, period)
    array, rest = spectrum, batch * channel
    for axis in reversed(range(1, len(grid))):
        waves = dft.inverse_waves(grid[axis], modes[axis], period[axis]).astype(spectrum.dtype)
        parts = _split_signs(array.reshape(math.prod(shape[:axis]), shape[axis], 2, -1))
        array = _left_multiply(waves, parts.reshape(-1, shape[axis], rest))
        rest *= grid[axis]
    last = dft.inverse_matrix(grid[0], modes[0], period[0]).astype(spectrum.dtype)
    return (last @ array.reshape(2 * modes[0], -1)).reshape(*grid, batch, channel)


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


def _join_signs(parts: Float[Array, "n 2 waves rest"]) -> Float[Array, "n waves 2 rest"]:
    """Coefficients at -ξ, 0 and ξ from the products (re, im) with cos(ξx) and with sin(ξx).

    Waves are cosines for ξ = 0, …, m-1, then sines for ξ = 1, …, m-1, which two signs of ξ share:
    f_hat(±ξ) = <f, cos> ∓ i <f, sin>.
    """
    band = (parts.shape[2] + 1) // 2
    zero, even, sines = jnp.split(parts, [1, band], axis=2)
    odd = jnp.stack([sines[:, 1], -sines[:, 0]], axis=1)  # -i <f, sin>
    joined = jnp.concatenate([(even - odd)[:, :, ::-1], zero, even + odd], axis=2)
    return jnp.swapaxes(joined, 1, 2)


def _split_signs(spectrum: Float[Array, "n waves 2 rest"]) -> Float[Array, "n 2 waves rest"]:
    """Amplitudes of cosines and sines, ordered as in `_join_signs`, from coefficients at ±ξ."""
    band = (spectrum.shape[1] + 1) // 2
    negative, zero, positive = jnp.split(jnp.swapaxes(spectrum, 1, 2), [band - 1, band], axis=2)
    negative = negative[:, :, ::-1]
    difference = positive - negative
    sines = jnp.stack([-difference[:, 1], difference[:, 0]], axis=1)  # i (f_hat(ξ) - f_hat(-ξ))
    return jnp.concatenate([zero, positive + negative, sines], axis=2)


def _left_multiply(matrix: np.ndarray, blocks: Float[Array, "n q r"]) -> Float[Array, "n p r"]:
    """matrix @ blocks; on CPU, both it and its gradient in the form that XLA spreads over cores."""
    if not backend.forms_for_cpu():
        return jnp.einsum("pq,nqr->npr", jnp.asarray(matrix), blocks)
    product = jax.custom_vjp(functools.partial(_contract, matrix.T))
    product.defvjp(
        lambda blocks: (_contract(matrix.T, blocks), ()),
        lambda _, cotangent: (_contract(matrix, cotangent),),
    )
    return product(blocks)


def _contract(matrix: np.ndarray, blocks: Float[Array, "n q r"]) -> Float[Array, "n p r"]:
    """matrix.T @ blocks, as a contraction over the rows of both."""
    repeated = jnp.broadcast_to(jnp.asarray(matrix), (len(blocks), *matrix.shape))
    return jax.lax.dot_general(repeated, blocks, (((1,), (1,)), ((0,), (0,))))
