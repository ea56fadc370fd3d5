"""FNO-UNet: a U-Net with Fourier layers on its upper levels (Gupta and Brandstetter 2022).

On the way down, the first `n_fourier_levels` levels add an integral operator with a matrix for each
of their modes to the convolution block (https://arxiv.org/abs/2209.15616, "U-F1Net", "U-F2Net").
"""

from sino_jax.models.frame import Outputs
from sino_jax.models.unet import ConvolutionBlock, UNet
from sino_jax.nn import bands, layers, spectral
from sino_jax.nn.activation import gelu
from sino_jax.types import RealBatch


class FNOUNet(UNet, kw_only=True):
    """U-Net with Fourier layers.

    Attributes (others as in `UNet`):
      n_modes: modes of the first level, halved from level to level.
      n_fourier_levels: how many levels have a Fourier layer.
      initialisation: of the Fourier layers, one of `layers.STARTS`.
    """

    n_modes: tuple[int, ...]
    n_fourier_levels: int = 2
    initialisation: str = "small"

    def down_block(self, field: RealBatch, level: int) -> Outputs:
        width = 2**level * self.hidden_channels
        local = ConvolutionBlock(width, self.periodic, name=f"down_{level}")(field)
        if level >= self.n_fourier_levels:
            return local
        n_modes = tuple(max(1, m // 2**level) for m in self.n_modes)
        grid = field.shape[1:-1]
        spectrum = spectral.transform(spectral.to_field(field), bands.kept_modes(n_modes, grid))
        mixed = layers.TensorKernel(width, n_modes, self.initialisation, name=f"kernel_{level}")(
            spectrum
        )
        integral = spectral.from_field(spectral.inverse(mixed, grid))
        skip = layers.Pointwise(
            width, initialisation=self.initialisation, axis=-1, name=f"skip_{level}"
        )
        return local + gelu(integral + skip(field))
