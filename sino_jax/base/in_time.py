"""Past frames of a flow continued in time by a polynomial, with the boundary values of the future.

    base = E + Coons(g - E),   E = the polynomial through the last frames

For slow changes it is accurate however complicated the flow is, and what enters through the
boundary is interpolated into it.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sino_jax.base.solutions import coons


def polynomial_weights(order: int, ahead: int) -> np.ndarray:
    """``[ahead, order + 1]``: the frame 1 ... `ahead` steps on from the last ones, oldest first."""
    nodes = np.arange(-order, 1)
    targets = np.arange(1, ahead + 1)[:, None]
    columns = []
    for j, node in enumerate(nodes):
        others = np.delete(nodes, j)
        columns.append(np.prod((targets - others) / (node - others), axis=1))
    return np.stack(columns, axis=1)


def polynomial(
    past: Float[Array, "*grid t channel"], order: int, *, ahead: int
) -> Float[Array, "*grid ahead channel"]:
    """The polynomial in time through the last ``order + 1`` frames; order 0 repeats the last."""
    weights = jnp.asarray(polynomial_weights(order, ahead), past.dtype)
    return jnp.einsum("mj,...jc->...mc", weights, past[..., -order - 1 :, :])


def extrapolation(
    past: Float[Array, "x y t channel"], boundary: Float[Array, "x y t channel"], *, order: int = 1
) -> Float[Array, "x y t channel"]:
    """As many frames as are known, exact on the outer ring of x and y.

    Args:
      past: the known frames, oldest first.
      boundary: field whose outer ring holds the values of the frames that follow.
      order: of the polynomial in time.
    """
    guess = polynomial(past, order, ahead=boundary.shape[-2])
    missing = boundary - guess
    return guess + coons(missing.reshape(*missing.shape[:2], -1)).reshape(guess.shape)
