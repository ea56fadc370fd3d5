"""Forced and decaying flow on the whole periodic square: exact flow, balance, steady statistics."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations
from solvers import fourier, generate, navier_stokes, recipes
from solvers.configs import kolmogorov

SIDE = 2 * np.pi
DRAG, WAVE_NUMBER = 0.1, 4


def solve(start, reynolds, times, **options):
    n = len(start)
    forcing = navier_stokes.kolmogorov_forcing((n, n), wave_number=WAVE_NUMBER, side=SIDE)
    return navier_stokes.solve(
        start, reynolds, times, forcing=forcing, drag=DRAG, side=SIDE, **options
    )


def test_flow_from_rest_approaches_its_laminar_state(x64):
    n, reynolds = 24, 5.0
    forcing = navier_stokes.kolmogorov_forcing((n, n), wave_number=WAVE_NUMBER, side=SIDE)
    rate = WAVE_NUMBER**2 / reynolds + DRAG
    for t, frame in zip([0.3, 9.0], solve(jnp.zeros((n, n)), reynolds, [0.3, 9.0]), strict=True):
        np.testing.assert_allclose(frame, forcing / rate * (1 - np.exp(-rate * t)), atol=1e-11)


def test_laminar_flow_is_stable_at_low_reynolds_numbers(x64):
    n, reynolds = 24, 1.0
    forcing = navier_stokes.kolmogorov_forcing((n, n), wave_number=WAVE_NUMBER, side=SIDE)
    laminar = forcing / (WAVE_NUMBER**2 / reynolds + DRAG)
    start = laminar + navier_stokes.sample_initial(jax.random.key(0), n) / SIDE
    before, after = solve(start, reynolds, [0.0, 12.0])
    departure = [float(jnp.linalg.norm(frame - laminar)) for frame in (before, after)]
    assert departure[1] < 1e-4 * departure[0]


def budget(vorticity):
    """Energy, enstrophy, and the power of the force, per area."""
    n = len(vorticity)
    velocity = navier_stokes.velocity(vorticity, side=SIDE)
    force = jnp.sin(WAVE_NUMBER * SIDE / n * jnp.arange(n, dtype=vorticity.dtype))
    power = (velocity[..., 0] * force[None, :]).mean()
    return float((velocity**2).sum(-1).mean() / 2), float((vorticity**2).mean() / 2), float(power)


@functools.cache
def steady_budgets():
    """Of a turbulent flow at Re = 40, one every half unit of time after the burn-in."""
    start = navier_stokes.sample_initial(jax.random.key(1), 32) / SIDE
    frames = solve(start, 40.0, 25 + 0.5 * np.arange(200), cfl=2.0)
    return np.array([budget(frame) for frame in frames])


def test_input_is_dissipation_and_rate_of_change(x64):
    reynolds, step = 40.0, 1e-3
    start = navier_stokes.sample_initial(jax.random.key(0), 32) / SIDE
    frames = solve(start, reynolds, [3 - step, 3.0, 3 + step])
    before, (energy, enstrophy, power), after = map(budget, frames)
    change = (after[0] - before[0]) / (2 * step)
    dissipation = 2 * enstrophy / reynolds + 2 * DRAG * energy
    assert power > 0.01
    np.testing.assert_allclose(power, dissipation + change, rtol=1e-5)


def test_statistics_are_steady_after_the_burn_in(x64):
    energy, enstrophy, power = steady_budgets().T
    dissipation = 2 * enstrophy / 40.0 + 2 * DRAG * energy
    # Over 100 units of time, 20 times that of the friction, input and dissipation are in balance.
    np.testing.assert_allclose(power.mean(), dissipation.mean(), rtol=0.03)
    halves = np.split(energy, 2)
    np.testing.assert_allclose(halves[0].mean(), halves[1].mean(), rtol=0.2)
    # It is not the laminar state, whose energy is 1/4 of the squared amplitude.
    laminar = (1 / (WAVE_NUMBER**2 / 40.0 + DRAG)) ** 2 / 4
    assert energy.mean() < 0.8 * laminar
    assert energy.std() > 0.02 * energy.mean()


@pytest.mark.parametrize("points", [9, 10])
def test_restriction_keeps_what_the_coarse_grid_holds_and_nothing_else(points, x64):
    n = 24
    x, y = (SIDE / n * jnp.arange(n, dtype=float) for _ in "xy")
    held = jnp.sin(4 * x)[:, None] * jnp.cos(3 * y)[None, :] + jnp.cos(y)[None, :] + 0.5
    beyond = jnp.cos(5 * x)[:, None] + jnp.sin(7 * y)[None, :]
    coarse = fourier.restrict(held + beyond, points)
    u, v = (SIDE / points * jnp.arange(points, dtype=float) for _ in "xy")
    exact = jnp.sin(4 * u)[:, None] * jnp.cos(3 * v)[None, :] + jnp.cos(v)[None, :] + 0.5
    np.testing.assert_allclose(coarse, exact, atol=1e-13)
    np.testing.assert_array_equal(fourier.restrict(held, n), held)
    with pytest.raises(ValueError, match="points must be from 4 to .* got 25"):
        fourier.restrict(held, 25)


@pytest.mark.parametrize("preset", kolmogorov.PRESETS)
def test_every_preset_describes_its_data_sets(preset):
    config = kolmogorov.get_config(preset)
    for settings in generate.data_sets(config).values():
        recipe = recipes.get(settings)
        assert recipe.grid["shape"] == [settings["seen"]] * 2
        assert settings["seen"] <= settings["points"]
        assert recipe.grid["extent"] == [1.0 if "decaying" in preset else SIDE] * 2
    assert config.name == f"kolmogorov-{preset}-{config.seen}"
    assert kolmogorov.get_config(f"{preset},name=mine").name == "mine"


@pytest.mark.parametrize("preset", ["tiny", "tiny_decaying"])
def test_resolutions_see_the_same_flow(preset, tmp_path):
    frames = {}
    for seen in (16, 32):
        config = kolmogorov.get_config(f"{preset},seen={seen}")
        settings = generate.data_sets(config)["test-20"]
        solved = generate.block_solver({**settings, "block": 1})([0])
        frames[seen] = solved.fields["trajectory"][0, -1, ..., 0]
        assert solved.measures["tail"][0] < 1e-3
    np.testing.assert_allclose(frames[16], fourier.restrict(jnp.asarray(frames[32]), 16), atol=2e-5)


def test_the_equation_holds_for_frames_of_the_solver_to_second_order(x64):
    equation, reynolds = equations.get("kolmogorov"), 40.0
    start = navier_stokes.sample_initial(jax.random.key(0), 32) / SIDE
    flow = solve(start, reynolds, [3.0])[0]
    sizes = []
    for n, dt in ((64, 0.02), (128, 0.01)):
        fine = fourier.resample(flow, (n, n))
        forcing = navier_stokes.kolmogorov_forcing((n, n), wave_number=WAVE_NUMBER, side=SIDE)
        frames = solve(fine, reynolds, [0.0, dt])
        velocity = jnp.stack([navier_stokes.velocity(f, side=SIDE) for f in frames], axis=2)
        residual = equation.residual(
            frames[0][..., None],
            frames[1][..., None],
            reynolds,
            velocity=velocity,
            time_step=dt,
            forcing=forcing,
            drag=DRAG,
            extent=(SIDE, SIDE),
        )
        sizes.append(float(jnp.abs(residual[2:-2, 2:-2]).max()))
    assert np.log2(sizes[0] / sizes[1]) > 1.75
