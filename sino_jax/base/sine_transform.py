"""Discrete sine transform of the first kind (DST-I), the basis of grid functions that vanish at
both ends of a node-centred axis.

For the m inner points of an axis of m + 2 nodes the transform is the matrix

    S_ij = sqrt(2 / (m + 1)) sin(π (i + 1) (j + 1) / (m + 1)),      i, j = 0 ... m - 1,

symmetric and its own inverse. It diagonalises every symmetric three-point stencil.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

# How many operations of a matrix product take as long as one of a Fourier transform. Measured on
# two CPU cores, where the paths cross between 127 and 255 inner points if the length is a power of
# two and above 510 if it has a large prime factor.
FOURIER_OPERATION_COST = 6


def sine_transform(
    values: Float[Array, "*shape"], axis: int, *, method: str = "auto"
) -> Float[Array, "*shape"]:
    """Orthonormal DST-I along an axis; applied twice it gives its input back.

    Args:
      values: real values at inner points.
      axis: the axis to transform.
      method: "matrix", "fft" or "auto", the cheaper of the two by `matrix_is_cheaper`.
    """
    if method not in ("auto", "matrix", "fft"):
        raise ValueError(f'method must be "auto", "matrix" or "fft", got {method!r}')
    points = values.shape[axis]
    if method == "auto":
        method = "matrix" if matrix_is_cheaper(points) else "fft"
    along_last = jnp.moveaxis(values, axis, -1)
    transform = _by_matrix if method == "matrix" else _by_fft
    return jnp.moveaxis(transform(along_last), -1, axis)


def sine_transforms(values: Inexact[Array, "x y _"]) -> Inexact[Array, "x y _"]:
    """The transform along both axes of a field; of the real and imaginary part of a complex one."""
    if jnp.iscomplexobj(values):
        return jax.lax.complex(sine_transforms(values.real), sine_transforms(values.imag))
    return sine_transform(sine_transform(values, 0), 1)


def angles(points: int) -> np.ndarray:
    """θ_j = π (j + 1) / (points + 1): the j-th sine has the values sin((i + 1) θ_j)."""
    return np.pi * np.arange(1, points + 1) / (points + 1)


def matrix_is_cheaper(points: int) -> bool:
    """The one place that decides between the two paths: m² against N Σ(prime factors of N).

    The Fourier path transforms the odd extension, N = 2 (m + 1) points; its cost for a prime
    factor p is N p operations.
    """
    length = 2 * (points + 1)
    return points**2 < FOURIER_OPERATION_COST * length * _sum_of_prime_factors(length)


def _by_matrix(values: Array) -> Array:
    points = values.shape[-1]
    sines = np.sin(np.outer(np.arange(1, points + 1), angles(points)))
    matrix = jnp.asarray(np.sqrt(2 / (points + 1)) * sines, values.dtype)
    return jnp.matmul(values, matrix, precision=jax.lax.Precision.HIGHEST)


def _by_fft(values: Array) -> Array:
    points = values.shape[-1]
    zero = jnp.zeros_like(values[..., :1])
    odd_extension = jnp.concatenate([zero, values, zero, -values[..., ::-1]], axis=-1)
    spectrum = jnp.fft.rfft(odd_extension, axis=-1)
    return -spectrum.imag[..., 1:-1] / np.sqrt(2 * (points + 1)).astype(values.dtype)


def _sum_of_prime_factors(number: int) -> int:
    total, factor = 0, 2
    while factor * factor <= number:
        while number % factor == 0:
            total, number = total + factor, number // factor
        factor += 1
    return total + (number if number > 1 else 0)
