"""A convolutional U-Net (Ronneberger et al. 2015), the baseline that is not resolution-free.

It works on grids of its own size, to which inputs are interpolated and from which outputs are
interpolated back; or, with size 0, at the spacing of its input, as a network made of convolutions
can: then a crop is seen as it lies in the whole, and not magnified. Level l has size / 2^l points
and 2^l times the channels of the first.
"""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax.models.frame import Model, Outputs
from sino_jax.nn import interpolation
from sino_jax.nn.activation import gelu
from sino_jax.types import RealBatch, Scale


class ConvolutionBlock(nn.Module):
    """Twice: convolution with three points a side, group normalisation, GeLU."""

    features: int
    periodic: bool

    @nn.compact
    def __call__(self, field: RealBatch) -> Outputs:
        window = (3,) * (field.ndim - 2)
        padding = "CIRCULAR" if self.periodic else "SAME"
        for part in ("first", "second"):
            convolution = nn.Conv(self.features, window, padding=padding, name=part)
            normalise = nn.GroupNorm(num_groups=math.gcd(8, self.features))
            field = gelu(normalise(convolution(field)))
        return field


class UNet(Model, kw_only=True):
    """U-Net.

    Attributes:
      hidden_channels: width of the first level.
      n_levels: number of levels; the deepest has ``2**(n_levels - 1) * hidden_channels`` channels.
      size: points a side that the network works on, a multiple of ``2**(n_levels - 1)``; 0 for the
        input's own cells, up to the nearest such multiple.
      periodic: wrap convolutions around the domain instead of padding with zeros.
    """

    hidden_channels: int
    n_levels: int = 5
    size: int = 64
    periodic: bool = False

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        grid = features.shape[1:-1]
        field = self._enter(features)
        passed = []
        for level in range(self.n_levels):
            if level > 0:
                field = halve(field)
            field = self.down_block(field, level)
            passed.append(field)
        for level in reversed(range(self.n_levels - 1)):
            field = jnp.concatenate([double(field), passed[level]], axis=-1)
            width = 2**level * self.hidden_channels
            field = ConvolutionBlock(width, self.periodic, name=f"up_{level}")(field)
        outputs = nn.Dense(self.out_channels, name="projection")(field)
        return self._leave(outputs, grid)

    def _enter(self, features: RealBatch) -> Array:
        """The input on the grid that the network works on."""
        grid = features.shape[1:-1]
        if self.size:
            check_size(self.size, self.n_levels)
            own = (self.size,) * len(grid)
            return interpolation.resize(features, own, kind="linear", centring=self.centring)
        field = nodes_to_cells(features) if self.centring == "node" else features
        own = tuple(nearest_multiple(n, self.n_levels) for n in field.shape[1:-1])
        return interpolation.resize(field, own, kind="linear", centring="cell")

    def _leave(self, outputs: RealBatch, grid: tuple[int, ...]) -> Array:
        """Inverse of `_enter` up to smoothing."""
        if self.size:
            return interpolation.resize(outputs, grid, kind="linear", centring=self.centring)
        if self.centring == "cell":
            return interpolation.resize(outputs, grid, kind="linear", centring="cell")
        cells = tuple(n - 1 for n in grid)
        return cells_to_nodes(interpolation.resize(outputs, cells, kind="linear", centring="cell"))

    def down_block(self, field: RealBatch, level: int) -> Outputs:
        """The layers of a level on the way down."""
        width = 2**level * self.hidden_channels
        return ConvolutionBlock(width, self.periodic, name=f"down_{level}")(field)


def check_size(size: int, n_levels: int) -> None:
    if size < 2**n_levels or size % 2 ** (n_levels - 1):
        raise ValueError(
            f"size must be a multiple of 2**(n_levels - 1) = {2 ** (n_levels - 1)} and at least "
            f"twice that, got {size}"
        )


def nearest_multiple(points: int, n_levels: int) -> int:
    """The multiple of ``2**(n_levels - 1)`` nearest to a number, and at least twice that."""
    unit = 2 ** (n_levels - 1)
    return max(2 * unit, unit * round(points / unit))


def nodes_to_cells(field: RealBatch) -> Float[Array, "batch *cells channel"]:
    """Means of neighbours along each axis: one point less, at the same spacing."""
    for axis in range(1, field.ndim - 1):
        field = means_of_neighbours(field, axis)
    return field


def means_of_neighbours(field: RealBatch, axis: int) -> Float[Array, "batch *means channel"]:
    last = field.shape[axis] - 1
    low, high = (jax.lax.slice_in_dim(field, i, last + i, axis=axis) for i in (0, 1))
    return (low + high) / 2


def cells_to_nodes(field: RealBatch) -> Float[Array, "batch *nodes channel"]:
    """Means of neighbours along each axis, continued linearly at the ends: one point more."""
    for axis in range(1, field.ndim - 1):
        first, second = (jax.lax.slice_in_dim(field, i, i + 1, axis=axis) for i in (0, 1))
        n = field.shape[axis]
        last, before = (jax.lax.slice_in_dim(field, n - i, n - i + 1, axis=axis) for i in (1, 2))
        ends = (2 * first - second, 2 * last - before)
        field = means_of_neighbours(jnp.concatenate([ends[0], field, ends[1]], axis=axis), axis)
    return field


def halve(field: RealBatch) -> Float[Array, "batch *coarse channel"]:
    """Means over cells of two points a side."""
    for axis in range(1, field.ndim - 1):
        shape = (*field.shape[:axis], field.shape[axis] // 2, 2, *field.shape[axis + 1 :])
        field = jnp.mean(field.reshape(shape), axis=axis + 1)
    return field


def double(field: RealBatch) -> Float[Array, "batch *fine channel"]:
    """Every point twice along each axis."""
    for axis in range(1, field.ndim - 1):
        field = jnp.repeat(field, 2, axis=axis)
    return field
