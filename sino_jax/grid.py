"""Grids, boxes and crops: where a sub-domain lies and how large it is.

An axis is *node-centred* when its grid contains both end points of the domain (elliptic problems,
space-time windows), and *cell-centred* when it does not (periodic boxes and windows cut from them):

    node-centred   x_i = i L / (n - 1),   a crop of m points has side ratio (m - 1) / (n - 1)
    cell-centred   x_i = i L / n,         a crop of m points has side ratio m / n

A crop keeps the grid spacing: it has fewer points, never interpolated ones. Sizes are static (they
are compiled shapes), positions are dynamic, so that crops work under `jit` and `vmap`.
"""

import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Inexact, Int, Shaped

from sino_jax.types import Key

Centring = Literal["node", "cell"]
CENTRINGS = ("node", "cell")


def side_ratio(size: int, points: int, centring: Centring) -> float:
    """Length of a crop of `size` points relative to the side of `points` points it is cut from.

    This is the one place that decides how point counts become lengths.
    """
    smallest = 2 if centring == "node" else 1
    if centring not in CENTRINGS:
        raise ValueError(f"centring must be one of {CENTRINGS}, got {centring!r}")
    if not smallest <= size <= points:
        raise ValueError(
            f"size must be between {smallest} and the axis's {points} points "
            f"for a {centring}-centred axis, got {size}"
        )
    return (size - 1) / (points - 1) if centring == "node" else size / points


def ratio(size: Sequence[int], shape: Sequence[int], centrings: Sequence[Centring]) -> float:
    """λ of a crop: the geometric mean of its side ratios, the one scale factor of the sub-domain.

    Args:
      size: points of the crop on each axis.
      shape: points of the grid on each axis.
      centrings: "node" or "cell" for each axis.

    Example:
      >>> ratio((65, 65), (129, 129), ("node", "node"))
      0.5
    """
    sides = side_ratios(size, shape, centrings)
    # Equal sides give exactly that ratio, with no round-off from the root.
    return sides[0] if len(set(sides)) == 1 else math.prod(sides) ** (1 / len(sides))


def side_ratios(
    size: Sequence[int], shape: Sequence[int], centrings: Sequence[Centring]
) -> tuple[float, ...]:
    """Side ratios of a crop, axis by axis; see `ratio`."""
    if not len(size) == len(shape) == len(centrings):
        raise ValueError(
            "size, shape and centrings must have one entry for each axis, "
            f"got {tuple(size)}, {tuple(shape)} and {tuple(centrings)}"
        )
    return tuple(map(side_ratio, size, shape, centrings))


def rescaled_extent(
    extent: Sequence[float],
    size: Sequence[int],
    shape: Sequence[int],
    centrings: Sequence[Centring],
) -> tuple[float, ...]:
    """Extent of a crop once rescaled by λ: the domain's own extent when the sides are tied."""
    factor = ratio(size, shape, centrings)
    sides = side_ratios(size, shape, centrings)
    return tuple(length * side / factor for length, side in zip(extent, sides, strict=True))


def matching_size(
    size: int, shape: Sequence[int], centrings: Sequence[Centring]
) -> tuple[int, ...]:
    """Crop sizes on all axes whose side ratios equal, as nearly as points allow, the first axis's.

    Example:
      >>> matching_size(32, (64, 100), ("cell", "cell"))
      (32, 50)
    """
    target = side_ratio(size, shape[0], centrings[0])
    others = [
        max(2, round(target * (points - 1)) + 1) if centring == "node"
        else max(1, round(target * points))
        for points, centring in zip(shape[1:], centrings[1:], strict=True)
    ]  # fmt: skip
    return (size, *others)


def spacing(
    extent: Sequence[float], shape: Sequence[int], centrings: Sequence[Centring]
) -> tuple[float, ...]:
    """Distance between neighbouring points on each axis."""
    if not len(extent) == len(shape) == len(centrings):
        raise ValueError(
            "extent, shape and centrings must have one entry for each axis, "
            f"got {tuple(extent)}, {tuple(shape)} and {tuple(centrings)}"
        )
    return tuple(
        length * side_ratio(smallest, points, centring)
        for length, points, centring, smallest in zip(
            extent, shape, centrings, [2 if c == "node" else 1 for c in centrings], strict=True
        )
    )


