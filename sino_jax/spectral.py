"""Truncated real Fourier transforms, and linear maps between Fourier coefficients.

Fields are *grid-first*, ``[*grid, batch, channel]``; spectra are *mode-first*,
``[*modes, 2, batch, channel]``, the axis of length 2 holding real and imaginary parts. With both in
this order every step is one product of flattened matrices and no array is ever transposed.

    f_hat(ξ) = 1/P Σ_x f(x) e^{-2πi ξ·x/P},     f(x) = Σ_ξ f_hat(ξ) e^{2πi ξ·x/P}

so that coefficients do not depend on the resolution. P is the *period* in points, the grid itself
unless given: a field on a larger period is zero outside its grid, and only its grid is evaluated.

A band of ``m`` modes holds the frequencies ``|ξ| < m``. On the first axis, the half spectrum of a
real field, these are ``0, …, m-1``; on every other axis ``-(m-1), …, m-1`` in this order. The band
is symmetric, and never reaches the Nyquist frequency of an even number of points, whose sign is
ambiguous; so a smaller band is always the middle of a larger one.
"""

import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Field = Float[Array, "*grid batch channel"]
Spectrum = Float[Array, "*modes 2 batch channel"]
Method = Literal["auto", "matrix", "fft"]
METHODS = ("auto", "matrix", "fft")

# Measured on two AVX2 cores: one FFT flop (5 N log2 N of them), transposes included, takes the time
# of this many flops of a matrix product. `python -m benchmarks train_step` prints the measurement.
_FFT_FLOP_COST = 40.0


def largest_band(points: int) -> int:
    """The most modes that `points` points resolve: all frequencies below Nyquist's."""
    return (points + 1) // 2


def kept_modes(n_modes: Sequence[int] | None, period: Sequence[int]) -> tuple[int, ...]:
    """Modes on each axis: `n_modes`, or all that the grid holds if it holds fewer or if None."""
    held = tuple(map(largest_band, period))
    return held if n_modes is None else tuple(map(min, n_modes, held))


def band_shape(modes: Sequence[int]) -> tuple[int, ...]:
    """Number of coefficients on each axis of the spectrum."""
    return (modes[0], *(2 * m - 1 for m in modes[1:]))


