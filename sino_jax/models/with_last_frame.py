"""A model on top of the last known frame: it predicts what changes from one frame to the next.

    output = u(t) + model(u(t - 9 dt), ..., u(t); Re)

Small steps of slow flows are then accurate for any weights that are small, and a model need not
spend its data on learning to repeat its input.
"""

import flax.linen as nn

from sino_jax.types import RealBatch, Scale


class WithLastFrame(nn.Module, kw_only=True):
    """Adds the newest frame to the output of a model of frames without boundary data.

    Attributes:
      model: the operator that gives the change.
      out_channels: of a frame; the last so many channels of the inputs are the newest one.
    """

    model: nn.Module
    out_channels: int

    def __call__(self, inputs: RealBatch, scale: Scale) -> RealBatch:
        """Evaluates frame and change; see `sino_jax.models` for the shapes."""
        return inputs[..., -self.out_channels :] + self.model(inputs, scale)

    def smallest_grid(self) -> int:
        """Points that every axis must have at least: those of the model inside."""
        return self.model.smallest_grid()
