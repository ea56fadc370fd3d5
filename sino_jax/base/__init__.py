"""Base solutions: fields that take the boundary data exactly and cost next to nothing."""

from sino_jax.base.elements import apply_mass
from sino_jax.base.heat import heat
from sino_jax.base.in_time import extrapolation
from sino_jax.base.solutions import coons, harmonic, helmholtz, poisson, square_cells

__all__ = [
    "apply_mass",
    "coons",
    "extrapolation",
    "harmonic",
    "heat",
    "helmholtz",
    "poisson",
    "square_cells",
]
