"""SINO-U: a U of frequency bands in Fourier space (paper, section "Multi-band U-shape").

Level l has width C_l = 2^l C and the band M_l = M / 2^l; for two dimensions all levels below the
first have equally many weights. In layer t, with spectra f_l and skips s_l from layer t - 1,

    first   f_0 = R (v_hat ⊙ h(k, ξ)) + s_0                  shared by all modes, untruncated
    down    f_l = cGeLU(R_{l-1,l} f_{l-1}|M_l) + s_l         a matrix for each mode
    up      g_{l-1} = f_{l-1} + cGeLU(R_{l,l-1} g_l)         added to the corresponding modes
    skips   s_l = f_l for layer t + 1;  there are none before the first layer

and g_0 is transformed back. Nothing here fills modes that have no energy.
"""

import flax.linen as nn
from jaxtyping import Array

from sino_jax.models.frame import Outputs
from sino_jax.models.sino import SINO
from sino_jax.nn import bands, layers, spectral
from sino_jax.types import RealBatch, Scale

Spectra = list[Array]  # one for each level


class SINOU(SINO, kw_only=True):
    """Scale-informed neural operator with `n_levels` frequency bands.

    Attributes (others as in `SINO`):
      n_modes: the band M; level l >= 1 keeps M / 2^l of it, the first level keeps everything
        (`truncated` restricts it to M, too).
      n_levels: number of bands, the first one included.
    """

    n_levels: int = 3
    n_layers: int = 3
    truncated: bool = False

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        field = self.lift(features)
        grid = spectral.grid_of(field)
        period = self.period(grid)
        skips: Spectra | None = None
        for layer in range(self.n_layers):
            name = f"kernel_{layer}"
            spectrum = spectral.transform(field, self.kept_modes(period), period=period)
            modulated = self.modulation(name)(spectrum, scale)
            first = self.mix(modulated, self.hidden_channels, self.n_modes, name=name)
            skips = self._down(first, skips, name=name)
            integral = spectral.inverse(self._up(skips, name=name), grid, period=period)
            last = layer == self.n_layers - 1
            field = self.block(layer, self.hidden_channels, last=last)(field, integral)
        return self.project(field)

    def level_modes(self, level: int) -> tuple[int, ...]:
        """M_l: the band of a level below the first."""
        return tuple(max(1, m // 2**level) for m in self.n_modes)

    def _down(self, first: Array, skips: Spectra | None, *, name: str) -> Spectra:
        levels = [first if skips is None else first + skips[0]]
        for level in range(1, self.n_levels):
            above = levels[-1]
            held = bands.modes_of(above.shape[: len(self.n_modes)])
            band = tuple(map(min, self.level_modes(level), held))
            kernel = layers.TensorKernel(
                2**level * self.hidden_channels,
                self.level_modes(level),
                self.initialisation,
                name=f"{name}_down_{level}",
            )
            below = spectral.complex_gelu(kernel(bands.truncate(above, band)))
            levels.append(below if skips is None else below + skips[level])
        return levels

    def _up(self, levels: Spectra, *, name: str) -> Array:
        below = levels[-1]
        for level in reversed(range(1, self.n_levels)):
            above = levels[level - 1]
            kernel = layers.TensorKernel(
                above.shape[-1],
                self.level_modes(level),
                self.initialisation,
                name=f"{name}_up_{level}",
            )
            lifted = spectral.complex_gelu(kernel(below))
            held = bands.modes_of(above.shape[: len(self.n_modes)])
            below = above + bands.embed(lifted, held)
        return below
