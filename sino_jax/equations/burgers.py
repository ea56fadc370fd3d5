"""Viscous Burgers equation on a space-time window ``[t, x]``.

    u_t + (u²/2)_x = ν u_xx,   ν = 1/Re

Initial and boundary values are traces of one field, on the sides t low, x low and x high. With
û(t, x) = u(λt, λx): û_t + (û²/2)_x = λ ν u_xx = (ν/λ) û_xx, hence Re̅ = λ Re. The parameter that the
package calls scale is Re, so that it grows with the domain as for the other equations. A box that
is μ long in time and λ wide in space has û = (μ/λ) u(μt, λx) and Re̅ = (λ²/μ) Re.
"""

from jaxtyping import Array, Float

from sino_jax import grid
from sino_jax.boundary import Side
from sino_jax.equations.equation import Axis, Equation, power_law
from sino_jax.types import Sample

TIME, SPACE = 0, 1


def burgers_residual(
    coefficient: None,
    solution: Sample,
    scale: float | Float[Array, ""],
    *,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Sample:
    """u_t + (u²/2)_x - u_xx / Re everywhere on the window; one-sided stencils at its edges."""
    del coefficient
    dt, dx = grid.spacing(extent, solution.shape[:2], BURGERS.centrings)
    rate = grid.derivative(solution, TIME, dt)
    advection = grid.derivative(solution**2 / 2, SPACE, dx)
    return rate + advection - grid.second_derivative(solution, SPACE, dx) / scale


BURGERS = Equation(
    name="burgers",
    axes=(Axis("t", "node"), Axis("x", "node")),
    sides=(Side(TIME, "low"), Side(SPACE, "low"), Side(SPACE, "high")),
    rescale=power_law(1),
    residual=burgers_residual,
    coefficient_channels=0,
    side_powers=((-1.0, 1.0), (2.0, -1.0)),
    solution_kind="vector",
    symmetries=frozenset({"reflection"}),
)
