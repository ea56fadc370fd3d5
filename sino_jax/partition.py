"""Overlapping patches that cover a grid, and the partition of unity that blends them.

All patches have one shape, so that a model solves them in one batched call. The weight of a patch
rises from zero on its edges inside the domain to one (paper, Algorithm 3: "distance-based blending
weight"); weights are products over the axes, and sum to one at every grid point.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from sino_jax.types import Batch

BLENDS = ("linear", "smooth")


class Patches(NamedTuple):
    """Where equal overlapping patches lie and how they are blended; see `cover`.

    Attributes:
      size: points of a patch on each axis.
      starts: first indices of the patches, for each axis.
      weights: for each axis ``[patches, size]``: a partition of unity on the axis.
    """

    size: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    weights: tuple[np.ndarray, ...]


def cover(
    shape: Sequence[int],
    patches: Sequence[int],
    overlap: int | Sequence[int],
    *,
    blend: str = "linear",
    ramp: int | None = None,
) -> Patches:
    """Covers a grid by equal patches, the smallest that overlap by at least `overlap` points.

    Positions are spread evenly, so that overlaps differ by rounding only.

    Args:
      shape: points of the grid on each axis.
      patches: number of patches on each axis.
      overlap: points shared by neighbours at least: one number, or one for each axis.

    Keyword args:
      blend: "linear" or "smooth" (cubic) rise of the weights.
      ramp: points over which a weight rises from zero to one; by default the whole overlap.
    """
    if blend not in BLENDS:
        raise ValueError(f"blend must be one of {BLENDS}, got {blend!r}")
    if ramp is not None and ramp < 1:
        raise ValueError(f"ramp must be at least 1 point, got {ramp}")
    overlaps = (overlap,) * len(shape) if isinstance(overlap, int) else tuple(overlap)
    if not len(shape) == len(patches) == len(overlaps):
        raise ValueError(
            "patches and overlap must have one entry for each axis of the grid "
            f"{tuple(shape)}, got {tuple(patches)} and {overlaps}"
        )
    axes = [
        _cover_axis(*of_axis, blend=blend, ramp=ramp)
        for of_axis in zip(shape, patches, overlaps, strict=True)
    ]
    size, starts, weights = zip(*axes, strict=True)
    return Patches(size, starts, weights)


def merge(
    solutions: Inexact[Array, "batch *patches_and_size _"], layout: Patches, shape: Sequence[int]
) -> Batch:
    """Σ_i χ_i u_i: the blended field ``[batch, *shape, channel]`` of patch solutions.

    Args:
      solutions: ``[batch, *patches, *size, channel]``.
      layout: as made by `cover`.
      shape: points of the grid.
    """
    field = solutions
    for axis, (starts, weights) in enumerate(zip(layout.starts, layout.weights, strict=True)):
        # [batch, *axes merged so far, *patches on the others, *size on the others, channel]
        count_axis, size_axis = axis + 1, len(shape) + 1
        field = jnp.moveaxis(field, (count_axis, size_axis), (0, 1))
        weight = jnp.asarray(weights, field.dtype)
        weighted = field * weight.reshape(*weight.shape, *(1,) * (field.ndim - 2))
        index = np.add.outer(starts, np.arange(layout.size[axis]))
        merged = jnp.zeros((shape[axis], *field.shape[2:]), field.dtype).at[index].add(weighted)
        field = jnp.moveaxis(merged, 0, count_axis)
    return field


def _cover_axis(
    points: int, patches: int, overlap: int, *, blend: str, ramp: int | None
) -> tuple[int, tuple[int, ...], np.ndarray]:
    if patches < 1:
        raise ValueError(f"patches must be at least 1 on each axis, got {patches}")
    if patches == 1:
        return points, (0,), np.ones((1, points))
    if overlap < 2:
        raise ValueError(f"overlap must be at least 2 points, got {overlap}")
    size = math.ceil((points + (patches - 1) * overlap) / patches)
    if size >= points or overlap >= size:
        raise ValueError(
            f"overlap {overlap} is too large for {patches} patches on {points} points: "
            f"a patch would have {size} points"
        )
    starts = np.round(np.linspace(0, points - size, patches)).astype(int)
    inside = np.arange(size)
    total, rising = np.zeros(points), []
    for first in starts:
        # Distance to the patch's edges inside the domain; the domain's own edge is no edge.
        low = inside if first > 0 else np.full(size, points)
        high = inside[::-1] if first + size < points else np.full(size, points)
        rise = np.clip(np.minimum(low, high) / (ramp or overlap - 1), 0, 1)
        rising.append(rise if blend == "linear" else rise**2 * (3 - 2 * rise))
        total[first : first + size] += rising[-1]
    weights = [
        rise / total[first : first + size] for first, rise in zip(starts, rising, strict=True)
    ]
    return size, tuple(starts.tolist()), np.stack(weights)
