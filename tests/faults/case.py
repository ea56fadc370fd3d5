"""What a case of ``python -m tests.faults`` is, and what the files of cases share."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

NAN = float("nan")


class Case(NamedTuple):
    """What is tried.

    Attributes:
      group, what: its name.
      call: tries it.
      says: regular expression that a refusal must match: the argument, and what came.
      right: a test of the result; None if the case must be refused.
    """

    group: str
    what: str
    call: Callable[[], Any]
    says: str = ""
    right: Callable[[Any], bool] | None = None


def use(*names: str) -> Any:
    """The first of these modules that there is: names differ between releases."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(f"none of {names}")


def is_nan(result: Any) -> bool:
    return all(bool(np.isnan(leaf).all()) for leaf in jax.tree.leaves(result))


def near(value: float) -> Callable[[Any], bool]:
    return lambda result: bool(np.allclose(np.asarray(result, float), value, rtol=1e-2))
