"""Incompressible Navier-Stokes equations in two dimensions, ν = 1/Re, no forcing.

    vorticity form   ω_t + u·∇ω = ν Δω,            frames on a window ``[x, y]``
    velocity form    u_t + u·∇u = -∇p + ν Δu,      space-time window ``[x, y, t]``

Vorticity form: ω̂(x, t) = ω(λx, t) with û = u(λx, t)/λ solves the equation with ν̂ = ν/λ², hence
Re̅ = λ² Re; time is not rescaled, and neither is the amplitude of ω. Velocity form:
û(x, t) = u(λx, λt) solves it with ν̂ = ν/λ, hence Re̅ = λ Re; on a box that is λ wide in space and μ
long in time û = (μ/λ) u(λx, μt) and Re̅ = (λ²/μ) Re. Re refers to the extent that the residual is
given.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import boundary, grid
from sino_jax.equations.equation import Axis, Equation, power_law

X, Y, T = 0, 1, 2


def vorticity_residual(
    coefficient: Float[Array, "x y past"],
    solution: Float[Array, "x y future"],
    scale: float | Float[Array, ""],
    *,
    velocity: Float[Array, "x y frames 2"],
    time_step: float,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Float[Array, "x y frames"]:
    """ω_t + u·∇ω - Δω / Re for all frames, past and predicted.

    A window does not determine the velocity (its boundary is unknown to the model): it is given.
    """
    frames = jnp.concatenate([coefficient, solution], axis=-1)
    dx, dy = grid.spacing(extent, frames.shape[:2], VORTICITY.centrings)
    return _transport(frames, velocity, scale, dx, dy, time_step)


def velocity_residual(
    coefficient: Float[Array, "x y t 2"] | None,
    solution: Float[Array, "x y t 2"],
    scale: float | Float[Array, ""],
    *,
    extent: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Float[Array, "inner_x inner_y t 2"]:
    """The curl of the momentum equation, which is free of the pressure, and the divergence.

    Two derivatives of a curl need two neighbours: the residual lives on points two or more away
    from the spatial boundary, where all its spatial stencils are centred.
    """
    del coefficient
    dx, dy, dt = grid.spacing(extent, solution.shape[:3], VELOCITY.centrings)
    u, v = solution[..., 0], solution[..., 1]
    vorticity = grid.derivative(v, X, dx) - grid.derivative(u, Y, dy)
    divergence = grid.derivative(u, X, dx) + grid.derivative(v, Y, dy)
    momentum = _transport(vorticity, solution, scale, dx, dy, dt)
    return jnp.stack([momentum, divergence], axis=-1)[2:-2, 2:-2]


def _transport(
    vorticity: Float[Array, "x y t"],
    velocity: Float[Array, "x y t 2"],
    scale: float | Float[Array, ""],
    dx: float,
    dy: float,
    dt: float,
) -> Float[Array, "x y t"]:
    advection = velocity[..., 0] * grid.derivative(vorticity, X, dx)
    advection += velocity[..., 1] * grid.derivative(vorticity, Y, dy)
    laplacian = grid.second_derivative(vorticity, X, dx) + grid.second_derivative(vorticity, Y, dy)
    return grid.derivative(vorticity, T, dt) + advection - laplacian / scale


PAST_FRAMES = 10

VORTICITY = Equation(
    name="navier_stokes",
    axes=(Axis("x", "cell"), Axis("y", "cell")),
    sides=(),
    rescale=power_law(2),
    residual=vorticity_residual,
    coefficient_channels=PAST_FRAMES,
    coefficient_kind="pseudoscalar",
    solution_kind="pseudoscalar",
)

VELOCITY = Equation(
    name="navier_stokes_spacetime",
    axes=(Axis("x", "node"), Axis("y", "node"), Axis("t", "node", anchored=True)),
    sides=boundary.all_sides(2),
    rescale=power_law(1),
    residual=velocity_residual,
    coefficient_channels=2,
    side_powers=((1.0, -0.5), (1.0, -0.5), (-1.0, 1.0)),
    solution_channels=2,
    coefficient_kind="vector",
    solution_kind="vector",
)
