"""Fourier neural operators, any dimension: one family with two independent choices.

    v_0     = lifting(features)
    w       = σ(K v_t + W v_t + b),     (K v)(ξ) = R(v_hat(ξ) ⊙ h(k, ξ))
    v_{t+1} = σ(MLP(w) + g ⊙ v_t)
    output  = projection(v_T)

The *kernel* R is "tensor", a complex matrix for each mode ξ, or "shared", R_2 cGeLU(norm(R_1 ·))
with matrices that all modes share, whose number therefore costs no parameters. The *modulation* h
is made of features of the scale k, of the frequency ξ, of both or of neither (`layers.Modulation`).

|  | no modulation | modulation |
|---|---|---|
| tensor | FNO (Li et al. 2021, https://arxiv.org/abs/2010.08895) | the paper's SINO for Burgers |
| shared | the paper's "FNO MLP" | SINO (`sino_jax.models.sino`) |

The shared kernel has no biases and its normalisation is by the field's root mean square, so that
modes without energy stay empty and the operator converges as the grid is refined. A bias would
send every mode, however many a grid has, to the same non-zero value: a point source at the origin.

The last layer has no σ. With `padding` p the domain is the part [0, 1] of a period 1 + p: K is an
integral over the domain with a kernel of that longer period, so that points near opposite
boundaries are no neighbours. The field outside is zero and never stored.
"""

from typing import Literal

import flax.linen as nn
from jaxtyping import Array

from sino_jax.models.frame import Model, Outputs
from sino_jax.nn import bands, layers, spectral
from sino_jax.types import RealBatch, Scale


class FNO(Model, kw_only=True):
    """Fourier neural operator.

    Attributes:
      kernel: "tensor" or "shared".
      n_modes: frequencies ``|ξ| < n_modes`` are kept on each axis; its length is the dimension.
        A grid that resolves fewer uses the weights of those it has.
      hidden_channels: width.
      n_layers: number of Fourier layers.
      truncated: use the frequencies below `n_modes`; otherwise, for a shared kernel, all that the
        grid resolves, and `n_modes` only gives the dimension.
      kernel_bias: biases in a shared kernel; gives up convergence under grid refinement.
      lifting_channel_ratio, projection_channel_ratio, channel_mlp_expansion: hidden widths of the
        pointwise networks relative to `hidden_channels`.
      padding: fraction of the domain added to the period; 0 for periodic problems.
      initialisation: size of the first weights, one of `layers.STARTS`.
      normalisation: "group" divides the Fourier coefficients by the field's root mean square.
      scale_informed, frequency_embedding, scale_embedding, log_scale, n_features, complex_factor,
        reference_scale: see `layers.Modulation`.
    """

    n_modes: tuple[int, ...]
    hidden_channels: int
    n_layers: int = 4
    kernel: Literal["tensor", "shared"] = "tensor"
    truncated: bool = True
    kernel_bias: bool = False
    lifting_channel_ratio: float = 2.0
    projection_channel_ratio: float = 2.0
    channel_mlp_expansion: float = 0.5
    padding: float = 0.0
    initialisation: str = "small"
    normalisation: Literal["none", "group"] = "none"
    scale_informed: bool = False
    frequency_embedding: bool = False
    scale_embedding: Literal["mlp", "octaves", "inverse_powers", "powers"] = "mlp"
    log_scale: bool = False
    n_features: int = 16
    complex_factor: bool = False
    reference_scale: float = 1.0

    @nn.compact
    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        field = self.lift(features)
        for layer in range(self.n_layers):
            integral = self._integral(field, scale, name=f"kernel_{layer}")
            last = layer == self.n_layers - 1
            field = self.block(layer, self.hidden_channels, last=last)(field, integral)
        return self.project(field)

    def lift(self, features: RealBatch) -> Array:
        """Features of the input to the hidden field."""
        hidden = max(1, int(self.lifting_channel_ratio * self.hidden_channels))
        lifting = layers.ChannelMlp(
            hidden,
            self.hidden_channels,
            initialisation=self.initialisation,
            name="lifting",
        )
        return lifting(spectral.to_field(features))

    def project(self, field: layers.Field) -> Array:
        """The hidden field to the output channels, batch-first again."""
        hidden = max(1, int(self.projection_channel_ratio * self.hidden_channels))
        projection = layers.ChannelMlp(
            hidden,
            self.out_channels,
            initialisation=self.initialisation,
            name="projection",
        )
        return spectral.from_field(projection(field))

    def block(self, layer: int, width: int, *, last: bool) -> layers.PointwiseBlock:
        """The pointwise part of a layer, around the integral."""
        expanded = max(1, int(self.channel_mlp_expansion * width))
        return layers.PointwiseBlock(
            width,
            expanded,
            linear=last,
            initialisation=self.initialisation,
            name=f"layer_{layer}",
        )

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
            self.complex_factor,
            self.reference_scale,
            name=f"{name}_modulation",
        )

    def _integral(self, field: layers.Field, scale: Scale, *, name: str) -> layers.Field:
        """K: transform, modulate, apply the kernel, transform back."""
        grid = spectral.grid_of(field)
        period = self.period(grid)
        spectrum = spectral.transform(field, self.kept_modes(period), period=period)
        spectrum = self.modulation(name)(spectrum, scale)
        mixed = self.mix(spectrum, self.hidden_channels, self.n_modes, name=name)
        return spectral.inverse(mixed, grid, period=period)

    def kept_modes(self, period: tuple[int, ...]) -> tuple[int, ...]:
        if not self.truncated and self.kernel == "tensor":
            raise ValueError(
                "a tensor kernel has matrices for n_modes only: truncated must be True"
            )
        return bands.kept_modes(self.n_modes if self.truncated else None, period)

    def mix(
        self, spectrum: layers.Spectrum, width: int, n_modes: tuple[int, ...], *, name: str
    ) -> Array:
        """R: the kernel, of any width and band."""
        norm = layers.SpectralNorm(self.normalisation, name=f"{name}_norm")
        if self.kernel == "tensor":
            matrices = layers.TensorKernel(width, n_modes, self.initialisation, name=name)
            return norm(matrices(spectrum))
        if self.kernel != "shared":
            raise ValueError(f"kernel must be tensor or shared, got {self.kernel!r}")
        options = (width, self.kernel_bias, self.initialisation)
        inner = layers.SharedKernel(*options, name=f"{name}_inner")
        outer = layers.SharedKernel(*options, name=f"{name}_outer")
        return outer(spectral.complex_gelu(norm(inner(spectrum))))