def frequencies(modes: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Integer frequencies along each axis of the spectrum."""
    return (np.arange(modes[0]), *(np.arange(1 - m, m) for m in modes[1:]))


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
      modes: band on each grid axis; their number is the dimension.
      period: points of the period on each axis, at least the grid's.
      method: "matrix" products with the DFT matrix, the "fft", or whichever is cheaper.

    Raises:
      ValueError: a band that the period cannot hold, a period shorter than the grid, bad method.
    """
    grid = field.shape[: len(modes)]
    period = _checked_period(grid, modes, period)
    trailing = field.shape[len(modes) :]
    if _chosen(method, grid, modes, period) == "fft":
        return _fft_transform(field, modes, period)
    # One axis at a time: [finished modes, (re/im, points), rest] -> [.., (modes, re/im), rest].
    array, finished = field, 1
    for axis, (points, band, length) in enumerate(zip(grid, modes, period, strict=True)):
        matrix = _forward_matrix(points, band, length, real=axis == 0).astype(field.dtype)
        array = _left_multiply(matrix, array.reshape(finished, matrix.shape[1], -1))
        finished *= matrix.shape[0] // 2
    return array.reshape(*band_shape(modes), 2, *trailing)


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
    dimensions = len(grid)
    shape = spectrum.shape[:dimensions]
    modes = (shape[0], *((n + 1) // 2 for n in shape[1:]))
    period = _checked_period(grid, modes, period)
    trailing = spectrum.shape[dimensions + 1 :]
    if _chosen(method, grid, modes, period) == "fft":
        return _fft_inverse(spectrum, tuple(grid), modes, period)
    array = spectrum
    for axis in reversed(range(dimensions)):
        matrix = _inverse_matrix(grid[axis], modes[axis], period[axis], real=axis == 0)
        remaining = math.prod(shape[:axis])
        blocks = array.reshape(remaining, matrix.shape[1], -1)
        array = _left_multiply(matrix.astype(spectrum.dtype), blocks)
    return array.reshape(*grid, *trailing)


def mix(
    spectrum: Spectrum, weights: Float[Array, "*band channel 2 out"]
) -> Float[Array, "*modes 2 batch out"]:
    """Multiplies the channels of every mode by that mode's own complex matrix.

    Weights of a larger band are aligned with the spectrum by frequency (`truncate`); a spectrum
    with more modes than the weights raises a ValueError.
    """
    modes = band(spectrum.shape[:-3])
    if any(map(int.__gt__, modes, band(weights.shape[:-3]))):
        raise ValueError(
            f"spectrum has more modes than there are weights: {spectrum.shape[:-3]} coefficients, "
            f"weights for {weights.shape[:-3]}"
        )
    weights = truncate(weights, modes)
    *_, _, batch, channel = spectrum.shape
    count, out = math.prod(spectrum.shape[:-3]), weights.shape[-1]
    rows = spectrum.reshape(count, 2 * batch, channel)
    products = rows @ weights.reshape(count, channel, 2 * out)
    return _complex_sum(products.reshape(*spectrum.shape[:-1], 2, out))


def mix_shared(
    spectrum: Spectrum,
    weights: Float[Array, "channel 2 out"],
    bias: Float[Array, "2 out"] | None = None,
) -> Float[Array, "*modes 2 batch out"]:
    """Multiplies the channels of every mode by one complex matrix, and adds one complex bias."""
    channel, _, out = weights.shape
    products = spectrum.reshape(-1, channel) @ weights.reshape(channel, 2 * out)
    mixed = _complex_sum(products.reshape(*spectrum.shape[:-1], 2, out))
    if bias is None:
        return mixed
    return mixed + bias.reshape(*(1,) * (mixed.ndim - 3), 2, 1, out)


def complex_gelu(spectrum: Spectrum) -> Spectrum:
    """GeLU of real and imaginary part separately (paper, "Activation Functions on Complex Space").

    It vanishes at zero and is smooth there: decaying coefficients keep their rate of decay.
    """
    return jax.nn.gelu(spectrum)


def truncate(
    array: Float[Array, "*modes a b c"], modes: Sequence[int]
) -> Float[Array, "*band a b c"]:
    """The coefficients (or weights) of a smaller band: the same frequencies of each axis."""
    held = band(array.shape[: len(modes)])
    if any(m > n for m, n in zip(modes, held, strict=True)):
        raise ValueError(f"modes must lie within the band {held} of the array, got {tuple(modes)}")
    first = slice(0, modes[0])
    others = (slice(n - m, n + m - 1) for n, m in zip(held[1:], modes[1:], strict=True))
    return array[(first, *others)]


def embed(spectrum: Spectrum, modes: Sequence[int]) -> Float[Array, "*band 2 batch channel"]:
    """The coefficients of a larger band, zero where the spectrum has none."""
    held = band(spectrum.shape[: len(modes)])
    if any(map(int.__lt__, modes, held)):
        raise ValueError(f"modes must contain the band {held} of spectrum, got {tuple(modes)}")
    widths = [(0, modes[0] - held[0])]
    widths += [(m - n, m - n) for n, m in zip(held[1:], modes[1:], strict=True)]
    return jnp.pad(spectrum, [*widths, (0, 0), (0, 0), (0, 0)])


def resample(
    field: Field, grid: Sequence[int], *, method: Method = "auto"
) -> Float[Array, "*resampled batch channel"]:
    """A periodic field at the points of another grid, by its Fourier series.

    Exact for fields whose frequencies both grids hold; higher ones are dropped, not aliased.
    """
    modes = tuple(map(min, *(map(largest_band, g) for g in (field.shape[: len(grid)], grid))))
    return inverse(transform(field, modes, method=method), grid, method=method)


def energy_weights(modes: Sequence[int]) -> np.ndarray:
    """Parseval weights ``[*modes]``: ``Σ_ξ w_ξ |f_hat(ξ)|²`` is the mean square of the field.

    A coefficient with ξ_0 > 0 stands for itself and for its conjugate at -ξ.
    """
    first = np.where(np.arange(modes[0]) == 0, 1.0, 2.0)
    shape = band_shape(modes)
    return np.broadcast_to(first.reshape(-1, *(1,) * (len(shape) - 1)), shape)


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
    weights = jnp.asarray(energy_weights(band(modes)), spectrum.dtype)
    # [modes, 2, batch, channel] -> energy of each example and channel
    count = math.prod(modes)
    flat = spectrum.reshape(count, 2, batch, channel)
    energy = jnp.einsum("m,mrbc->bc", weights.reshape(count), flat**2)
    mean = jnp.mean(energy.reshape(batch, groups, channel // groups), axis=-1)
    factor = jnp.repeat(1 / jnp.sqrt(mean + epsilon), channel // groups, axis=-1)
    scaled = flat * (factor * gain[None]).reshape(1, 1, batch, channel)
    return scaled.reshape(spectrum.shape)


def matrix_flops(grid: Sequence[int], modes: Sequence[int]) -> float:
    """Floating-point operations, per channel and example, of `transform` by matrix products."""
    flops, rows = 0.0, 1
    for axis, points in enumerate(grid):
        columns = points if axis == 0 else 2 * points
        outputs = 2 * band_shape(modes)[axis]
        flops += 2 * rows * columns * outputs * math.prod(grid[axis + 1 :])
        rows *= outputs // 2
    return flops


def fft_flops(period: Sequence[int]) -> float:
    """Floating-point operations, per channel and example, of a real FFT: 5/2 N log2 N."""
    count = math.prod(period)
    return 2.5 * count * math.log2(max(count, 2))


def cheapest_method(
    grid: Sequence[int], modes: Sequence[int], period: Sequence[int]
) -> Literal["matrix", "fft"]:
    """The cost model behind ``method="auto"``."""
    cheaper = matrix_flops(grid, modes) <= _FFT_FLOP_COST * fft_flops(period)
    return "matrix" if cheaper else "fft"


def _chosen(
    method: Method, grid: Sequence[int], modes: Sequence[int], period: Sequence[int]
) -> Method:
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    return cheapest_method(grid, modes, period) if method == "auto" else method


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
    held = tuple(map(largest_band, period))
    if any(not 1 <= m <= h for m, h in zip(modes, held, strict=True)):
        raise ValueError(
            f"modes must be between 1 and the {held} that a period of {period} points holds, "
            f"got {tuple(modes)}"
        )
    return period


def band(shape: Sequence[int]) -> tuple[int, ...]:
    return (shape[0], *((n + 1) // 2 for n in shape[1:]))


def _complex_sum(
    products: Float[Array, "*modes 2 batch 2 out"],
) -> Float[Array, "*modes 2 batch out"]:
    """(re, im) of a complex product from the four real ones, [input part, batch, weight part]."""
    real = products[..., 0, :, 0, :] - products[..., 1, :, 1, :]
    imaginary = products[..., 0, :, 1, :] + products[..., 1, :, 0, :]
    return jnp.stack([real, imaginary], axis=-3)


def _left_multiply(matrix: np.ndarray, blocks: Float[Array, "n q r"]) -> Float[Array, "n p r"]:
    return jnp.matmul(jnp.broadcast_to(jnp.asarray(matrix), (len(blocks), *matrix.shape)), blocks)


def _angles(points: int, frequencies: np.ndarray, period: int) -> np.ndarray:
    # The integer remainder keeps the angles of high frequencies exact.
    return 2 * np.pi * (np.outer(frequencies, np.arange(points)) % period) / period


def _forward_matrix(points: int, band: int, period: int, *, real: bool) -> np.ndarray:
    """``[(modes, re/im), points]`` for real input, ``[(modes, re/im), (re/im, points)]`` else."""
    angles = _angles(points, np.arange(band) if real else np.arange(1 - band, band), period)
    cosine, sine = np.cos(angles), np.sin(angles)
    if real:
        blocks = np.stack([cosine, -sine], axis=1)
    else:
        blocks = np.stack([np.hstack([cosine, sine]), np.hstack([-sine, cosine])], axis=1)
    return blocks.reshape(-1, blocks.shape[-1]) / period


def _inverse_matrix(points: int, band: int, period: int, *, real: bool) -> np.ndarray:
    """``[points, (modes, re/im)]`` for real output, ``[(re/im, points), (modes, re/im)]`` else."""
    angles = _angles(points, np.arange(band) if real else np.arange(1 - band, band), period).T
    cosine, sine = np.cos(angles), np.sin(angles)
    if real:
        weights = energy_weights((band,))
        return np.stack([weights * cosine, -weights * sine], axis=-1).reshape(points, -1)
    rows = [np.stack([cosine, -sine], axis=-1), np.stack([sine, cosine], axis=-1)]
    return np.concatenate(rows).reshape(2 * points, -1)


def _fft_transform(field: Array, modes: Sequence[int], period: Sequence[int]) -> Array:
    axes = (*range(1, len(modes)), 0)  # the last of these is the one that is halved
    full = jnp.fft.rfftn(field, s=[period[axis] for axis in axes], axes=axes, norm="forward")
    full = jnp.fft.fftshift(full, axes=axes[:-1])[: modes[0]]
    centres = [n // 2 for n in period[1:]]
    middle = (slice(c - m + 1, c + m) for c, m in zip(centres, modes[1:], strict=True))
    kept = full[(slice(None), *middle)]
    return jnp.stack([kept.real, kept.imag], axis=len(modes))


def _fft_inverse(
    spectrum: Array, grid: tuple[int, ...], modes: Sequence[int], period: Sequence[int]
) -> Array:
    dimensions = len(grid)
    axes = (*range(1, dimensions), 0)
    parts = jnp.moveaxis(spectrum, dimensions, 0)
    coefficients = jax.lax.complex(parts[0], parts[1])
    widths = [(0, period[0] // 2 + 1 - modes[0])]
    widths += [(n // 2 - m + 1, n - n // 2 - m) for n, m in zip(period[1:], modes[1:], strict=True)]
    full = jnp.pad(coefficients, [*widths, (0, 0), (0, 0)])
    full = jnp.fft.ifftshift(full, axes=axes[:-1])
    field = jnp.fft.irfftn(full, s=[period[axis] for axis in axes], axes=axes, norm="forward")
    return field[tuple(slice(n) for n in grid)]
