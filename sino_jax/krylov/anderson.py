"""Anderson acceleration of a fixed-point iteration u → T(u), for batches.

The next estimate is the combination Σ α_i T(u_i) of former images, Σ α_i = 1, whose defect
Σ α_i (T(u_i) - u_i) is smallest. For an affine T, such as a Schwarz method with a linear operator,
these are the iterates of GMRES; T need not be linear, nor traceable.

D. G. Anderson, Iterative procedures for nonlinear integral equations, J. ACM 12 (1965),
doi:10.1145/321296.321305
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from sino_jax.types import Batch


@jax.jit
def mix(
    estimates: Sequence[Batch], images: Sequence[Batch], observed: Bool[Array, "*grid"]
) -> Batch:
    """The next estimate.

    Args:
      estimates: u_i, the newest last; at least one.
      images: T(u_i).
      observed: the grid points that T reads, over which the defect is measured.
    """
    *former, newest = images
    if not former:
        return newest
    # Unobserved points are zeroed, not left out: the shapes stay those of the grid.
    mask = observed[None, ..., None].astype(newest.dtype)
    defects = [
        (mask * (image - estimate)).reshape(len(newest), -1)
        for estimate, image in zip(estimates, images, strict=True)
    ]
    differences = jnp.stack([defects[-1] - defect for defect in defects[:-1]], axis=-1)
    # Differences shrink with the iteration: unit lengths keep small ones from being lost.
    lengths = jnp.linalg.norm(differences, axis=1, keepdims=True)
    lengths = jnp.where(lengths > 0, lengths, 1).astype(differences.dtype)
    weights = jax.vmap(lambda a, b: jnp.linalg.lstsq(a, b)[0])(differences / lengths, defects[-1])
    weights = weights / lengths[:, 0]
    for i, image in enumerate(former):
        shape = (-1, *(1,) * (newest.ndim - 1))
        newest = newest - weights[:, i].reshape(shape) * (images[-1] - image)
    return newest
