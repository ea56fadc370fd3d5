"""The U-shaped neural operator (Rahman et al. 2023, https://arxiv.org/abs/2204.11127).

Level l has half the points, half the modes and twice the channels of the level above it. Every
resampling is part of an integral operator: its Fourier coefficients are evaluated on the other
grid. On the way up a level is concatenated with what the way down left there. Grids are fractions
of the input's, hence the operator is resolution-free.
"""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array

from sino_jax.models.fno import FNO
from sino_jax.models.frame import Outputs
from sino_jax.nn import bands, layers, spectral
from sino_jax.types import RealBatch, Scale

Grid = tuple[int, ...]


class UNO(FNO, kw_only=True):
    """U-shaped neural operator with ``2 n_levels - 1`` layers.

    Attributes (others as in `FNO`, whose `n_layers` follows from the levels):
      n_levels: number of grids, the input's included.
    """

    n_levels: int = 3
    n_layers: int | None = None

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        if self.n_layers is not None:
            raise ValueError("n_layers of a UNO follows from n_levels: leave it out")
        field = self.lift(features)
        grids = [spectral.grid_of(field)]
        periods = [self.period(grids[0])]
        for _ in range(1, self.n_levels):
            grid, period = coarser(grids[-1], periods[-1])
            grids.append(grid)
            periods.append(period)
        passed = []
        down = list(range(self.n_levels))
        for layer, level in enumerate([*down, *reversed(down[:-1])]):
            source = level if layer == 0 else level - 1 if layer < self.n_levels else level + 1
            field = self._layer(
                field, scale, layer, level, (periods[source], grids[level], periods[level])
            )
            if layer < self.n_levels - 1:
                passed.append(field)
            elif layer >= self.n_levels:
                field = jnp.concatenate([field, passed[level]], axis=1)
        return self.project(field)

    def _layer(
        self,
        field: layers.Field,
        scale: Scale,
        layer: int,
        level: int,
        places: tuple[Grid, Grid, Grid],
    ) -> Array:
        """An FNO layer from one period to a grid within another period."""
        source_period, grid, period = places
        name, width = f"kernel_{layer}", 2**level * self.hidden_channels
        n_modes = tuple(max(1, m // 2**level) for m in self.n_modes)
        held = tuple(
            min(map(bands.largest_band, pair)) for pair in zip(source_period, period, strict=True)
        )
        spectrum = spectral.transform(field, held, period=source_period)
        # What the coarser grid cannot hold is dropped: the pointwise path sees no aliases.
        resampled = spectral.inverse(spectrum, grid, period=period)
        modes = bands.kept_modes(n_modes, tuple(2 * h - 1 for h in held))
        spectrum = self.modulation(name)(bands.truncate(spectrum, modes), scale)
        mixed = self.mix(spectrum, width, n_modes, name=name)
        integral = spectral.inverse(mixed, grid, period=period)
        resampled = layers.Pointwise(
            width, initialisation=self.initialisation, name=f"{name}_resample"
        )(resampled)
        last = layer == 2 * self.n_levels - 2
        return self.block(layer, width, last=last)(resampled, integral)


def coarser(grid: Grid, period: Grid) -> tuple[Grid, Grid]:
    """A grid of half as many points that covers the same part of the period, and its period."""
    halved = tuple(max(2, (p + 1) // 2) for p in period)
    points = (-(-n * h // p) for n, h, p in zip(grid, halved, period, strict=True))
    return tuple(map(min, points, halved)), halved
