"""A model on top of the heat equation's solution: Burgers on a space-time window.

    output = base(g; Re) + b(t, x) · model(base, g; Re)

The base (`sino_jax.base.heat`) is exact for vanishing velocities at every Re; the model corrects
what advection changes. The bubble b(t, x) = t (2 - t) · 4 x (1 - x) vanishes where the solution is
given, so that initial and boundary values are exact.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import base as bases
from sino_jax.equations.burgers import BURGERS
from sino_jax.types import RealBatch, Sample, Scale


class WithHeatBase(nn.Module, kw_only=True):
    """Corrects the solution of u_t = u_xx / Re with the initial and boundary values of a window.

    Inputs are those of Burgers' equation: the extended traces of t low, x low and x high. The model
    inside sees the base as a further channel before them.

    Attributes:
      model: the operator that gives the correction.
      extent: length of the window in time and in space, in the units of Re. That of a sub-domain is
        the same once it is rescaled.
    """

    model: nn.Module
    extent: tuple[float, ...]

    def __call__(self, inputs: RealBatch, scale: Scale) -> RealBatch:
        """Evaluates base and correction; see `sino_jax.models` for the shapes."""
        if inputs.ndim != 4 or inputs.shape[-1] != BURGERS.input_channels:
            raise ValueError(
                f"inputs must be [batch, t, x, {BURGERS.input_channels}], the traces of t low, x "
                f"low and x high, got shape {inputs.shape}"
            )
        base = jax.vmap(self._solve)(inputs, scale.astype(inputs.dtype))
        correction = self.model(jnp.concatenate([base, inputs], axis=-1), scale)
        return base + _bubble(base) * correction

    def _solve(self, traces: Sample, scale: Float[Array, ""]) -> Sample:
        _, given = BURGERS.split(traces)
        return bases.heat(given, scale, extent=self.extent)

    def smallest_grid(self) -> int:
        """Points that every axis must have at least: those of the model inside."""
        return self.model.smallest_grid()


def _bubble(like: RealBatch) -> Float[Array, "1 t x 1"]:
    """t (2 - t) · 4 x (1 - x) on the node-centred unit box."""
    t, x = (jnp.linspace(0, 1, points, dtype=like.dtype) for points in like.shape[1:3])
    return ((t * (2 - t))[:, None] * (4 * x * (1 - x))[None, :])[None, :, :, None]
