"""Bands of frequencies: which Fourier modes a spectrum holds, and in which order.

A band of ``m`` modes holds the frequencies ``|ξ| < m``. On the first axis, the half spectrum of a
real field, these are ``0, …, m-1``; on every other axis ``-(m-1), …, m-1`` in this order. The band
is symmetric, and never reaches the Nyquist frequency of an even number of points, whose sign is
ambiguous; so a smaller band is always the middle of a larger one.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


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


def modes_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Inverse of `band_shape`."""
    return (shape[0], *((n + 1) // 2 for n in shape[1:]))


def frequencies(modes: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Integer frequencies along each axis of the spectrum."""
    return (np.arange(modes[0]), *(np.arange(1 - m, m) for m in modes[1:]))


def energy_weights(modes: Sequence[int]) -> np.ndarray:
    """Parseval weights ``[*modes]``: ``Σ_ξ w_ξ |f_hat(ξ)|²`` is the mean square of the field.

    A coefficient with ξ_0 > 0 stands for itself and for its conjugate at -ξ.
    """
    first = np.where(np.arange(modes[0]) == 0, 1.0, 2.0)
    shape = band_shape(modes)
    return np.broadcast_to(first.reshape(-1, *(1,) * (len(shape) - 1)), shape)


def truncate(array: Float[Array, "..."], modes: Sequence[int]) -> Float[Array, "..."]:
    """The coefficients (or weights) of a smaller band: the same frequencies of each axis.

    The first axes of the array are the modes, any others are kept.
    """
    held = modes_of(array.shape[: len(modes)])
    if any(m > n for m, n in zip(modes, held, strict=True)):
        raise ValueError(f"modes must lie within the band {held} of the array, got {tuple(modes)}")
    first = slice(0, modes[0])
    others = (slice(n - m, n + m - 1) for n, m in zip(held[1:], modes[1:], strict=True))
    return array[(first, *others)]


def embed(
    spectrum: Float[Array, "*modes 2 batch channel"], modes: Sequence[int]
) -> Float[Array, "*band 2 batch channel"]:
    """The coefficients of a larger band, zero where the spectrum has none."""
    held = modes_of(spectrum.shape[: len(modes)])
    if any(map(int.__lt__, modes, held)):
        raise ValueError(f"modes must contain the band {held} of spectrum, got {tuple(modes)}")
    widths = [(0, modes[0] - held[0])]
    widths += [(m - n, m - n) for n, m in zip(held[1:], modes[1:], strict=True)]
    return jnp.pad(spectrum, [*widths, (0, 0), (0, 0), (0, 0)])
