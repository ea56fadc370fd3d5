"""What all models share: checked inputs, boundary-magnitude normalisation, coordinate channels."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from sino_jax import boundary, channels, grid
from sino_jax.grid import Centring
from sino_jax.types import RealBatch, Scale

Outputs = Float[Array, "batch *grid out"]


class Model(nn.Module, kw_only=True):
    """Maps ``inputs [batch, *grid, channel]`` and ``scale [batch]`` to ``[batch, *grid, out]``.

    A model is a subclass that defines ``core(features, scale)``, from features to outputs of the
    same grid, batch-first and channel-last.

    Attributes:
      out_channels: channels of the solution (real ones: two for a complex field).
      in_channels: if given, inputs with another number of channels are refused.
      boundary_channels: how many of the last input channels hold boundary data. These are divided
        by their magnitude (`boundary.magnitude`) and the output is multiplied by it, which makes
        the model homogeneous in the boundary data: zero for zero. 0 turns this off.
      centred: subtract the mean of the boundary data first, and add it to the output last. Of an
        equation with `Equation.free_constant` the model then need not learn that a solution plus a
        constant is a solution: on a small part of a large domain the mean is most of the data.
      coordinates: append one channel for each coordinate of the unit box.
      centring: "node" if the grid contains both end points of each axis, else "cell".
    """

    out_channels: int
    in_channels: int | None = None
    boundary_channels: int = 0
    centred: bool = False
    coordinates: bool = True
    centring: Centring = "node"

    def __call__(self, inputs: Shaped[Array, "batch *grid channel"], scale: Array) -> Outputs:
        """Evaluates the operator; wrong shapes, dtypes or (outside `jit`) scales raise."""
        self._check(inputs, scale)
        features = inputs
        if self.boundary_channels:
            interior, traces = jnp.split(inputs, [inputs.shape[-1] - self.boundary_channels], -1)
            if self.centred:
                traces, mean = boundary.centre(traces, self.boundary_channels // self.out_channels)
            size = channels.per_example(boundary.magnitude(traces), inputs)
            unit_traces = traces / jnp.where(size == 0, 1, size)
            features = jnp.concatenate([interior, unit_traces], axis=-1)
        if self.coordinates:
            shape = inputs.shape[1:-1]
            points = grid.coordinates(shape, centrings=(self.centring,) * len(shape))
            points = jnp.broadcast_to(points.astype(inputs.dtype), (len(inputs), *points.shape))
            features = jnp.concatenate([features, points], axis=-1)
        outputs = self.core(features, scale)
        if self.boundary_channels:
            outputs = outputs * size
        return outputs + mean if self.centred else outputs

    def core(self, features: RealBatch, scale: Scale) -> Outputs:
        """The model itself; see the class."""
        raise NotImplementedError

    def dimensions(self) -> int | None:
        """The number of grid axes if the configuration fixes it: the length of `n_modes`."""
        n_modes = getattr(self, "n_modes", None)
        return None if n_modes is None else len(n_modes)

    def smallest_grid(self) -> int:
        """Points that every axis must have at least."""
        return 4

    def _check(self, inputs: Array, scale: Array) -> None:
        if not jnp.issubdtype(inputs.dtype, jnp.floating):
            raise ValueError(
                f"inputs must be real floating point, got {inputs.dtype} (complex fields: see "
                "channels.to_channels)"
            )
        dimensions = self.dimensions() or inputs.ndim - 2
        if inputs.ndim != dimensions + 2 or dimensions < 1:
            raise ValueError(
                f"inputs must be [batch, {dimensions} grid axes, channel], got shape {inputs.shape}"
            )
        channels = inputs.shape[-1]
        if self.in_channels is not None and channels != self.in_channels:
            raise ValueError(
                f"inputs must have in_channels = {self.in_channels} channels, got {channels}"
            )
        if not 0 <= self.boundary_channels <= channels:
            raise ValueError(
                f"boundary_channels must be between 0 and the {channels} channels of inputs, "
                f"got {self.boundary_channels}"
            )
        if self.centred and not self.boundary_channels:
            raise ValueError("centred needs boundary_channels, got 0 of them")
        if min(inputs.shape[1:-1]) < self.smallest_grid():
            raise ValueError(
                f"inputs must have at least {self.smallest_grid()} points on each grid axis, "
                f"got a grid of {inputs.shape[1:-1]}"
            )
        if scale.shape != inputs.shape[:1]:
            raise ValueError(
                f"scale must have shape {inputs.shape[:1]}, one for each example, got {scale.shape}"
            )
        # A traced scale has no value yet, so that under `jit` this cannot be checked.
        if not isinstance(scale, jax.core.Tracer) and not np.all(np.asarray(scale) > 0):
            raise ValueError(f"scale must be positive, got {scale}")
