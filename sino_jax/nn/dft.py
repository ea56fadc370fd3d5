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

from sino_jax.nn import backend
from sino_jax.nn.bands import band_shape, energy_weights

# Estimate for two AVX2 cores: one FFT flop (5 N log2 N of them), transposes included, takes as long
# as this many flops of a matrix product. `python -m benchmarks train_step` measures it.
_FFT_FLOP_COST = 30.0


def matrix_flops(grid: Sequence[int], modes: Sequence[int]) -> float:
    """Floating-point operations, per channel and example, of `transform` by matrix products."""
    flops, rows = 0.0, 1
    for axis, points in enumerate(grid):
        outputs = 2 * band_shape(modes)[axis]
        flops += 2 * rows * points * outputs * math.prod(grid[axis + 1 :])
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
    # Elsewhere not measured: the count of operations decides.
    cost = _FFT_FLOP_COST if backend.forms_for_cpu() else 1.0
    cheaper = matrix_flops(grid, modes) <= cost * fft_flops(period)
    return "matrix" if cheaper else "fft"


def _angles(points: int, frequencies: np.ndarray, period: int) -> np.ndarray:
    # The integer remainder keeps the angles of high frequencies exact.
    return 2 * np.pi * (np.outer(frequencies, np.arange(points)) % period) / period


def forward_matrix(points: int, band: int, period: int) -> np.ndarray:
    """Coefficients ξ = 0, …, band - 1 of a real axis, ``[(modes, re/im), points]``."""
    angles = _angles(points, np.arange(band), period)
    return np.stack([np.cos(angles), -np.sin(angles)], axis=1).reshape(-1, points) / period


def inverse_matrix(points: int, band: int, period: int) -> np.ndarray:
    """The real axis from its coefficients, ``[points, (modes, re/im)]``."""
    angles, weights = _angles(points, np.arange(band), period).T, energy_weights((band,))
    parts = [weights * np.cos(angles), -weights * np.sin(angles)]
    return np.stack(parts, axis=-1).reshape(points, -1)


def inverse_waves(points: int, band: int, period: int) -> np.ndarray:
    """cos(ξx) for ξ = 0, …, band - 1, then sin(ξx) for ξ = 1, …, band - 1: ``[points, waves]``."""
    angles = _angles(points, np.arange(band), period).T
    return np.hstack([np.cos(angles), np.sin(angles[:, 1:])])


def forward_waves(points: int, band: int, period: int) -> np.ndarray:
    """The same waves, to integrate a complex axis against: ``[waves, points]``."""
    return inverse_waves(points, band, period).T / period


def fft_transform(field: Array, modes: Sequence[int], period: Sequence[int]) -> Array:
    axes = (*range(1, len(modes)), 0)  # the last of these is the one that is halved
    lengths = (*period[1:], period[0])
    full = jnp.fft.rfftn(field, s=lengths, axes=axes, norm="forward")
    full = jnp.fft.fftshift(full, axes=axes[:-1])
    middle = (slice(n // 2 - m + 1, n // 2 + m) for n, m in zip(period[1:], modes[1:], strict=True))
    kept = full[(slice(modes[0]), *middle)]
    return jnp.stack([kept.real, kept.imag], axis=len(modes))


def fft_inverse(
    spectrum: Array, grid: Sequence[int], modes: Sequence[int], period: Sequence[int]
) -> Array:
    dimensions = len(grid)
    axes = (*range(1, dimensions), 0)
    parts = jnp.moveaxis(spectrum, dimensions, 0)
    coefficients = jax.lax.complex(parts[0], parts[1])
    widths = [(0, period[0] // 2 + 1 - modes[0])]
    widths += [(n // 2 - m + 1, n - n // 2 - m) for n, m in zip(period[1:], modes[1:], strict=True)]
    full = jnp.pad(coefficients, [*widths, (0, 0), (0, 0)])
    full = jnp.fft.ifftshift(full, axes=axes[:-1])
    lengths = (*period[1:], period[0])
    field = jnp.fft.irfftn(full, s=lengths, axes=axes, norm="forward")
    return field[tuple(slice(n) for n in grid)]
