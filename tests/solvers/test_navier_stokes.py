"""Navier-Stokes: exact flows, other solvers, balances, and consistency of windows."""

import functools

import exponax
import jax
import jax.numpy as jnp
import jax_cfd.base.grids
import jax_cfd.spectral.equations
import jax_cfd.spectral.time_stepping
import numpy as np
import pytest

from sino_jax import equations, grid, subdomain
from solvers import fourier, navier_stokes, time_stepping

SIDE = 2 * np.pi  # of the square on which the flows below have simple wave numbers


def coordinates(nx, ny):
    axes = (2 * np.pi * np.arange(n) / n for n in (nx, ny))
    return (jnp.asarray(c) for c in np.meshgrid(*axes, indexing="ij"))


def solve(*arguments, **options):
    return navier_stokes.solve(*arguments, side=SIDE, **options)


def relative_error(vorticity, exact):
    return float(jnp.linalg.norm(vorticity - exact) / jnp.linalg.norm(exact))


@functools.cache
def developed_flow(n):
    """Turbulence of unit vorticity at Re = 200 on side 2π, after a burn-in; n² points do for it."""
    start = navier_stokes.sample_initial(jax.random.key(0), n)
    return solve(start / jnp.sqrt((start**2).mean()), 200.0, [4.0])[0]


@pytest.mark.parametrize(("nx", "ny"), [(32, 32), (27, 40)])
def test_taylor_green_vortices_decay(nx, ny, x64):
    x, y = coordinates(nx, ny)
    vortices = 2 * jnp.cos(3 * x) * jnp.cos(2 * y)
    frames = solve(vortices, 100.0, [0.0, 1.0, 5.0])
    for t, frame in zip([0.0, 1.0, 5.0], frames, strict=True):
        assert relative_error(frame, vortices * np.exp(-13 * t / 100)) < 1e-12


def test_kolmogorov_flow_approaches_its_laminar_state(x64):
    n, re, k = 24, 10.0, 4
    forcing = navier_stokes.kolmogorov_forcing((n, n), wave_number=k, side=SIDE)
    frames = solve(jnp.zeros((n, n)), re, [0.3, 20.0], forcing=forcing)
    for t, frame in zip([0.3, 20.0], frames, strict=True):
        exact = forcing * re / k**2 * (1 - np.exp(-(k**2) * t / re))
        np.testing.assert_allclose(frame, exact, rtol=1e-11, atol=1e-12)


def test_velocity_has_the_vorticity_and_no_divergence(x64):
    x, y = coordinates(24, 30)
    # ψ = sin(x + 2y) + cos(3x) gives u = ∂_y ψ, v = -∂_x ψ, ω = -Δψ.
    vorticity = 5 * jnp.sin(x + 2 * y) + 9 * jnp.cos(3 * x)
    u, v = jnp.moveaxis(navier_stokes.velocity(vorticity, side=SIDE), -1, 0)
    np.testing.assert_allclose(u, 2 * jnp.cos(x + 2 * y), atol=1e-13)
    np.testing.assert_allclose(v, -jnp.cos(x + 2 * y) + 3 * jnp.sin(3 * x), atol=1e-13)


def exponax_solution(vorticity, re, t, steps):
    """Exponax's stream function has the opposite sign: it advances -ω."""
    stepper = exponax.stepper.NavierStokesVorticity(
        2, 2 * np.pi, len(vorticity), t / steps, diffusivity=1 / re, order=4
    )
    return -jax.lax.fori_loop(0, steps, lambda _, w: stepper(w), -vorticity[None])[0]


def jax_cfd_solution(vorticity, re, t, steps):
    box = jax_cfd.base.grids.Grid(vorticity.shape, domain=((0, 2 * np.pi),) * 2)
    equation = jax_cfd.spectral.equations.NavierStokes2D(1 / re, box, smooth=True)
    step_fn = jax_cfd.spectral.time_stepping.crank_nicolson_rk4(equation, t / steps)
    final = jax.lax.fori_loop(0, steps, lambda _, w: step_fn(w), jnp.fft.rfft2(vorticity))
    return jnp.fft.irfft2(final)


