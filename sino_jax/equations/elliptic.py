"""Darcy flow and the Helmholtz equation on a rectangle with Dirichlet data.

    Darcy          -∇·(a ∇u) = 0          u = g on the boundary
    forced Darcy   -∇·(a ∇u) = f          u = g on the boundary; interior data (a, f)
    Helmholtz      -∇·(a ∇u) - k² u = f   u = g on the boundary, u complex

With û(x) = u(λx): -∇·(â ∇û) = λ² (-∇·(a ∇u))(λx), hence Darcy keeps its form, with f̂ = λ²f if it is
forced, and Helmholtz holds with k̂ = λk and f̂ = λ²f. For Darcy the scale is only a label of the
coefficient's distribution (the number of correlation lengths a side, up to a factor), which shrinks
with the domain alike.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from sino_jax import boundary, channels
from sino_jax.equations.equation import Axis, Equation, power_law
from sino_jax.types import Sample


def darcy_residual(
    coefficient: Sample,
    solution: Sample,
    scale: float | Float[Array, ""] | None = None,
    *,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Inexact[Array, "inner_x inner_y _"]:
    """-∇·(a ∇u) at the inner nodes, from fluxes between nodes. Does not depend on `scale`."""
    del scale
    nx, ny = solution.shape[:2]
    dx, dy = extent[0] / (nx - 1), extent[1] / (ny - 1)
    # A flux passes half-way between two nodes, where the coefficient is the mean of theirs.
    flux_x = (coefficient[1:] + coefficient[:-1]) / 2 * (solution[1:] - solution[:-1]) / dx
    flux_y = (
        (coefficient[:, 1:] + coefficient[:, :-1]) / 2 * (solution[:, 1:] - solution[:, :-1]) / dy
    )
    divergence_x = (flux_x[1:, 1:-1] - flux_x[:-1, 1:-1]) / dx
    divergence_y = (flux_y[1:-1, 1:] - flux_y[1:-1, :-1]) / dy
    return -divergence_x - divergence_y


def forced_darcy_residual(
    coefficient: Sample,
    solution: Sample,
    scale: float | Float[Array, ""] | None = None,
    *,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Inexact[Array, "inner_x inner_y _"]:
    """-∇·(a ∇u) - f at the inner nodes, for the channels (a, f) of `coefficient`."""
    medium, forcing = coefficient[..., :1], coefficient[..., 1:]
    return darcy_residual(medium, solution, scale, extent=extent) - forcing[1:-1, 1:-1]


def helmholtz_residual(
    coefficient: Sample,
    solution: Sample,
    scale: float | Float[Array, ""],
    *,
    extent: tuple[float, float] = (1.0, 1.0),
    forcing: Sample | None = None,
) -> Inexact[Array, "inner_x inner_y _"]:
    """-∇·(a ∇u) - k² u - f at the inner nodes, with k = `scale`."""
    solution, coefficient = channels.as_complex(solution), channels.as_complex(coefficient)
    diffusion = darcy_residual(coefficient, solution, extent=extent)
    residual = diffusion - jnp.asarray(scale, solution.dtype) ** 2 * solution[1:-1, 1:-1]
    return residual if forcing is None else residual - channels.as_complex(forcing)[1:-1, 1:-1]


NODES = (Axis("x", "node"), Axis("y", "node"))

DARCY = Equation(
    name="darcy",
    axes=NODES,
    sides=boundary.all_sides(2),
    rescale=power_law(1),
    residual=darcy_residual,
    elliptic=True,
    linear=True,
    free_constant=True,
)

# Not linear in the sense of `Equation`: without boundary values there is still the forcing.
FORCED_DARCY = Equation(
    name="darcy_forced",
    axes=NODES,
    sides=boundary.all_sides(2),
    rescale=power_law(1),
    residual=forced_darcy_residual,
    elliptic=True,
    coefficient_channels=2,
    coefficient_powers=(0, 2),
)

HELMHOLTZ = Equation(
    name="helmholtz",
    axes=NODES,
    sides=boundary.all_sides(2),
    rescale=power_law(1),
    residual=helmholtz_residual,
    elliptic=True,
    linear=True,
    complex_valued=True,
)
