"""Features of the scale parameter and of the frequency, for modulating Fourier coefficients.

The paper's features of a positive number v are its powers

    h(v)_i = v^{i/(C-1)},   i = 0, ..., C-1,

which run from 1 to v itself. They are taken of the scale and of the frequency; the features of a
frequency zero are zero. Large Reynolds numbers enter by their logarithm, log(1 + scale), which is
positive for every positive scale.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sino_jax.nn import bands
from sino_jax.types import Scale


def scale_features(scale: Scale, count: int, *, log: bool = False) -> Float[Array, "batch count"]:
    """``[batch, count]``: powers 0 to 1 of the positive scale, or of log(1 + scale)."""
    base = jnp.log1p(scale) if log else scale
    return base[:, None] ** jnp.asarray(_exponents(count)[None], scale.dtype)


def component_features(modes: Sequence[int], count: int) -> np.ndarray:
    """``[*modes, axis * count]``: powers 0 to 1 of each component of the frequency, ``|ξ_axis|``.

    `modes` is the band, see `bands.frequencies`.
    """
    components = np.meshgrid(*bands.frequencies(modes), indexing="ij")
    return np.concatenate([_powers(np.abs(xi), count) for xi in components], axis=-1)


def magnitude_features(modes: Sequence[int], count: int) -> np.ndarray:
    """``[*modes, count]``: powers 0 to 1 of the length of the frequency, |ξ|."""
    components = np.meshgrid(*bands.frequencies(modes), indexing="ij")
    return _powers(np.sqrt(sum(xi.astype(float) ** 2 for xi in components)), count)


def _exponents(count: int) -> np.ndarray:
    if count < 2:
        raise ValueError(f"count must be at least 2, got {count}")
    return np.linspace(0.0, 1.0, count)


def _powers(values: np.ndarray, count: int) -> np.ndarray:
    powers = values[..., None] ** _exponents(count)
    return np.where(values[..., None] == 0, 0.0, powers)
