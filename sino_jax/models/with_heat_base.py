"""A model on top of the heat equation's solution: Burgers on a space-time window.

    output = base + gate · b(t, x) · model(U, base, g; Re)

The base (`sino_jax.base.heat`) is exact for vanishing velocities. What it leaves out is of second
order in them: the model's output is proportional to the size of the data, and the gate is the
distance U, in widths of the window, that a fluid of that velocity travels within it, at most 1. The
bubble b(t, x) = t (2 - t) · 4 x (1 - x) vanishes where the solution is given.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from sino_jax import base as bases
from sino_jax import channels
from sino_jax.equations.burgers import BURGERS
from sino_jax.norms import l2_norm
from sino_jax.types import RealBatch, Scale


class WithHeatBase(nn.Module, kw_only=True):
    """Corrects the solution of u_t = u_xx / Re with the initial and boundary values of a window.

    Inputs are those of Burgers' equation: the extended traces of t low, x low and x high. The model
    inside sees two further channels before them: U, the same everywhere, and the base.

    Attributes:
      model: the operator that gives the correction.
      extent: length of the whole window in time and in space.
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
        base = jax.vmap(lambda values, k: bases.heat(_given(values), k, extent=self.extent))(
            inputs, scale
        )
        velocity = l2_norm(base) / base[0].size ** 0.5
        travelled = velocity * (self.extent[0] / self.extent[1])
        constant = jnp.broadcast_to(channels.per_example(travelled, base), base.shape)
        correction = self.model(jnp.concatenate([constant, base, inputs], axis=-1), scale)
        gate = channels.per_example(jnp.minimum(travelled, 1), base)
        return base + gate * _bubble(base) * correction

    def smallest_grid(self) -> int:
        """Points that every axis must have at least: those of the model inside."""
        return self.model.smallest_grid()


def _given(traces: jax.Array) -> jax.Array:
    """A field ``[t, x, 1]`` with the values of the three sides."""
    initial, low, high = jnp.split(traces, 3, axis=-1)
    return initial.at[1:, :1].set(low[1:, :1]).at[1:, -1:].set(high[1:, -1:])


def _bubble(like: RealBatch) -> jax.Array:
    """t (2 - t) · 4 x (1 - x) on the node-centred unit box."""
    t, x = (jnp.linspace(0, 1, points, dtype=like.dtype) for points in like.shape[1:3])
    return ((t * (2 - t))[:, None] * (4 * x * (1 - x))[None, :])[None, :, :, None]
