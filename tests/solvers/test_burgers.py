"""Burgers: Cole-Hopf, orders, resolved shocks, symmetries, and consistency of windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations, subdomain
from solvers import burgers, fourier, time_stepping


def sine(n):
    return jnp.sin(2 * jnp.pi * jnp.linspace(0, 1, n, endpoint=False))


def cole_hopf(x, t, nu):
    """The solution from sin(2πx) on the line, by the trapezoidal rule, which is spectral here.

    u = ∫ (x - y)/t e^(-G) dy / ∫ e^(-G) dy,  G = ((x - y)²/2t + U(y)) / 2ν,  U' = u(·, 0)
    """
    y = np.linspace(-1, 2, 30_001)
    exponent = ((x[:, None] - y) ** 2 / (2 * t) - np.cos(2 * np.pi * y) / (2 * np.pi)) / (2 * nu)
    weights = np.exp(exponent.min(axis=1, keepdims=True) - exponent)
    return ((x[:, None] - y) / t * weights).sum(axis=1) / weights.sum(axis=1)


def relative_error(u, exact):
    return float(np.linalg.norm(u - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize(("nu", "n"), [(1 / 100, 512), (1 / 1000, 2048)])
def test_agrees_with_cole_hopf(nu, n, x64):
    times = [0.25, 1.0]  # the shock forms at t = 0.16, and is steepest at 0.25
    frames = burgers.solve(sine(n), nu, times)
    points = np.arange(0, n, n // 128)
    for t, frame in zip(times, frames, strict=True):
        assert relative_error(frame[points], cole_hopf(points / n, t, nu)) < 1e-6


@pytest.mark.parametrize("order", [2, 4])
def test_converges_in_time_with_the_order_of_the_method(order, x64):
    n, nu = 256, 1 / 100
    exact = cole_hopf(np.arange(n) / n, 0.5, nu)
    solve = lambda cfl: burgers.solve(sine(n), nu, [0.5], order=order, cfl=cfl)[0]  # noqa: E731
    errors = [relative_error(solve(cfl), exact) for cfl in (1.0, 0.5, 0.25)]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates[-1] > order - 0.25, f"errors {errors}, rates {rates}"


@pytest.mark.parametrize(
    ("nu", "n", "level"),
    [
        (1 / 100, 512, 1e-12),
        (1 / 1000, 4096, 1e-12),
        pytest.param(1 / 1000, 8192, 1e-14, marks=pytest.mark.slow),
    ],
)
def test_shocks_are_resolved(nu, n, level, x64):
    """The spectrum of a jump of 2 falls like exp(-2π² ν k), to round-off if there are points."""
    frame = burgers.solve(sine(n), nu, [0.25], cfl=2.0)[0]
    spectrum = np.abs(np.fft.rfft(frame))
    tail = spectrum[fourier.cutoff(n) - 8 : fourier.cutoff(n) + 1]
    assert tail.max() < level * spectrum.max()


def test_mean_is_kept_and_energy_falls(x64):
    u0 = 0.3 + burgers.sample_initial(jax.random.key(0), 256)
    frames = burgers.solve(u0, 1 / 100, np.linspace(0, 1, 11))
    np.testing.assert_allclose(frames.mean(axis=-1), 0.3, rtol=1e-13)
    assert (np.diff((frames**2).mean(axis=-1)) < 0).all()


def test_a_moving_observer_sees_the_same_flow(x64):
    u0 = burgers.sample_initial(jax.random.key(1), 256)
    still, moving = (burgers.solve(u, 1 / 100, [0.5])[0] for u in (u0, u0 + 1))
    # After half a unit of time at speed one the flow has moved by half the interval.
    np.testing.assert_allclose(jnp.roll(still, 128) + 1, moving, atol=1e-7)


def test_precision_odd_sizes_and_transformations(x64):
    u0, times = burgers.sample_initial(jax.random.key(2), 255, dtype=jnp.float32), (0.0, 0.3)
    single = burgers.solve(u0, 1 / 100, times)
    double = burgers.solve(u0.astype(jnp.float64), 1 / 100, times)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single[0], u0, atol=2e-5)
    np.testing.assert_allclose(single, double, atol=2e-5)
    jitted = jax.jit(jax.vmap(lambda u, nu: burgers.solve(u, nu, times)))
    batched = jitted(jnp.stack([double[0], -double[0]]), jnp.array([0.01, 0.02]))
    np.testing.assert_allclose(batched[0], double, atol=1e-12)


@pytest.mark.parametrize("start", [(0, 0), (20, 10)])
def test_windows_are_solutions_of_the_rescaled_equation(start, x64):
    """Simulated on the whole interval, cropped and rescaled: the residual falls with h²."""
    burgers_equation = equations.get("burgers")
    residuals = []
    for refinement in (1, 2):
        n, frames = 512 * refinement, 100 * refinement + 1
        u0 = sine(n) + jnp.roll(sine(n), n // 10) ** 2
        field = burgers.window(burgers.solve(u0, 1 / 50, np.linspace(0, 0.5, frames)))[..., None]
        extent = (0.5, 2 * (field.shape[1] - 1) / n)
        size = (40 * refinement + 1, 50 * refinement + 1)
        corner = jnp.array(start) * refinement
        crop = subdomain.restrict(
            burgers_equation, None, field, jnp.asarray(50.0), start=corner, size=size
        )
        # Each axis in units of the crop's own side: û is (μ/λ) u there.
        residual = burgers_equation.residual(None, crop.solution, crop.scale, extent=extent)
        residuals.append(float(jnp.sqrt((residual**2).mean())))
    rates = np.log2(np.array(residuals[:-1]) / residuals[1:])
    assert rates[-1] > 1.75, f"residuals {residuals}, rates {rates}"


def test_window_is_the_left_half_at_every_second_point():
    frames = jnp.arange(3 * 16, dtype=jnp.float32).reshape(3, 16)
    np.testing.assert_array_equal(burgers.window(frames), frames[:, [0, 2, 4, 6]])


@pytest.mark.parametrize(
    ("law", "deviation_fn"),
    [
        ("mild", lambda k: 49 * ((2 * np.pi * k) ** 2 + 49) ** -1.25),
        ("strong", lambda k: 25 / ((2 * np.pi * k) ** 2 + 25)),
    ],
)
def test_prior_has_the_stated_spectrum_and_no_mean(law, deviation_fn):
    keys = jax.random.split(jax.random.key(4), 4000)
    u0 = jax.vmap(lambda key: burgers.sample_initial(key, 256, law=law))(keys)
    modes = np.abs(np.fft.rfft(u0, axis=1) / 256)[:, 1:33]
    deviation = deviation_fn(np.arange(1, 33))
    np.testing.assert_allclose(np.sqrt((modes**2).mean(axis=0)), deviation, rtol=0.06)
    np.testing.assert_allclose(u0.mean(axis=1), 0, atol=1e-5)
    with pytest.raises(ValueError, match="law must be one of .*'mild', 'strong'.* got 'wild'"):
        burgers.sample_initial(keys[0], 16, law="wild")


@pytest.mark.parametrize(
    ("u0", "nu", "times", "message"),
    [
        (jnp.full(16, jnp.nan), 0.01, [1.0], "u0 must be finite, got 16 of 16"),
        (jnp.ones(3), 0.01, [1.0], "u0 needs at least 4 points"),
        (jnp.ones(16), -0.01, [1.0], "nu must be a positive, finite number, got -0.01"),
        (jnp.ones(16), 0.01, [0.5, 0.4], "times must be finite, start at 0 or later and increase"),
        (1e8 * jnp.ones(16), 0.01, [0.0, 1.0], "times must be closer .* CFL"),
    ],
)
def test_bad_input(u0, nu, times, message):
    with pytest.raises(ValueError, match=message):
        burgers.solve(u0, nu, times)


def test_blow_up_is_reported_with_its_time(x64):
    with pytest.raises(time_stepping.BlowUpError) as error:
        burgers.solve(sine(64), 1e-6, [0.1, 5.0], order=2, cfl=20.0)
    assert 0 < error.value.time <= 5