@pytest.mark.parametrize("peer", [exponax_solution, jax_cfd_solution])
def test_agrees_with_other_solvers_over_a_turnover_time(peer, x64):
    flow, re, turnover = developed_flow(96), 200.0, 6.0
    ours = solve(flow, re, [turnover])[0]
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        theirs = jax.jit(peer, static_argnums=(1, 2, 3))(flow, re, turnover, 600)
    assert relative_error(ours, theirs) < 1e-4


@pytest.mark.parametrize("order", [2, 4])
def test_converges_in_time_with_the_order_of_the_method(order, x64):
    flow = developed_flow(64)
    coarse, middle, fine = (
        solve(flow, 200.0, [1.0], order=order, cfl=cfl)[0] for cfl in (1.2, 0.6, 0.3)
    )
    rate = np.log2(relative_error(coarse, middle) / relative_error(middle, fine))
    assert rate > order - 0.25


def energy_and_enstrophy(vorticity):
    energy = (navier_stokes.velocity(vorticity, side=SIDE) ** 2).sum(-1).mean() / 2
    return float(energy), float((vorticity**2).mean() / 2)


def palinstrophy(vorticity):
    kx, ky = fourier.wave_numbers(vorticity.shape, vorticity.dtype)
    modes = fourier.to_modes(vorticity)
    gradient = [fourier.to_grid(fourier.differentiate(k, modes), vorticity.shape) for k in (kx, ky)]
    return float(sum((g**2).mean() for g in gradient) / 2)


def test_energy_and_enstrophy_balance(x64):
    """dE/dt = -2ν Z and dZ/dt = -2ν P: only viscosity dissipates, advection conserves both."""
    re, dt = 200.0, 0.01
    frames = solve(developed_flow(64), re, [1.0 - dt, 1.0, 1.0 + dt], cfl=0.5)
    (e0, z0), (_, z1), (e2, z2) = (energy_and_enstrophy(w) for w in frames)
    np.testing.assert_allclose((e2 - e0) / (2 * dt), -2 / re * z1, rtol=1e-5)
    np.testing.assert_allclose((z2 - z0) / (2 * dt), -2 / re * palinstrophy(frames[1]), rtol=1e-5)


def test_inviscid_flow_conserves_energy_and_enstrophy(x64):
    # At 1/Re = 1e-12 only advection is left; on 4/9 of the modes it conserves both exactly.
    w0 = navier_stokes.sample_initial(jax.random.key(1), 48) / 25
    w0, w1 = solve(w0, 1e12, [0.0, 2.0], cfl=0.3)
    np.testing.assert_allclose(energy_and_enstrophy(w1), energy_and_enstrophy(w0), rtol=1e-6)


def test_precision_and_transformations(x64):
    flow, times = developed_flow(32).astype(jnp.float32), (0.1, 0.2)
    single = solve(flow, 200.0, times)
    double = solve(flow.astype(jnp.float64), 200.0, times)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, atol=1e-5)
    batched = jax.jit(jax.vmap(lambda w: solve(w, 200.0, times)))(
        jnp.stack([double[0], flow.astype(jnp.float64)])
    )
    np.testing.assert_allclose(batched[1], double, atol=1e-12)


def test_vorticity_windows_are_solutions_of_the_rescaled_equation(x64):
    """Simulated on the whole square, cropped and rescaled: the residual falls with h²."""
    equation, residuals = equations.get("navier_stokes"), []
    for refinement in (1, 2):
        n, dt = 96 * refinement, 0.04 / refinement
        frames = solve(smooth_flow(n), 50.0, dt * np.arange(11))
        window = jnp.moveaxis(navier_stokes.vorticity_window(frames), 0, -1)
        velocity = navier_stokes.velocity_window(frames, side=SIDE)
        size, start = (24 * refinement,) * 2, jnp.array([10, 16]) * refinement
        crop = subdomain.restrict(
            equation, window[..., :10], window[..., 10:], jnp.asarray(50.0), start=start, size=size
        )
        ratio = equation.ratio(size, window.shape[:2])
        residual = equation.residual(
            crop.coefficient,
            crop.solution,
            crop.scale,
            velocity=grid.crop(velocity, start, size) / ratio,
            time_step=dt,
            extent=(np.pi, np.pi),
        )
        residuals.append(float(jnp.sqrt((residual**2).mean())))
    assert np.log2(residuals[0] / residuals[1]) > 1.75, residuals


