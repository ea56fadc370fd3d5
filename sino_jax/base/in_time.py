"""Past frames of a flow continued in time by a polynomial: accurate for slow changes."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def extrapolation(
    past: Float[Array, "*grid t channel"], order: int, *, ahead: int
) -> Float[Array, "*grid ahead channel"]:
    """The polynomial in time through the last ``order + 1`` frames; order 0 repeats the last.

    Args:
      past: frames at equal distances, oldest first.
      order: of the polynomial.
      ahead: how many frames to continue by.
    """
    if not 0 <= order < past.shape[-2]:
        raise ValueError(f"order must be from 0 to {past.shape[-2] - 1} frames, got {order}")
    weights = jnp.asarray(_weights(order, ahead), past.dtype)
    return jnp.einsum("mj,...jc->...mc", weights, past[..., -order - 1 :, :])


def _weights(order: int, ahead: int) -> Float[np.ndarray, "ahead nodes"]:
    """Lagrange's, of the frames 1 ... `ahead` steps on from the last ones, oldest first."""
    nodes = np.arange(-order, 1)
    targets = np.arange(1, ahead + 1)[:, None]
    columns = []
    for j, node in enumerate(nodes):
        others = np.delete(nodes, j)
        columns.append(np.prod((targets - others) / (node - others), axis=1))
    return np.stack(columns, axis=1)
