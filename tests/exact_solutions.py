"""Closed-form solutions on grids, one for each equation, as problems that tests refine and crop.

Each function takes the points on a side and returns an `ExactProblem` sampled on that grid, in the
float precision that is enabled. `tests/sino_jax/test_equations.py` tests the closed forms, too: the
residual of each converges to zero.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from sino_jax import equations, grid


@dataclasses.dataclass(frozen=True)
class ExactProblem:
    """One solution; `residual_options` belong to the full domain."""

    equation: equations.Equation
    coefficient: Any
    solution: Any
    scale: float
    extent: tuple[float, ...]
    residual_options: dict = dataclasses.field(default_factory=dict)


def darcy_layered(points: int, *, extent: tuple[float, float] = (1.0, 1.5)) -> ExactProblem:
    """a = 1/(1 + x), u = x + x²/2 + y: the flux a ∇u = (1, a) has no divergence."""
    x, y = _coordinates("darcy", (points, points), extent)
    return ExactProblem(equations.get("darcy"), 1 / (1 + x), x + x**2 / 2 + y, 1.0, extent)


def helmholtz_plane_wave(
    points: int, *, wavenumber: float = 6.0, extent: tuple[float, float] = (1.5, 1.0)
) -> ExactProblem:
    """a = 2, u = exp(i k d·x / √2) for a unit vector d."""
    x, y = _coordinates("helmholtz", (points, points), extent)
    phase = wavenumber / jnp.sqrt(2.0) * (0.6 * x + 0.8 * y)
    return ExactProblem(
        equations.get("helmholtz"),
        jnp.full_like(x, 2.0),
        jax.lax.complex(jnp.cos(phase), jnp.sin(phase)),
        wavenumber,
        extent,
    )


def burgers_travelling_wave(points: int) -> ExactProblem:
    """u = c - A tanh(A (x - ct - s) / 2ν): a front of width ν/A that moves at speed c."""
    reynolds, speed, amplitude, extent = 20.0, 0.7, 0.8, (1.0, 1.0)
    t, x = _coordinates("burgers", (points, points), extent)
    front = amplitude * (x - speed * t - 0.3) * reynolds / 2
    return ExactProblem(
        equations.get("burgers"), None, speed - amplitude * jnp.tanh(front), reynolds, extent
    )


def taylor_green_vorticity(points: int) -> ExactProblem:
    """Taylor-Green vortices carried along by a mean flow; the window is half a period a side."""
    reynolds, extent, frames = 8.0, (jnp.pi, jnp.pi), 11
    time_step = float(extent[0] / points / 2)
    x, y = _coordinates("navier_stokes", (points, points), extent)
    t = (time_step * jnp.arange(frames, dtype=x.dtype)).reshape(1, 1, frames)
    velocity, vorticity = _taylor_green(x, y, t, reynolds)
    return ExactProblem(
        equations.get("navier_stokes"),
        vorticity[..., :-1],
        vorticity[..., -1:],
        reynolds,
        extent,
        {"velocity": velocity, "time_step": time_step},
    )


def taylor_green_velocity(points: int) -> ExactProblem:
    """The same flow on a space-time window ``[x, y, t]``; the past is the time before zero."""
    reynolds, extent = 8.0, (2.0, 2.0, 1.0)
    x, y, t = _coordinates("navier_stokes_spacetime", (points, points, points), extent)
    x, y, t = x[..., 0], y[..., 0], t[..., 0]
    past, _ = _taylor_green(x, y, t - extent[2] - t[0, 0, 1], reynolds)
    future, _ = _taylor_green(x, y, t, reynolds)
    return ExactProblem(equations.get("navier_stokes_spacetime"), past, future, reynolds, extent)


ALL = (
    darcy_layered,
    helmholtz_plane_wave,
    burgers_travelling_wave,
    taylor_green_vorticity,
    taylor_green_velocity,
)


def _taylor_green(x, y, t, reynolds):
    """Velocity ``[..., 2]`` and vorticity of ψ = e^(-2νt) cos(x - Ut) cos(y - Vt), u = ∇⊥ψ + U."""
    mean_x, mean_y = 0.5, -0.3
    x, y, t = jnp.broadcast_arrays(x, y, t)
    x, y = x - mean_x * t, y - mean_y * t
    decay = jnp.exp(-2 * t / reynolds)
    u = mean_x - decay * jnp.cos(x) * jnp.sin(y)
    v = mean_y + decay * jnp.sin(x) * jnp.cos(y)
    return jnp.stack([u, v], axis=-1), 2 * decay * jnp.cos(x) * jnp.cos(y)


def _coordinates(name, shape, extent):
    points = grid.coordinates(shape, centrings=equations.get(name).centrings, extent=extent)
    return tuple(points[..., i : i + 1] for i in range(len(shape)))
