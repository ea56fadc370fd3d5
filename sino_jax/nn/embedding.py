"""Features of the scale parameter and of the frequency, for modulating Fourier coefficients.

The paper's features of a positive number v are its powers

    h(v)_i = v^{i/(C-1)},   i = 0, ..., C-1,

which run from 1 to v itself. They are taken of the scale and of the frequency; the features of a
frequency zero are zero. Large Reynolds numbers enter by their logarithm, log(1 + scale), which is
positive for every positive scale. The authors' code has negative powers instead, -2 to -0.2.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sino_jax.nn import bands
from sino_jax.types import Scale

# First and last exponent.
POSITIVE, INVERSE = (0.0, 1.0), (-2.0, -0.2)


def scale_features(
    scale: Scale, count: int, *, log: bool = False, exponents: tuple[float, float] = POSITIVE
) -> Float[Array, "batch count"]:
    """``[batch, count]``: powers of the positive scale, or of log(1 + scale)."""
    base = jnp.log1p(scale) if log else scale
    return base[:, None] ** jnp.asarray(_spaced(exponents, count)[None], scale.dtype)


def octave_features(scale: Scale, count: int, *, reference: float) -> Float[Array, "batch count"]:
    """``[batch, count]``: powers 0 to count - 1 of the octaves log2(scale / reference) / 2.

    Around the reference each of them varies by the order of one, where fractional powers of a large
    number are nearly proportional to one another.
    """
    octaves = jnp.log2(scale / reference) / 2
    return jnp.stack([octaves**i for i in range(count)], axis=-1)


def octave_component_features(modes: Sequence[int], count: int) -> np.ndarray:
    """``[*modes, axis * (count - 1)]``: powers 1 to count - 1 of log2(1 + |ξ_axis|) / 2."""
    components = np.meshgrid(*bands.frequencies(modes), indexing="ij")
    octaves = [np.log2(1 + np.abs(xi))[..., None] / 2 for xi in components]
    return np.concatenate([o ** np.arange(1, count) for o in octaves], axis=-1)


def component_features(
    modes: Sequence[int],
    count: int,
    *,
    exponents: tuple[float, float] = POSITIVE,
    signed: bool = False,
) -> np.ndarray:
    """``[*modes, axis * count]``: powers of each component of the frequency, ``|ξ_axis|``.

    `modes` is the band, see `bands.frequencies`. With `signed` the same powers with the sign of
    ξ_axis follow, for every axis but the first, whose frequencies are not negative.
    """
    components = np.meshgrid(*bands.frequencies(modes), indexing="ij")
    features = [_powers(np.abs(xi), count, exponents) for xi in components]
    if signed:
        pairs = zip(components[1:], features[1:], strict=True)
        features += [np.sign(xi)[..., None] * powers for xi, powers in pairs]
    return np.concatenate(features, axis=-1)


def magnitude_features(modes: Sequence[int], count: int) -> np.ndarray:
    """``[*modes, count]``: powers 0 to 1 of the length of the frequency, |ξ|."""
    components = np.meshgrid(*bands.frequencies(modes), indexing="ij")
    return _powers(np.sqrt(sum(xi.astype(float) ** 2 for xi in components)), count, POSITIVE)


def _spaced(exponents: tuple[float, float], count: int) -> np.ndarray:
    if count < 2:
        raise ValueError(f"count must be at least 2, got {count}")
    return np.linspace(*exponents, count)


def _powers(values: np.ndarray, count: int, exponents: tuple[float, float]) -> np.ndarray:
    positive = np.where(values == 0, 1.0, values)[..., None]
    return np.where(values[..., None] == 0, 0.0, positive ** _spaced(exponents, count))
