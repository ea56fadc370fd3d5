"""Relative errors, one value per example. All are safe for complex values."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Inexact

from sino_jax import checks, grid
from sino_jax.norms import l2_norm, relative
from sino_jax.types import PerExample

# [batch, *grid, channel]; the shapes are compared by `_check_shapes`, which explains itself.
Fields = Inexact[Array, "..."]


def relative_l2(prediction: Fields, target: Fields) -> PerExample:
    r"""Relative error in the discrete L2 norm over grid and channels, ||p - t|| / ||t||.

    Args:
      prediction: ``[batch, *grid, channel]``, real or complex.
      target: the same shape. An example whose target is zero everywhere has no relative error; the
        absolute one divided by the smallest positive number is returned.

    Returns:
      ``[batch]``. The gradient at ``prediction == target`` is zero, not NaN.
    """
    _check_shapes(prediction, target)
    return relative(l2_norm(prediction - target), l2_norm(target))


def relative_h1(
    prediction: Fields,
    target: Fields,
    *,
    centrings: Sequence[grid.Centring],
    extent: Sequence[float] | None = None,
) -> PerExample:
    """Relative error in the H1 norm, ||v||² + ||∇v||², by second-order differences."""
    _check_shapes(prediction, target)
    shape = target.shape[1:-1]
    steps = grid.spacing(extent or (1.0,) * len(shape), shape, centrings)

    def norm(field: Fields) -> PerExample:
        gradient = [grid.derivative(field, axis + 1, step) for axis, step in enumerate(steps)]
        return l2_norm(jnp.stack([field, *gradient], axis=-1))

    return relative(norm(prediction - target), norm(target))


def relative_l2_central_half(
    prediction: Fields, target: Fields, *, axes: Sequence[int] | None = None
) -> PerExample:
    """Relative L2 error on the central half of the grid on each of `axes` (all by default).

    The paper's authors score windows of a larger flow this way, since a model cannot know what
    enters through the window's boundary. It is smaller than the error on the whole grid: report it
    under its own name.
    """
    _check_shapes(prediction, target)
    return relative_l2(*(central_half(field, axes=axes) for field in (prediction, target)))


def central_half(field: Fields, *, axes: Sequence[int] | None = None) -> Fields:
    """A field without a quarter of the grid's points at either end of `axes` (all by default)."""
    window = [slice(None)] * field.ndim
    for axis in range(field.ndim - 2) if axes is None else axes:
        points = field.shape[axis + 1]
        window[axis + 1] = slice(points // 4, points - points // 4)
    return field[tuple(window)]


def _check_shapes(prediction: Array, target: Array) -> None:
    if prediction.shape != target.shape or target.ndim < 3:
        raise ValueError(
            "prediction and target must have the same shape [batch, *grid, channel], "
            f"got {prediction.shape} and {target.shape}"
        )
    if 0 in target.shape[1:]:
        raise ValueError(f"prediction and target must hold at least one point, got {target.shape}")
    for name, field in (("prediction", prediction), ("target", target)):
        checks.native(name, field)
        # Unsigned integers would wrap around in the difference.
        if not jnp.issubdtype(field.dtype, jnp.inexact):
            raise ValueError(f"{name} must be floating point or complex, got {field.dtype}")
