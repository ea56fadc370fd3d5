"""Scale-consistent learning for partial differential equations.

A solution restricted to a sub-domain is the solution of the rescaled problem on that sub-domain:
the package is pure functions around that sentence. Importing it has no side effects, and loads
nothing: ``sino_jax.loss``, ``sino_jax.models`` and the other public sub-packages are loaded when
they are first used.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = (
    "base",
    "data",
    "decomposition",
    "diagnostics",
    "equations",
    "loss",
    "models",
    "nn",
    "operator",
    "train",
    "types",
)
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return importlib.import_module(f"sino_jax.{name}")
    raise AttributeError(f"module 'sino_jax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
