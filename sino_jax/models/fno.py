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
import jax

from sino_jax import layers, spectral
from sino_jax.models.frame import Operator, Outputs, batch_first, grid_first
from sino_jax.types import RealBatch, Scale


class FNO(Operator, kw_only=True):
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
        width = self.hidden_channels
        field = grid_first(features)
        lifting = layers.ChannelMlp(int(self.lifting_channel_ratio * width), width, name="lifting")
        field = lifting(field)
        for layer in range(self.n_layers):
            last = layer == self.n_layers - 1
            field = self._block(field, scale, last=last, name=f"layer_{layer}")
        projection = layers.ChannelMlp(
            int(self.projection_channel_ratio * width), self.out_channels, name="projection"
        )
        return batch_first(projection(field))

    def _block(self, field: layers.Field, scale: Scale, *, last: bool, name: str) -> layers.Field:
        width = self.hidden_channels
        activation = (lambda x: x) if last else jax.nn.gelu
        skip = layers.Pointwise(width, name=f"{name}_skip")(field)
        gate = self.param(f"{name}_gate", nn.initializers.ones, (width,))
        mixed = activation(self._integral(field, scale, name=name) + skip)
        mlp = layers.ChannelMlp(int(self.channel_mlp_expansion * width), width, name=f"{name}_mlp")
        gate = gate.astype(field.dtype).reshape(*(1,) * (field.ndim - 1), width)
        return activation(mlp(mixed) + gate * field)

    def _integral(self, field: layers.Field, scale: Scale, *, name: str) -> layers.Field:
        """K: transform, modulate, mix, normalise, transform back."""
        grid = field.shape[:-2]
        period = layers.padded_period(grid, padding=self.padding, centring=self.centring)
        modes = spectral.kept_modes(self.n_modes, period)
        spectrum = spectral.transform(field, modes, period=period)
        spectrum = layers.Modulation(
            self.scale_informed,
            self.frequency_embedding,
            self.scale_embedding,
            self.log_scale,
            self.n_features,
            name=f"{name}_modulation",
        )(spectrum, scale)
        kernel = layers.TensorKernel(self.hidden_channels, self.n_modes, name=f"{name}_kernel")
        normalise = layers.SpectralNorm(self.normalisation, name=f"{name}_norm")
        return spectral.inverse(normalise(kernel(spectrum)), grid, period=period)
