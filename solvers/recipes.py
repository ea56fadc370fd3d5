"""From the settings of a data set to the function that makes one sample of it.

A recipe is pure: one key, one sample, in float64; `solvers.generate` maps it over keys. Besides the
fields that are stored it gives measures of quality, each small for a good sample:

    residual   elliptic: how well the discrete equations are fulfilled, relative; evolution: how far
               the last frame moves when it is computed again from the one before with half the step
    growth     the largest modulus of the solution over that of the data that determines it; at most
               one by the maximum principle for Darcy, Burgers, and the vorticity
    tail       the share of energy (enstrophy) in the highest quarter of the wave numbers, at its
               worst over time: what the grid does not resolve ends up there
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from solvers import burgers, darcy, elliptic, fourier, helmholtz, navier_stokes, q1


class Sampled(NamedTuple):
    """One sample: its fields ``[*grid, channel]`` by name, and its measures of quality."""

    fields: dict[str, Array]
    measures: dict[str, Float[Array, ""]]


class Recipe(NamedTuple):
    """How to make a sample, and what it is.

    Attributes:
      sample: from a key to a sample.
      grid: axes, shape, centrings and extent of a sample or frame. In units of the extent the
        equation holds with the scale as it stands.
      window: how examples are cut from a trajectory (see `sino_jax.data.Window`), else None.
      units: what the numbers mean, in words.
      work: grid points that the solver handles for one sample.
    """

    sample: Callable[[PRNGKeyArray], Sampled]
    grid: dict[str, Any]
    window: dict[str, Any] | None
    units: dict[str, str]
    work: int


def get(settings: Mapping[str, Any]) -> Recipe:
    """The recipe of the data set with these settings (see `solvers.generate.data_sets`)."""
    return RECIPES[settings["equation"]](settings)


def _darcy(settings: Mapping[str, Any]) -> Recipe:
    points, scale = settings["points"], float(settings["scale"])

    def sample(key: PRNGKeyArray) -> Sampled:
        instance = darcy.sample(key, points, scale)
        return _elliptic_sample(instance, q1.Operator(instance.coefficient))

    units = {
        "scale": "a label: the coefficient has the length σ = 4 / scale",
        "coefficient": "permeability, 2 or 12",
        "solution": "pressure",
    }
    return Recipe(sample, _unit_square(points), None, units, points**2)


def _helmholtz(settings: Mapping[str, Any]) -> Recipe:
    points, wave_number = settings["points"], float(settings["scale"])

    def sample(key: PRNGKeyArray) -> Sampled:
        instance = helmholtz.sample(key, points, wave_number)
        operator = q1.Operator(instance.coefficient, shift=instance.scale**2)
        return _elliptic_sample(instance, operator)

    units = {
        "scale": "wave number k",
        "coefficient": "squared wave speed",
        "solution": "complex amplitude",
    }
    return Recipe(sample, _unit_square(points), None, units, points**2)


def _unit_square(points: int) -> dict[str, Any]:
    return {
        "axes": ["x", "y"],
        "shape": [points, points],
        "centrings": ["node", "node"],
        "extent": [1.0, 1.0],
    }


def _elliptic_sample(instance: elliptic.Instance, operator: q1.Operator) -> Sampled:
    """Coefficient and solution; the boundary data is the trace of the solution."""
    fields = {name: getattr(instance, name)[..., None] for name in ("coefficient", "solution")}
    solution = instance.solution
    measures = {
        "residual": elliptic.residual(operator, solution, jnp.zeros_like(solution)),
        "growth": jnp.abs(solution).max() / jnp.abs(instance.boundary).max(),
    }
    return Sampled(fields, measures)


def _burgers(settings: Mapping[str, Any]) -> Recipe:
    points, thin, reynolds = settings["points"], settings["thin"], float(settings["scale"])
    times = burgers_times(settings)
    dt = times[1] - times[0]

    def sample(key: PRNGKeyArray) -> Sampled:
        initial = burgers.sample_initial(key, points, law=settings["initial_law"])
        frames = burgers.simulate(initial, 1 / reynolds, times).frames
        again = burgers.simulate(frames[-2], 1 / reynolds, _halves(dt), cfl=0.5).frames
        solution = burgers.window(frames)[:, ::thin, None]
        return Sampled({"solution": solution}, _evolution_measures(initial, frames, again))

    seen = len(range(0, points // 2, 2 * thin))
    grid = {
        "axes": ["t", "x"],
        "shape": [len(times), seen],
        "centrings": ["node", "node"],
        "extent": [times[-1] - times[0], 2 * thin * (seen - 1) / points],
    }
    units = {
        "scale": "Re = 1/ν",
        "x": "the periodic interval has length 1; its left half is seen",
        "t": f"frames from {times[0]:g} to {times[-1]:g}",
        "solution": "velocity; the first row is the initial condition of the window",
    }
    return Recipe(sample, grid, None, units, points * len(times))


def burgers_times(settings: Mapping[str, Any]) -> np.ndarray:
    """The times of the frames, at equal distances up to the end."""
    first = 0.0 if settings["from_zero"] else settings["end_time"] / settings["frames"]
    return np.linspace(first, settings["end_time"], settings["frames"])


def _navier_stokes(settings: Mapping[str, Any]) -> Recipe:
    points = settings["points"]

    def sample(key: PRNGKeyArray) -> Sampled:
        frames, measures = turbulence(key, settings)
        return Sampled({"trajectory": navier_stokes.vorticity_window(frames)[..., None]}, measures)

    grid = {
        "axes": ["x", "y"],
        "shape": [points // 2] * 2,
        "centrings": ["cell", "cell"],
        "extent": [(points // 2) / points] * 2,
    }
    units = {**_TURBULENCE_UNITS, "trajectory": "vorticity"}
    return Recipe(sample, grid, _window(settings, "channel"), units, points**2 * settings["frames"])


def _navier_stokes_spacetime(settings: Mapping[str, Any]) -> Recipe:
    points = settings["points"]

    def sample(key: PRNGKeyArray) -> Sampled:
        frames, measures = turbulence(key, settings)
        velocity = jnp.moveaxis(navier_stokes.velocity_window(frames), 2, 0)
        return Sampled({"trajectory": velocity}, measures)

    grid = {
        "axes": ["x", "y"],
        "shape": [points // 2] * 2,
        "centrings": ["node", "node"],
        "extent": [(points // 2 - 1) / points] * 2,
    }
    units = {**_TURBULENCE_UNITS, "trajectory": "velocity (u, v) in x and y direction"}
    return Recipe(sample, grid, _window(settings, "axis"), units, points**2 * settings["frames"])


def _kolmogorov(settings: Mapping[str, Any]) -> Recipe:
    """Vorticity on the whole periodic square: Kolmogorov flow, or decaying turbulence."""
    points, seen = settings["points"], settings["seen"]
    forced = settings["forcing"] == "kolmogorov"
    side = 2 * np.pi if forced else 1.0

    def sample(key: PRNGKeyArray) -> Sampled:
        physics = {"side": side}
        if forced:
            k = settings["forcing_wave_number"]
            force = navier_stokes.kolmogorov_forcing((points, points), wave_number=k, side=side)
            physics |= {"forcing": force, "drag": settings["drag"]}
        frames, measures = turbulence(key, settings, **physics)
        restricted = jax.vmap(lambda frame: fourier.restrict(frame, seen))(frames)
        return Sampled({"trajectory": restricted[..., None]}, measures)

    grid = {
        "axes": ["x", "y"],
        "shape": [seen] * 2,
        "centrings": ["cell", "cell"],
        "extent": [side] * 2,
    }
    units = {
        "scale": "Re = 1/ν",
        "x, y": f"the periodic square of side {'2π' if forced else '1'}, all of it",
        "t": "the force sin(k y) has amplitude 1" if forced else _TURBULENCE_UNITS["t"],
        "trajectory": f"vorticity, its wave numbers below {seen / 2:g}",
    }
    return Recipe(sample, grid, _window(settings, "channel"), units, points**2 * settings["frames"])


_TURBULENCE_UNITS = {
    "scale": "Re = 1/ν",
    "x, y": "the periodic square has side 1; a quarter of it is seen",
    "t": "unit velocity, the root mean square at the beginning, crosses the square in one unit",
}


def turbulence(
    key: PRNGKeyArray, settings: Mapping[str, Any], **physics: Any
) -> tuple[Float[Array, "time x y"], dict[str, Float[Array, ""]]]:
    """Vorticity frames on the whole square after the burn-in, and their measures.

    The initial velocity has root mean square 1; `physics` are `side`, `forcing` and `drag` of
    `navier_stokes.simulate`.
    """
    # Not `float`: it may be traced, so that one program serves several scales.
    reynolds, dt = 1.0 * settings["scale"], settings["dt"]
    times = settings["burn_in"] + dt * np.arange(settings["frames"])
    initial = navier_stokes.sample_initial(key, settings["points"]) / physics.get("side", 1.0)
    frames = navier_stokes.simulate(initial, reynolds, times, cfl=settings["cfl"], **physics).frames
    again = navier_stokes.simulate(frames[-2], reynolds, _halves(dt), cfl=0.5, **physics).frames
    return frames, _evolution_measures(initial, frames, again)


def _window(settings: Mapping[str, Any], frames: str) -> dict[str, Any]:
    return {name: settings[name] for name in ("history", "horizon", "stride", "dt")} | {
        "frames": frames
    }


def _halves(dt: float) -> list[float]:
    """Times at which an interval must be stopped at so that no step can be as long as it is."""
    return [dt / 2, dt]


def _evolution_measures(
    initial: Float[Array, "*grid"],
    frames: Float[Array, "time *grid"],
    again: Float[Array, "2 *grid"],
) -> dict[str, Float[Array, ""]]:
    last = frames[-1]
    return {
        "residual": jnp.linalg.norm(again[-1] - last) / jnp.linalg.norm(last),
        "growth": jnp.abs(frames).max() / jnp.abs(initial).max(),
        "tail": jax.lax.map(tail, frames).max(),
    }


def tail(frame: Float[Array, "*grid"]) -> Float[Array, ""]:
    """Share of the mean square in modes whose wave number on some axis is in the top quarter."""
    modes = fourier.to_modes(frame)
    high = jnp.zeros(modes.shape, bool)
    for k, points in zip(fourier.wave_numbers(frame.shape, frame.dtype), frame.shape, strict=True):
        high |= jnp.broadcast_to(jnp.abs(k) > 0.75 * fourier.cutoff(points), modes.shape)
    # Modes with ky > 0 stand for their conjugates, too.
    weight = jnp.full(modes.shape, 2.0, frame.dtype).at[..., 0].set(1)
    energy = weight * jnp.abs(modes) ** 2
    return jnp.where(high, energy, 0).sum() / energy.sum()


RECIPES = {
    "darcy": _darcy,
    "helmholtz": _helmholtz,
    "burgers": _burgers,
    "navier_stokes": _navier_stokes,
    "navier_stokes_spacetime": _navier_stokes_spacetime,
    "kolmogorov": _kolmogorov,
}
