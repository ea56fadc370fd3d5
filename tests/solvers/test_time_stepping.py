"""Step functions by their fitted orders; trajectories by their steps, their times and failures."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import time_stepping
from solvers.time_stepping import METHODS, BlowUpError, trajectory

DECAY = np.array([0.5, 3.0, 20.0])


def logistic(t):
    """u' = -a u + a u²/2 from u = 1 has the solution 2 / (1 + e^(a t)), for stiff and mild a."""
    return 2 / (1 + np.exp(DECAY * t))


def logistic_step(method, dt):
    growth = jnp.asarray(DECAY / 2).astype(complex)
    return method(jnp.asarray(-DECAY), lambda u: growth * u**2, jnp.asarray(dt))


@pytest.mark.parametrize("order", [2, 4])
def test_methods_converge_with_their_order(order, x64):
    errors = []
    for steps in (16, 32, 64):
        step_fn = logistic_step(METHODS[order], 1.0 / steps)
        u = jax.lax.fori_loop(0, steps, lambda _, u, f=step_fn: f(u), jnp.ones(3, complex))
        errors.append(np.abs(np.asarray(u) - logistic(1.0)).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates[-1] > order - 0.25, f"errors {errors}, rates {rates}"


def test_exponential_method_is_exact_for_linear_equations(x64):
    step_fn = METHODS[4](jnp.asarray(-DECAY), jnp.zeros_like, jnp.asarray(2.0))
    np.testing.assert_allclose(step_fn(jnp.ones(3, complex)), np.exp(-2 * DECAY), rtol=1e-14)


def test_phi_functions_are_their_integrals(x64):
    # φₙ(z) = ∫₀¹ e^((1-s) z) s^(n-1) / (n-1)! ds, by a quadrature that is exact at these z.
    z = -np.concatenate([[0.0], np.logspace(-12, 1, 60), [1.0]])
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, weights = (nodes + 1) / 2, weights / 2
    for n, phi in enumerate(time_stepping.phi_functions(jnp.asarray(z)), start=1):
        exact = np.exp(np.outer(z, 1 - s)) @ (weights * s ** (n - 1)) / math.factorial(n - 1)
        np.testing.assert_allclose(phi, exact, rtol=1e-13)


def clock(times, *, rate, cfl):
    """A state that counts: (time, steps, largest product of step and rate so far)."""

    def step_factory(dt):
        def step_fn(state):
            time, steps, worst = state.real
            worst = jnp.maximum(worst, dt * rate(time))
            return jnp.stack([time + dt, steps + 1, worst]).astype(complex)

        return step_fn

    return trajectory(
        step_factory,
        jnp.zeros(3, complex),
        times,
        rate_fn=lambda state: rate(state.real[0]),
        observe_fn=lambda state: state.real,
        cfl=cfl,
    )


def test_frames_are_at_the_requested_times(x64):
    times = [0.0, 0.1, 0.35, 2.0, 2.001]
    result = clock(times, rate=lambda _: jnp.asarray(30.0), cfl=0.7)
    np.testing.assert_allclose(result.frames[:, 0], times, atol=1e-13)
    assert result.failure_time == np.inf


def test_steps_are_as_few_as_the_cfl_bound_allows(x64):
    rate, cfl, times = 30.0, 0.7, [0.1, 0.35, 2.0]
    result = clock(times, rate=lambda _: jnp.asarray(rate), cfl=cfl)
    expected = np.cumsum(np.ceil(np.diff(times, prepend=0) * rate / cfl))
    np.testing.assert_array_equal(result.frames[:, 1], expected)
    assert result.frames[-1, 2] <= cfl


def test_steps_follow_a_rate_that_changes(x64):
    # The rate doubles every tenth: within the few steps between two looks it moves by little.
    rate = lambda time: 100 * 2 ** (10 * time)  # noqa: E731
    result = clock([0.4], rate=rate, cfl=0.5)
    exact = 100 * (2**4 - 1) / (10 * np.log(2)) / 0.5
    assert 0.95 * exact < result.frames[-1, 1] < 1.2 * exact
    assert result.frames[-1, 2] < 0.5 * 1.4


def riccati(times, *, start=1.0):
    """u' = u², which blows up at t = 1 / start."""
    return trajectory(
        functools.partial(METHODS[4], jnp.zeros(1), lambda u: u**2),
        jnp.full(1, start, complex),
        times,
        rate_fn=lambda u: jnp.abs(u).max(),
        observe_fn=lambda u: u.real,
        cfl=0.02,
    )


def test_blow_up_is_an_error_with_its_time(x64):
    result = riccati([0.5, 0.9, 1.1, 2.0])
    np.testing.assert_allclose(result.frames[:2, 0], [2.0, 10.0], rtol=1e-5)
    assert np.isnan(result.frames[2:]).all()
    with pytest.raises(BlowUpError, match=r"at t = 0\.999") as error:
        time_stepping.raise_on_failure(result)
    assert abs(error.value.time - 1) < 1e-3


def test_one_failure_in_a_batch_leaves_the_others_alone(x64):
    results = jax.vmap(lambda start: riccati([0.5, 1.5], start=start))(jnp.array([0.5, 1.0, 0.25]))
    np.testing.assert_allclose(results.frames[0, :, 0], [1 / 1.5, 0.8 / 0.4], rtol=1e-5)
    np.testing.assert_allclose(results.frames[2, :, 0], [1 / 3.5, 1 / 2.5], rtol=1e-5)
    np.testing.assert_allclose(results.failure_time, [np.inf, 1.0, np.inf], rtol=1e-3)
    with pytest.raises(BlowUpError):
        time_stepping.raise_on_failure(results)


def test_failures_do_not_raise_while_traced(x64):
    @jax.jit
    def run(start):
        result = riccati([2.0], start=start)
        time_stepping.raise_on_failure(result)
        return result

    assert run(1.0).failure_time < 2
    assert run(0.1).failure_time == np.inf


@pytest.mark.parametrize(
    "times", [[], [0.0, 0.0], [0.2, 0.1], [-0.1, 0.1], [0.0, np.nan], np.zeros((1, 2))]
)
def test_times_must_increase_from_zero(times):
    with pytest.raises(ValueError, match="times must be"):
        time_stepping.check_times(times)


def test_initial_states_must_be_finite():
    with pytest.raises(ValueError, match="u0 must be finite, got 1 of 5 values"):
        time_stepping.check_initial("u0", jnp.array([0.0, 1.0, jnp.nan, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"u0 needs at least 4 points .* got shape \(3,\)"):
        time_stepping.check_initial("u0", jnp.zeros(3))
