"""The scale-informed neural operator of the paper, on one band of modes.

    (K v)(ξ) = R_2 cGeLU(norm(R_1 (v_hat(ξ) ⊙ h(k, ξ))))

The complex matrices R_1 and R_2 are shared by all modes ξ, whose number therefore costs no
parameters; h are features of the scale k and of ξ (`layers.Modulation`). Otherwise it is an FNO.

The kernel network has no biases and its normalisation is by the field's root mean square, so that
modes without energy stay empty and the operator converges as the grid is refined. A bias would
send every mode, however many a grid has, to the same non-zero value: a point source at the origin.
"""

from typing import Literal

from jaxtyping import Array

from sino_jax.models.fno import FNO
from sino_jax.nn import bands, layers, spectral


class SINO(FNO, kw_only=True):
    """Scale-informed neural operator with weights shared over modes.

    Attributes (others as in `FNO`):
      truncated: use the frequencies below `n_modes`; otherwise all that the grid resolves, and
        `n_modes` only gives the dimension.
      kernel_bias: biases in the kernel network; gives up convergence under grid refinement.
    """

    truncated: bool = True
    kernel_bias: bool = False
    normalisation: Literal["none", "group"] = "group"
    scale_informed: bool = True
    frequency_embedding: bool = True

    def kept_modes(self, period: tuple[int, ...]) -> tuple[int, ...]:
        return bands.kept_modes(self.n_modes if self.truncated else None, period)

    def kernel(self, spectrum: layers.Spectrum, *, name: str) -> Array:
        """Two layers, the same for every mode."""
        options = (self.hidden_channels, self.kernel_bias, self.initialisation)
        hidden = layers.SharedKernel(*options, name=f"{name}_inner")(spectrum)
        hidden = layers.SpectralNorm(self.normalisation, name=f"{name}_norm")(hidden)
        hidden = spectral.complex_gelu(hidden)
        return layers.SharedKernel(*options, name=f"{name}_outer")(hidden)
