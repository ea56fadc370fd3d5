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

from sino_jax import checks
from sino_jax.types import Batch

BLENDS = ("linear", "smooth")


class Patches(NamedTuple):
    """Equal overlapping patches of a grid; see `cover`. Hashable, hence static under `jit`.

    Attributes:
      shape: points of the grid on each axis.
      size: points of a patch on each axis.
      starts: first indices of the patches, for each axis.
      ramps: points over which weights rise from zero to one, for each axis.
      blend: how they rise, "linear" or "smooth".
    """

    shape: tuple[int, ...]
    size: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    ramps: tuple[int, ...]
    blend: str

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of patches on each axis."""
        return tuple(len(starts) for starts in self.starts)


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
    checks.one_of("blend", blend, BLENDS)
    ramp = None if ramp is None else checks.integer("ramp", ramp)
    one = checks.is_single(overlap)
    overlaps = (overlap,) * len(shape) if one else tuple(overlap)
    overlaps = tuple(checks.integer("overlap", points, least=0) for points in overlaps)
    if not len(shape) == len(patches) == len(overlaps):
        raise ValueError(
            "patches and overlap must have one entry for each axis of the grid "
            f"{tuple(shape)}, got {tuple(patches)} and {overlaps}"
        )
    placed = [_place(*of_axis) for of_axis in zip(shape, patches, overlaps, strict=True)]
    size, starts = zip(*placed, strict=True)
    ramps = tuple(ramp or max(least - 1, 1) for least in overlaps)
    return Patches(tuple(shape), size, starts, ramps, blend)


def counts(shape: Sequence[int], largest: Sequence[int], overlap: Sequence[int]) -> tuple[int, ...]:
    """The fewest patches on each axis that `cover` makes no larger than `largest` points.

    Args:
      shape: points of the grid on each axis.
      largest: points that a patch may have on each axis.
      overlap: points shared by neighbours at least, on each axis.
    """
    result = []
    for points, size, shared in zip(shape, largest, overlap, strict=True):
        if size < points and not 2 <= shared < size:
            raise ValueError(
                f"overlap must be at least 2 points and less than a patch of {size}, got {shared}"
            )
        result.append(1 if size >= points else math.ceil((points - shared) / (size - shared)))
    return tuple(result)


def weights(layout: Patches, axis: int) -> np.ndarray:
    """``[patches, size]``: weights of the patches on one axis, which sum to one at each point."""
    points, size, starts = layout.shape[axis], layout.size[axis], layout.starts[axis]
    inside = np.arange(size)
    total, rises = np.zeros(points), []
    for first in starts:
        # Distance to the patch's edges inside the domain; the domain's own edge is no edge.
        low = inside if first > 0 else np.full(size, points)
        high = inside[::-1] if first + size < points else np.full(size, points)
        rise = np.clip(np.minimum(low, high) / layout.ramps[axis], 0, 1)
        rises.append(rise if layout.blend == "linear" else rise**2 * (3 - 2 * rise))
        total[first : first + size] += rises[-1]
    normalised = zip(starts, rises, strict=True)
    return np.stack([rise / total[first : first + size] for first, rise in normalised])


def inner_edges(patches: Patches) -> np.ndarray:
    """Which grid points are on the edge of a patch inside the domain: all that patches exchange."""
    found = np.zeros(patches.shape, bool)
    for axis, (starts, size) in enumerate(zip(patches.starts, patches.size, strict=True)):
        low = np.array(starts)
        high, last = low + size - 1, patches.shape[axis] - 1
        index = np.concatenate([low[low > 0], high[high < last]])
        np.moveaxis(found, axis, 0)[index] = True
    return found


def merge(solutions: Inexact[Array, "batch *patches_and_size _"], layout: Patches) -> Batch:
    """Σ_i χ_i u_i: the field ``[batch, *shape, channel]`` blended from patch solutions.

    Args:
      solutions: ``[batch, *counts, *size, channel]``.
      layout: as made by `cover`.
    """
    field = solutions
    for axis, (points, size, starts) in enumerate(
        zip(layout.shape, layout.size, layout.starts, strict=True)
    ):
        # [batch, *axes merged so far, *counts of the others, *size of the others, channel]
        count_axis, size_axis = axis + 1, len(layout.shape) + 1
        field = jnp.moveaxis(field, (count_axis, size_axis), (0, 1))
        weight = jnp.asarray(weights(layout, axis), field.dtype)
        weighted = field * weight.reshape(*weight.shape, *(1,) * (field.ndim - 2))
        index = np.add.outer(starts, np.arange(size))
        merged = jnp.zeros((points, *field.shape[2:]), field.dtype).at[index].add(weighted)
        field = jnp.moveaxis(merged, 0, count_axis)
    return field


def _place(points: int, patches: int, overlap: int) -> tuple[int, tuple[int, ...]]:
    """Size and first indices of the patches on one axis."""
    if patches < 1:
        raise ValueError(f"patches must be at least 1 on each axis, got {patches}")
    if patches == 1:
        return points, (0,)
    if overlap < 2:
        raise ValueError(f"overlap must be at least 2 points, got {overlap}")
    size = math.ceil((points + (patches - 1) * overlap) / patches)
    if size >= points or overlap >= size:
        raise ValueError(
            f"overlap {overlap} is too large for {patches} patches on {points} points: "
            f"a patch would have {size} points"
        )
    starts = np.round(np.linspace(0, points - size, patches)).astype(int)
    return size, tuple(starts.tolist())