def test_velocity_windows_are_solutions_of_the_rescaled_equation(x64):
    equation, residuals = equations.get("navier_stokes_spacetime"), []
    for refinement in (1, 2):
        n, dt = 96 * refinement, 0.04 / refinement
        frames = solve(smooth_flow(n), 50.0, dt * np.arange(20 * refinement + 1))
        field = navier_stokes.velocity_window(frames, side=SIDE)
        shape = field.shape[:3]
        extent = tuple(
            h * (m - 1) for h, m in zip((2 * np.pi / n,) * 2 + (dt,), shape, strict=True)
        )
        size = (24 * refinement + 1, 20 * refinement + 1, 8 * refinement + 1)
        start = jnp.array([10, 16, 5]) * refinement
        crop = subdomain.restrict(equation, None, field, jnp.asarray(50.0), start=start, size=size)
        # Space in units of the crop's width, time in units of its length: û is (μ/λ) u there.
        sides = grid.side_ratios(size, shape, equation.centrings)
        width = np.sqrt(sides[0] * sides[1])
        rescaled = (extent[0] * sides[0] / width, extent[1] * sides[1] / width, extent[2])
        residual = equation.residual(None, crop.solution, crop.scale, extent=rescaled)
        residuals.append(float(jnp.sqrt((residual**2).mean())))
    assert np.log2(residuals[0] / residuals[1]) > 1.75, residuals


def smooth_flow(n):
    x, y = coordinates(n, n)
    return jnp.sin(x + y) + jnp.cos(2 * x - y) + jnp.sin(2 * y + 1)


def test_prior_has_unit_size_and_one_function_for_all_grids():
    keys = jax.random.split(jax.random.key(2), 50)
    draw = lambda n: jax.vmap(lambda key: navier_stokes.sample_initial(key, n))(keys)  # noqa: E731
    fine = draw(64)
    np.testing.assert_allclose(fine[:, ::2, ::2], draw(32), atol=1e-5)
    speed = (jax.vmap(navier_stokes.velocity)(fine) ** 2).sum(-1)
    np.testing.assert_allclose(speed.mean(), 1, rtol=0.1)
    np.testing.assert_allclose(fine.mean(axis=(1, 2)), 0, atol=1e-6)


ZERO = jnp.zeros((16, 16))


@pytest.mark.parametrize(
    ("vorticity", "re", "times", "message"),
    [
        (ZERO + jnp.nan, 10.0, [1.0], "vorticity must be finite, got 256 of 256"),
        (ZERO + 1, 10.0, [1.0], "vorticity must have mean zero .* got mean 1"),
        (ZERO[:3], 10.0, [1.0], "vorticity needs at least 4 points"),
        (ZERO, 0.0, [1.0], r"reynolds must be a positive, finite number, got 0\.0"),
        (ZERO, 10.0, [1.0, 1.0], "times must be finite, start at 0 or later and increase"),
        (ZERO.at[0].set(1e9).at[1].set(-1e9), 10.0, [1.0], "times must be closer .* CFL"),
    ],
)
def test_bad_input(vorticity, re, times, message):
    with pytest.raises(ValueError, match=message):
        navier_stokes.solve(vorticity, re, times)


def test_one_flow_on_squares_of_two_sizes(x64):
    """x' = L x, u' = L u, ν' = L² ν at the same times and the same vorticity."""
    w0 = navier_stokes.sample_initial(jax.random.key(3), 32)
    unit, larger = (
        navier_stokes.solve(w0, 400.0 / side**2, [0.3], side=side) for side in (1.0, 3.0)
    )
    np.testing.assert_allclose(unit, larger, rtol=1e-9, atol=1e-9)
    speeds = (navier_stokes.velocity(w0, side=side) for side in (1.0, 3.0))
    np.testing.assert_allclose(3 * next(speeds), next(speeds), rtol=1e-9, atol=1e-9)


def test_forcing_must_have_the_shape_of_the_vorticity():
    with pytest.raises(ValueError, match=r"forcing must have .* \(16, 16\) .*, got \(8, 8\)"):
        navier_stokes.solve(ZERO, 10.0, [1.0], forcing=jnp.zeros((8, 8)))


def test_blow_up_is_reported_with_its_time(x64):
    with pytest.raises(time_stepping.BlowUpError) as error:
        solve(100 * developed_flow(32), 1e6, [0.1, 5.0], order=2, cfl=20.0)
    assert 0 < error.value.time <= 5
