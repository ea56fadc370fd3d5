"""The convolutional neural operator (Raonić et al. 2023, https://arxiv.org/abs/2302.01178).

A U-Net between band-limited functions: an activation is applied on a grid twice as fine, and the
result is low-pass filtered before it is sampled again, so that no frequency is aliased. All changes
of grid, from and to the input's included, are series interpolations (`interpolation`): Fourier
series for periodic fields, cosine series otherwise.
"""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array

from sino_jax.models.frame import Model, Outputs
from sino_jax.models.unet import check_size
from sino_jax.nn import interpolation
from sino_jax.nn.activation import gelu
from sino_jax.types import RealBatch, Scale


class CNO(Model, kw_only=True):
    """Convolutional neural operator.

    Attributes:
      hidden_channels: width of the first level, doubled from level to level.
      n_levels: number of levels.
      n_layers: residual blocks on each level.
      size: points a side of the first level, halved from level to level; 0 for the input's own.
      periodic: whether fields are periodic.
    """

    hidden_channels: int
    n_levels: int = 3
    n_layers: int = 1
    size: int = 64
    periodic: bool = False

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        grid = features.shape[1:-1]
        if self.size:
            check_size(self.size, self.n_levels)
        first = (self.size,) * len(grid) if self.size else grid
        sizes = [tuple(max(2, -(-n // 2**level)) for n in first) for level in range(self.n_levels)]
        field = self._resize(features, sizes[0])
        field = self._convolve(field, self.hidden_channels, "lifting")
        passed = []
        for level, size in enumerate(sizes):
            if level > 0:
                field = self._convolve(field, 2**level * self.hidden_channels, f"down_{level}")
                field = self._activate(field, size)
            for layer in range(self.n_layers):
                field = self._residual(field, f"residual_{level}_{layer}")
            passed.append(field)
        for level in reversed(range(self.n_levels - 1)):
            field = self._convolve(field, 2**level * self.hidden_channels, f"up_{level}")
            field = self._activate(field, sizes[level])
            field = jnp.concatenate([field, passed[level]], axis=-1)
        field = self._convolve(field, self.hidden_channels, "merge")
        field = self._activate(field, sizes[0])
        return self._resize(nn.Dense(self.out_channels, name="projection")(field), grid)

    def _residual(self, field: RealBatch, name: str) -> Outputs:
        size, width = field.shape[1:-1], field.shape[-1]
        inner = self._activate(self._convolve(field, width, f"{name}_inner"), size)
        return field + self._convolve(inner, width, f"{name}_outer")

    def _convolve(self, field: RealBatch, features: int, name: str) -> Outputs:
        window = (3,) * (field.ndim - 2)
        padding = "CIRCULAR" if self.periodic else "SAME"
        return nn.Conv(features, window, padding=padding, name=name)(field)

    def _activate(self, field: RealBatch, size: tuple[int, ...]) -> Array:
        """GeLU between band-limited functions, sampled with `size` points a side afterwards."""
        fine = tuple(2 * max(pair) for pair in zip(field.shape[1:-1], size, strict=True))
        return self._resize(gelu(self._resize(field, fine)), size)

    def _resize(self, field: RealBatch, grid: tuple[int, ...]) -> Array:
        kind = "fourier" if self.periodic else "cosine"
        return interpolation.resize(field, grid, kind=kind, centring=self.centring)
