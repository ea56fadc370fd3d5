"""The scales that an operator was trained on, and a warning for problems outside of them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sino_jax.equations import Equation

# A scale that was rescaled and back again is the same scale.
ROUND_OFF = 1e-5


class ScaleWarning(UserWarning):
    """A problem outside the range of scales that an operator was trained on."""


def trained_range(
    equation: Equation,
    problems: Iterable[tuple[float, Sequence[int]]],
    loss_options: Mapping[str, Any],
) -> tuple[float, float]:
    """Smallest and largest scale that training saw: of the data, its sub- and its super-domains.

    Args:
      equation: gives the scaling law.
      problems: scale and grid of every training set.
      loss_options: of `sino_jax.loss.training_loss`; `sub_sizes` and `super_rates` are read.
    """
    scales = []
    for scale, grid in problems:
        sizes = [equation.crop_size(size, grid) for size in loss_options.get("sub_sizes", ())]
        ratios = [equation.ratio(size, grid) for size in sizes]
        ratios += list(loss_options.get("super_rates", ()))
        scales += [scale, *(float(equation.rescale(scale, ratio)) for ratio in ratios)]
    return min(scales), max(scales)


def warn_outside(
    scale: Any, trained: tuple[float, float], *, what: str = "scale", stacklevel: int = 2
) -> None:
    """Warns with a `ScaleWarning` if any of the given scales is outside the trained range.

    Args:
      scale: one number or many.
      trained: smallest and largest scale, see `trained_range`.
      what: the name of `scale` in the warning.
      stacklevel: as in `warnings.warn`, seen from the caller.
    """
    values, (low, high) = np.asarray(scale), trained
    outside = values[(values < low * (1 - ROUND_OFF)) | (values > high * (1 + ROUND_OFF))]
    if outside.size:
        asked = " and ".join(f"{value:g}" for value in sorted({outside.min(), outside.max()}))
        warnings.warn(
            f"{what} {asked} is outside the range {low:g} to {high:g} that the operator was "
            "trained on; its error there is unknown",
            ScaleWarning,
            stacklevel=stacklevel + 1,
        )
