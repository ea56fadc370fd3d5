"""The scale-informed neural operator of the paper with weights shared by all modes.

    (K v)(ξ) = R_2 cGeLU(norm(R_1 (v_hat(ξ) ⊙ h(k, ξ))))

The point "shared kernel, modulated by scale and frequency" of the family in `sino_jax.models.fno`.
"""

from typing import Literal

from sino_jax.models.fno import FNO


class SINO(FNO, kw_only=True):
    """Scale-informed neural operator; attributes as in `FNO`, with other defaults."""

    kernel: Literal["tensor", "shared"] = "shared"
    normalisation: Literal["none", "group"] = "group"
    scale_informed: bool = True
    frequency_embedding: bool = True
