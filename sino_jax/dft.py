"""Two ways to the same truncated Fourier coefficients, and which of them is cheaper.

Matrices transform one axis at a time, in the order of `spectral.transform`; the FFT transforms all
axes and then drops what is outside the band.
"""

import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sino_jax.bands import band_shape, energy_weights

# Estimate for two AVX2 cores: one FFT flop (5 N log2 N of them), transposes included, takes as long
# as this many flops of a matrix product. `python -m benchmarks train_step` measures it.
_FFT_FLOP_COST = 30.0


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


def _angles(points: int, frequencies: np.ndarray, period: int) -> np.ndarray:
    # The integer remainder keeps the angles of high frequencies exact.
    return 2 * np.pi * (np.outer(frequencies, np.arange(points)) % period) / period


def forward_matrix(points: int, band: int, period: int, *, real: bool) -> np.ndarray:
    """``[(modes, re/im), points]`` for real input, ``[(modes, re/im), (re/im, points)]`` else."""
    angles = _angles(points, np.arange(band) if real else np.arange(1 - band, band), period)
    cosine, sine = np.cos(angles), np.sin(angles)
    if real:
        blocks = np.stack([cosine, -sine], axis=1)
    else:
        blocks = np.stack([np.hstack([cosine, sine]), np.hstack([-sine, cosine])], axis=1)
    return blocks.reshape(-1, blocks.shape[-1]) / period


def inverse_matrix(points: int, band: int, period: int, *, real: bool) -> np.ndarray:
    """``[points, (modes, re/im)]`` for real output, ``[(re/im, points), (modes, re/im)]`` else."""
    angles = _angles(points, np.arange(band) if real else np.arange(1 - band, band), period).T
    cosine, sine = np.cos(angles), np.sin(angles)
    if real:
        weights = energy_weights((band,))
        return np.stack([weights * cosine, -weights * sine], axis=-1).reshape(points, -1)
    rows = [np.stack([cosine, -sine], axis=-1), np.stack([sine, cosine], axis=-1)]
    return np.concatenate(rows).reshape(2 * points, -1)


def fft_transform(field: Array, modes: Sequence[int], period: Sequence[int]) -> Array:
    dimensions = len(modes)
    axes = (*range(2, dimensions + 1), 1)  # the last of these is the one that is halved
    lengths = (*period[1:], period[0])
    full = jnp.fft.rfftn(field, s=lengths, axes=axes, norm="forward")
    full = jnp.fft.fftshift(full, axes=axes[:-1])
    middle = (slice(n // 2 - m + 1, n // 2 + m) for n, m in zip(period[1:], modes[1:], strict=True))
    kept = jnp.moveaxis(full[(slice(None), slice(modes[0]), *middle)], 0, -2)
    return jnp.stack([kept.real, kept.imag], axis=dimensions)


def fft_inverse(
    spectrum: Array, grid: Sequence[int], modes: Sequence[int], period: Sequence[int]
) -> Array:
    dimensions = len(grid)
    axes = (*range(2, dimensions + 1), 1)
    parts = jnp.moveaxis(spectrum, (dimensions, -2), (0, 1))
    coefficients = jax.lax.complex(parts[0], parts[1])
    widths = [(0, period[0] // 2 + 1 - modes[0])]
    widths += [(n // 2 - m + 1, n - n // 2 - m) for n, m in zip(period[1:], modes[1:], strict=True)]
    full = jnp.pad(coefficients, [(0, 0), *widths, (0, 0)])
    full = jnp.fft.ifftshift(full, axes=axes[:-1])
    lengths = (*period[1:], period[0])
    field = jnp.fft.irfftn(full, s=lengths, axes=axes, norm="forward")
    return field[(slice(None), *(slice(n) for n in grid))]
