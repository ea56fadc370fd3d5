"""A model on top of past frames that are continued linearly in time, for space-time windows.

    output = E(past) + model(past, boundary; Re),    E = the line through the last two frames

What moves at a constant rate need not be learned; on slow flows the model starts from an error of a
percent. E commutes with the restriction to sub-domains, which keep the junction of past and future.
"""

import flax.linen as nn

from sino_jax import base
from sino_jax.types import RealBatch, Scale


class WithExtrapolation(nn.Module, kw_only=True):
    """Adds the extrapolated past to the output of a model of ``[batch, x, y, t, channel]``.

    Attributes:
      model: the operator that gives the rest.
      out_channels: of a frame; the first so many channels of the inputs are the past, of as many
        frames as are predicted.
    """

    model: nn.Module
    out_channels: int

    def __call__(self, inputs: RealBatch, scale: Scale) -> RealBatch:
        """Evaluates extrapolation and rest; see `sino_jax.models` for the shapes."""
        past = inputs[..., : self.out_channels]
        return base.extrapolation(past, 1, ahead=past.shape[-2]) + self.model(inputs, scale)

    def smallest_grid(self) -> int:
        """Points that every axis must have at least: those of the model inside, and two frames."""
        return max(2, self.model.smallest_grid())
