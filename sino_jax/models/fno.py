"""The Fourier neural operator (Li et al. 2021, https://arxiv.org/abs/2010.08895), any dimension.

    v_0     = lifting(features)
    w       = σ(K v_t + W v_t + b),          K: one complex matrix for each Fourier mode
    v_{t+1} = σ(MLP(w) + g ⊙ v_t)
    output  = projection(v_T)

The last layer has no σ. With `padding` p the domain is the part [0, 1] of a period 1 + p: K is an
integral over the domain with a kernel of that longer period, so that points near opposite
boundaries are no neighbours. The field outside is zero and never stored.
"""

from typing import Literal

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array

from sino_jax.models.frame import Model, Outputs
from sino_jax.nn import bands, layers, spectral
from sino_jax.types import RealBatch, Scale


class FNO(Model, kw_only=True):
    """Fourier neural operator.

    Attributes:
      n_modes: frequencies ``|ξ| < n_modes`` are kept on each axis; its length is the dimension.
        A grid that resolves fewer uses the weights of those it has.
      hidden_channels: width.
      n_layers: number of Fourier layers.
      lifting_channel_ratio, projection_channel_ratio, channel_mlp_expansion: hidden widths of the
        pointwise networks relative to `hidden_channels`.
      padding: fraction of the domain added to the period; 0 for periodic problems.
      normalisation: "group" divides the Fourier coefficients by the field's root mean square.
      scale_informed, frequency_embedding, scale_embedding, log_scale, n_features: see
        `layers.Modulation`.
    """

    n_modes: tuple[int, ...]
    hidden_channels: int
    n_layers: int = 4
    lifting_channel_ratio: float = 2.0
    projection_channel_ratio: float = 2.0
    channel_mlp_expansion: float = 0.5
    padding: float = 0.0
    normalisation: Literal["none", "group"] = "none"
    scale_informed: bool = False
    frequency_embedding: bool = False
    scale_embedding: Literal["mlp", "powers"] = "mlp"
    log_scale: bool = False
    n_features: int = 16

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        field = self.lift(features)
        for layer in range(self.n_layers):
            integral = self._integral(field, scale, name=f"kernel_{layer}")
            last = layer == self.n_layers - 1
            field = self.block(layer, self.hidden_channels, last=last)(field, integral)
        return self.project(field)

    def lift(self, features: RealBatch) -> Array:
        """Features of the input to the hidden field, ``[*grid, batch, channel]`` from here on."""
        hidden = int(self.lifting_channel_ratio * self.hidden_channels)
        lifting = layers.ChannelMlp(hidden, self.hidden_channels, name="lifting")
        return lifting(jnp.moveaxis(features, 0, -2))

    def project(self, field: layers.Field) -> Array:
        """The hidden field to the output channels, batch-first again."""
        hidden = int(self.projection_channel_ratio * self.hidden_channels)
        projection = layers.ChannelMlp(hidden, self.out_channels, name="projection")
        return jnp.moveaxis(projection(field), -2, 0)

    def block(self, layer: int, width: int, *, last: bool) -> layers.PointwiseBlock:
        """The pointwise part of a layer, around the integral."""
        expanded = int(self.channel_mlp_expansion * width)
        return layers.PointwiseBlock(width, expanded, linear=last, name=f"layer_{layer}")

    def period(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """Points of the padded period."""
        return layers.padded_period(grid, padding=self.padding, centring=self.centring)

    def modulation(self, name: str) -> layers.Modulation:
        return layers.Modulation(
            self.scale_informed,
            self.frequency_embedding,
            self.scale_embedding,
            self.log_scale,
            self.n_features,
            name=f"{name}_modulation",
        )

    def _integral(self, field: layers.Field, scale: Scale, *, name: str) -> layers.Field:
        """K: transform, modulate, apply the kernel, transform back."""
        grid = field.shape[:-2]
        period = self.period(grid)
        spectrum = spectral.transform(field, self.kept_modes(period), period=period)
        spectrum = self.modulation(name)(spectrum, scale)
        return spectral.inverse(self.kernel(spectrum, name=name), grid, period=period)

    def kept_modes(self, period: tuple[int, ...]) -> tuple[int, ...]:
        return bands.kept_modes(self.n_modes, period)

    def kernel(self, spectrum: layers.Spectrum, *, name: str) -> Array:
        """A matrix for each mode."""
        mixed = layers.TensorKernel(self.hidden_channels, self.n_modes, name=name)(spectrum)
        return layers.SpectralNorm(self.normalisation, name=f"{name}_norm")(mixed)
