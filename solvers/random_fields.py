"""Gaussian random fields on the unit box by their Karhunen-Loève series.

    f(x) = Σ_ξ s(ξ) z_ξ φ_ξ(x),    z_ξ independent standard normal,

over integer frequencies ξ, with basis functions of unit L2 norm:

    "cosine"    φ_ξ(x) = Π_d c_d cos(π ξ_d x_d),  0 ≤ ξ_d < modes,   x_j = j / (n - 1)   (both ends)
    "fourier"   √2 cos(2π ξ·x) and √2 sin(2π ξ·x),  |ξ_d| < modes,   x_j = j / n         (periodic)

with c_d = 1 for ξ_d = 0 and √2 otherwise. The number of modes belongs to the random function, not
to the grid: one key gives one function, and grids of every resolution sample that same function.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

BASES = ("cosine", "fourier")
# From frequency vectors to the standard deviation s(ξ) of their coefficients.
Spectrum = Callable[[Float[Array, "*modes axis"]], Float[Array, "*modes"]]


def sample(
    key: PRNGKeyArray,
    shape: Sequence[int],
    spectrum: Spectrum,
    *,
    basis: str = "cosine",
    modes: int,
    zero_mean: bool = True,
    dtype: jax.typing.DTypeLike = float,
) -> Float[Array, "*shape"]:
    """One random field, sampled on a grid.

    Args:
      key: random key. The same key, spectrum, basis, modes and dtype give the same function on
        every grid; use `jax.vmap` over keys for several fields.
      shape: grid points on each axis (any number of axes, any sizes).
      spectrum: standard deviation of the coefficients, see `stretched_exponential` and `matern`.
      basis: "cosine" on grids that contain both end points, "fourier" on periodic ones.
      modes: frequencies kept on each axis (static). The cost is one matrix product for each axis.
      zero_mean: leave out the constant function ξ = 0, so that every sample has mean zero.
      dtype: real floating-point type of the field.
    """
    if basis not in BASES:
        raise ValueError(f"basis must be one of {BASES}, got {basis!r}")
    if modes < 1:
        raise ValueError(f"modes must be at least 1, got {modes}")
    smallest = 2 if basis == "cosine" else 1
    if not shape or min(shape) < smallest:
        raise ValueError(f"shape must have axes of at least {smallest} points, got {tuple(shape)}")
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"dtype must be a real floating-point type, got {dtype}")

    axis_modes = jnp.arange(modes) if basis == "cosine" else jnp.arange(1 - modes, modes)
    frequencies = jnp.stack(jnp.meshgrid(*[axis_modes] * len(shape), indexing="ij"), axis=-1)
    deviation = spectrum(frequencies.astype(dtype)).astype(dtype)
    if zero_mean:
        deviation = jnp.where((frequencies == 0).all(-1), jnp.zeros_like(deviation), deviation)

    if basis == "cosine":
        field = deviation * jax.random.normal(key, deviation.shape, dtype)
        matrices = [_cosines(axis_modes, n, dtype) for n in shape]
    else:
        # The real part of Σ (z + i w) exp(2πi ξ·x) over all ξ has the covariance of the series
        # over pairs ±ξ with independent cosine and sine coefficients.
        parts = jax.random.normal(key, (2, *deviation.shape), dtype)
        field = jax.lax.complex(deviation * parts[0], deviation * parts[1])
        matrices = [_waves(axis_modes, n, dtype) for n in shape]
    for matrix in matrices:
        # Contracts the leading axis and appends the grid axis: after all axes, the order is back.
        field = jnp.tensordot(field, matrix, axes=(0, 0))
    return field.real


def stretched_exponential(length: float, power: float) -> Spectrum:
    """s(ξ) = exp(-(length · |ξ|)^power)."""

    def spectrum(frequencies):
        return jnp.exp(-((length * jnp.linalg.norm(frequencies, axis=-1)) ** power))

    return spectrum


def matern(alpha: float, tau: float, *, basis: str = "cosine") -> Spectrum:
    """Covariance τ^(2α - 2) (-Δ + τ²)^(-α), that is s(ξ) = τ^(α - 1) (ω² + τ²)^(-α/2).

    ω = π|ξ| (cosine) or 2π|ξ| (fourier), so that -Δ φ_ξ = ω² φ_ξ.
    """
    if basis not in BASES:
        raise ValueError(f"basis must be one of {BASES}, got {basis!r}")
    unit = jnp.pi if basis == "cosine" else 2 * jnp.pi

    def spectrum(frequencies):
        eigenvalue = unit**2 * jnp.sum(frequencies**2, axis=-1)
        return tau ** (alpha - 1) * (eigenvalue + tau**2) ** (-alpha / 2)

    return spectrum


def _cosines(modes: Array, n: int, dtype: jnp.dtype) -> Float[Array, "modes points"]:
    phase = _half_turns(modes, n - 1, n, dtype)
    weight = jnp.where(modes == 0, 1.0, 2.0**0.5).astype(dtype)
    return weight[:, None] * jnp.cos(jnp.pi * phase)


def _waves(modes: Array, n: int, dtype: jnp.dtype) -> Array:
    phase = jnp.pi * _half_turns(2 * modes, n, n, dtype)
    return jax.lax.complex(jnp.cos(phase), jnp.sin(phase))


def _half_turns(modes: Array, intervals: int, n: int, dtype: jnp.dtype) -> Array:
    """ξ j / intervals modulo 2: reduced in integers, so that high modes lose no digits."""
    turns = (modes[:, None] * jnp.arange(n)[None, :]) % (2 * intervals)
    return turns.astype(dtype) / intervals
