"""The scales that an operator was trained on, and a warning for problems outside of them."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

# Scales of data sets are stored as written, those of crops are rounded to single precision.
ROUND_OFF = 1e-5


class ScaleWarning(UserWarning):
    """A problem outside the range of scales that an operator was trained on."""


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
    known = f"the scale {low:g}" if low == high else f"the range {low:g} to {high:g}"
    return (
        f"{what} {asked} is outside {known} that the operator was trained on; its error there is "
        "unknown"
    )


def warn_outside(
    scale: Any, trained: Sequence[float], *, what: str = "scale", stacklevel: int = 2
) -> None:
    """Warns with a `ScaleWarning` if `outside` has anything to say. A traced scale passes.

    Args:
      scale, trained, what: see `outside`.
      stacklevel: as in `warnings.warn`, seen from the caller.
    """
    if isinstance(scale, jax.core.Tracer):
        return
    if sentence := outside(scale, trained, what=what):
        warnings.warn(sentence, ScaleWarning, stacklevel=stacklevel + 1)
