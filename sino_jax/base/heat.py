"""The linear part of Burgers' equation, a base solution for space-time windows.

    u_t = ν u_xx,   u = g on t = 0, x = 0 and x = L

A sine transform in space and exact integration in time solve it: what a window's initial and
boundary values diffuse to. It is the limit of small velocities, whatever the viscosity.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax.base.sine_transform import angles, sine_transform
from sino_jax.types import Sample


def heat(
    boundary: Sample, scale: float | Float[Array, ""], *, extent: Sequence[float] = (1.0, 1.0)
) -> Sample:
    """u_t = u_xx / scale on a window ``[t, x, channel]``, with the values of three of its sides.

    Between frames the boundary values are taken to be linear in time, for which integration is
    exact. Space is discretised by second differences.

    Args:
      boundary: field whose sides t low, x low and x high are read.
      scale: 1/ν.
      extent: length of the window in time and in space.
    """
    if boundary.ndim != 3 or min(boundary.shape[:2]) < 3:
        raise ValueError(
            "boundary must be one sample [t, x, channel] with at least 3 points on each axis, "
            f"got shape {boundary.shape}"
        )
    frames, points, _ = boundary.shape
    step = extent[0] / (frames - 1)
    weight = jnp.linspace(0, 1, points, dtype=boundary.dtype)[None, :, None]
    between = (1 - weight) * boundary[:, :1] + weight * boundary[:, -1:]
    # v = u - between vanishes on both sides: v_t = ν v_xx - between_t.
    start = sine_transform((boundary[0] - between[0])[1:-1], 0)
    forcing = sine_transform(-jnp.diff(between, axis=0)[:, 1:-1] / step, 1)
    spacing = extent[1] / (points - 1)
    laplacian = jnp.asarray((2 - 2 * jnp.cos(angles(points - 2))) / spacing**2, boundary.dtype)
    rate = (laplacian / jnp.asarray(scale, boundary.dtype) * step)[:, None]
    decay = jnp.exp(-rate)
    response = -jnp.expm1(-rate) / rate * step

    def advance(modes: Array, load: Array) -> tuple[Array, Array]:
        modes = decay * modes + response * load
        return modes, modes

    _, later = jax.lax.scan(advance, start, forcing)
    modes = jnp.concatenate([start[None], later])
    inner = sine_transform(modes, 1)
    return between + jnp.pad(inner, ((0, 0), (1, 1), (0, 0)))
