"""The equations of the package, by name.

`get` takes an `Equation` as well and returns it, so that every function of the package that has an
``equation`` argument works with equations of your own.
"""

from sino_jax.equations.check import LawCheck, check
from sino_jax.equations.equation import Axis, Equation, power_law
from sino_jax.equations.registry import NAMES, get

__all__ = ["NAMES", "Axis", "Equation", "LawCheck", "check", "get", "power_law"]
