"""The scales that an operator was trained on, and a warning for problems outside of them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sino_jax import subdomain, superdomain
from sino_jax.equations import Equation

# Scales of data sets are stored as written, those of crops are rounded to single precision.
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
        sizes = subdomain.fitting_sizes(loss_options.get("sub_sizes", ()), grid)
        ratios = [equation.ratio(equation.crop_size(size, grid), grid) for size in sizes]
        for rate in loss_options.get("super_rates", ()):
            larger = superdomain.superdomain_shape(equation, grid, rate)
            ratios.append(1 / equation.ratio(grid, larger))
        scales += [scale, *(float(equation.rescale(scale, ratio)) for ratio in ratios)]
    return min(scales), max(scales)


def outside(scale: Any, trained: Sequence[float], *, what: str = "scale") -> str | None:
    """A sentence on those of the given scales that are outside the trained range; None if none is.

    Args:
      scale: one number or many.
      trained: scales of the training, of which the smallest and the largest count; see
        `trained_range`.
      what: the name of `scale` in the sentence.
    """
    values, low, high = np.unique(np.asarray(scale)), min(trained), max(trained)
    beyond = values[(values < low * (1 - ROUND_OFF)) | (values > high * (1 + ROUND_OFF))]
    if not beyond.size:
        return None
    asked = ", ".join(f"{value:g}" for value in beyond)
    return (
        f"{what} {asked} is outside the range {low:g} to {high:g} that the operator was trained "
        "on; its error there is unknown"
    )


def warn_outside(
    scale: Any, trained: Sequence[float], *, what: str = "scale", stacklevel: int = 2
) -> None:
    """Warns with a `ScaleWarning` if `outside` has anything to say.

    Args:
      scale, trained, what: see `outside`.
      stacklevel: as in `warnings.warn`, seen from the caller.
    """
    if sentence := outside(scale, trained, what=what):
        warnings.warn(sentence, ScaleWarning, stacklevel=stacklevel + 1)
