"""The equations of the package, by name.

`get` takes an `Equation` as well and returns it, so that every function of the package that has an
``equation`` argument works with equations of your own.
"""

from sino_jax import checks
from sino_jax.equations.burgers import BURGERS
from sino_jax.equations.check import LawCheck, check
from sino_jax.equations.elliptic import DARCY, FORCED_DARCY, HELMHOLTZ
from sino_jax.equations.equation import Axis, Equation, power_law
from sino_jax.equations.kolmogorov import KOLMOGOROV
from sino_jax.equations.navier_stokes import VELOCITY, VORTICITY

__all__ = ["NAMES", "Axis", "Equation", "LawCheck", "check", "get", "power_law"]

_EQUATIONS = {
    e.name: e for e in (DARCY, FORCED_DARCY, HELMHOLTZ, BURGERS, VORTICITY, VELOCITY, KOLMOGOROV)
}
NAMES = tuple(_EQUATIONS)


def get(equation: str | Equation) -> Equation:
    """The equation of that name; an `Equation` is returned as it is."""
    if isinstance(equation, Equation):
        return equation
    if equation not in _EQUATIONS:
        hint = checks.hint(equation, NAMES, cutoff=0.0)
        raise ValueError(f"equation must be one of {', '.join(NAMES)}, got {equation!r}{hint}")
    return _EQUATIONS[equation]
