"""A convolutional U-Net (Ronneberger et al. 2015), the baseline that is not resolution-free.

It works on grids of its own size, to which inputs are interpolated and from which outputs are
interpolated back. Level l has size / 2^l points and 2^l times the channels of the first.
"""

import math

import flax.linen as nn
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
      size: points a side that the network works on, a multiple of ``2**(n_levels - 1)``.
      periodic: wrap convolutions around the domain instead of padding with zeros.
    """

    hidden_channels: int
    n_levels: int = 5
    size: int = 64
    periodic: bool = False

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        check_size(self.size, self.n_levels)
        grid = features.shape[1:-1]
        own_grid = (self.size,) * len(grid)
        resize = dict(kind="linear", centring=self.centring)
        field = interpolation.resize(features, own_grid, **resize)
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
        return interpolation.resize(outputs, grid, **resize)

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
