"""Interpolation of fields between grids of the same domain, one matrix product per axis.

Three kinds of interpolant through the points of an axis:

    "linear"    piecewise linear
    "cosine"    a cosine series: the even reflection of a non-periodic field, which has no jump
    "fourier"   a Fourier series: for periodic fields

The series keep the frequencies that both grids resolve, so they are ideal low-pass filters: they
interpolate without, and coarsen without aliasing.
"""

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sino_jax.grid import Centring
from sino_jax.nn import bands
from sino_jax.types import RealBatch

Series = Literal["linear", "cosine", "fourier"]
KINDS = ("linear", "cosine", "fourier")


def resize(
    field: RealBatch, grid: Sequence[int], *, kind: Series, centring: Centring
) -> Float[Array, "batch *resized channel"]:
    """The batch ``[batch, *grid, channel]`` at the points of another grid of the same domain."""
    if len(grid) != field.ndim - 2:
        raise ValueError(f"grid must have {field.ndim - 2} axes, got {tuple(grid)}")
    for axis, points in enumerate(grid, start=1):
        if points == field.shape[axis] and kind != "fourier":
            continue
        matrix = resizing_matrix(field.shape[axis], points, kind=kind, centring=centring)
        matrix = jnp.asarray(matrix, field.dtype)
        before, after = field.shape[:axis], field.shape[axis + 1 :]
        blocks = field.reshape(np.prod(before), field.shape[axis], -1)
        field = jnp.einsum("pq,bqr->bpr", matrix, blocks).reshape(*before, points, *after)
    return field


def resizing_matrix(
    points: int, new_points: int, *, kind: Series, centring: Centring
) -> np.ndarray:
    """``[new_points, points]``: values at the new points from values at the old ones."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
    if kind == "fourier":
        return _fourier_matrix(points, new_points)
    # A cell-centred window is sampled at the centres of its cells.
    old, new = _positions(points, centring), _positions(new_points, centring)
    if kind == "linear":
        return _linear_matrix(old, new)
    return _cosine_matrix(old, new)


def _positions(points: int, centring: Centring) -> np.ndarray:
    if centring == "node":
        return np.arange(points) / (points - 1)
    return (np.arange(points) + 0.5) / points


def _linear_matrix(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.stack([np.interp(new, old, column) for column in np.eye(len(old))], axis=1)


def _cosine_matrix(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    frequencies = np.arange(len(old))
    coefficients = np.linalg.inv(np.cos(np.pi * np.outer(old, frequencies)))
    kept = min(len(old), len(new))
    return np.cos(np.pi * np.outer(new, frequencies[:kept])) @ coefficients[:kept]


def _fourier_matrix(points: int, new_points: int) -> np.ndarray:
    band = min(bands.largest_band(points), bands.largest_band(new_points))
    shifts = np.arange(new_points)[:, None] / new_points - np.arange(points)[None] / points
    frequencies = np.arange(band)
    waves = np.cos(2 * np.pi * frequencies[:, None, None] * shifts[None])
    return np.tensordot(bands.energy_weights((band,)), waves, axes=1) / points