def coordinates(
    shape: Sequence[int], *, centrings: Sequence[Centring], extent: Sequence[float] | None = None
) -> Inexact[Array, "*grid axis"]:
    """Coordinates of every grid point, `ij` indexing: ``coordinates(...)[i, j] == (x_i, y_j)``."""
    extent = (1.0,) * len(shape) if extent is None else extent
    steps = spacing(extent, shape, centrings)
    axes = [step * jnp.arange(n, dtype=float) for step, n in zip(steps, shape, strict=True)]
    return jnp.stack(jnp.meshgrid(*axes, indexing="ij"), axis=-1)


def crop(
    field: Shaped[Array, "..."], start: Int[Array, "axis"], size: Sequence[int]
) -> Shaped[Array, "..."]:
    """The part of one sample ``[*grid, ...]`` that starts at index `start` and has `size` points.

    Args:
      field: one sample; axes after the grid axes are kept whole.
      start: first index on each grid axis; may be traced. It must leave room for `size` points:
        a traced start cannot be checked, and is then clamped into the grid as by
        `jax.lax.dynamic_slice`.
      size: points on each grid axis, static.
    """
    check_box(size, field.shape[: len(size)])
    trailing = field.shape[len(size) :]
    zeros = jnp.zeros(len(trailing), start.dtype)
    return jax.lax.dynamic_slice(field, jnp.concatenate([start, zeros]), (*size, *trailing))


def random_starts(
    key: Key, count: int, size: Sequence[int], shape: Sequence[int]
) -> Int[Array, "count axis"]:
    """First indices of `count` crops of `size` points, uniformly at random inside `shape`."""
    check_box(size, shape)
    room = jnp.array([[n - m + 1 for m, n in zip(size, shape, strict=True)]])
    return jax.random.randint(key, (count, len(size)), 0, room)


def check_box(size: Sequence[int], shape: Sequence[int]) -> None:
    """Raises a ValueError unless a box of `size` points fits into a grid of `shape` points."""
    if len(size) != len(shape):
        raise ValueError(f"size must have one entry for each of {len(shape)} axes, got {size}")
    if any(not 1 <= m <= n for m, n in zip(size, shape, strict=True)):
        raise ValueError(
            f"size must fit into the grid: got a box of {tuple(size)} points "
            f"in a grid of {tuple(shape)} points"
        )


def derivative(
    field: Inexact[Array, "*shape"], axis: int, step: float | Array
) -> Inexact[Array, "*shape"]:
    """First derivative along a grid axis, second order everywhere: one-sided at both ends."""
    f = _moved(field, axis, minimum=3)
    inside = f[2:] - f[:-2]
    first = -3 * f[:1] + 4 * f[1:2] - f[2:3]
    last = 3 * f[-1:] - 4 * f[-2:-1] + f[-3:-2]
    return jnp.moveaxis(jnp.concatenate([first, inside, last]) / (2 * step), 0, axis)


def second_derivative(
    field: Inexact[Array, "*shape"], axis: int, step: float | Array
) -> Inexact[Array, "*shape"]:
    """Second derivative along a grid axis, second order everywhere: one-sided at both ends."""
    f = _moved(field, axis, minimum=4)
    inside = f[2:] - 2 * f[1:-1] + f[:-2]
    first = 2 * f[:1] - 5 * f[1:2] + 4 * f[2:3] - f[3:4]
    last = 2 * f[-1:] - 5 * f[-2:-1] + 4 * f[-3:-2] - f[-4:-3]
    return jnp.moveaxis(jnp.concatenate([first, inside, last]) / step**2, 0, axis)


def _moved(field: Array, axis: int, minimum: int) -> Array:
    if field.shape[axis] < minimum:
        raise ValueError(
            f"field needs at least {minimum} points on axis {axis} for this stencil, "
            f"got shape {field.shape}"
        )
    return jnp.moveaxis(field, axis, 0)
