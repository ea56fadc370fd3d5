"""The equations of the package by name."""

from sino_jax import checks
from sino_jax.equations.burgers import BURGERS
from sino_jax.equations.elliptic import DARCY, FORCED_DARCY, HELMHOLTZ
from sino_jax.equations.equation import Equation
from sino_jax.equations.kolmogorov import KOLMOGOROV
from sino_jax.equations.navier_stokes import VELOCITY, VORTICITY

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
