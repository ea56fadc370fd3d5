"""Darcy flow: exact solutions, discrete scale-consistency, gradients, and the random medium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import darcy

EXTENT = (1.5, 0.75)
# Coefficient and solution of -∇·(a∇u) = 0.
EXACT = {
    "exponential": (lambda x, y: np.exp(x), lambda x, y: np.exp(-x)),
    "harmonic": (lambda x, y: np.ones_like(x), lambda x, y: np.exp(2 * x) * np.sin(2 * y)),
    "diagonal": (lambda x, y: np.exp(x + y), lambda x, y: np.exp(-x) - 2 * np.exp(-y)),
}


def grid(shape, extent):
    axes = [np.linspace(0, length, n) for length, n in zip(extent, shape, strict=True)]
    return np.meshgrid(*axes, indexing="ij")


@pytest.mark.parametrize("problem", EXACT)
def test_second_order_in_l2_on_exact_solutions(problem, x64):
    coefficient, solution = EXACT[problem]
    sizes = [(9, 7), (17, 13), (33, 25)]
    errors = []
    for shape in sizes:
        x, y = grid(shape, EXTENT)
        a, u = jnp.asarray(coefficient(x, y)), solution(x, y)
        error = np.asarray(darcy.solve(a, jnp.asarray(u), extent=EXTENT)) - u
        errors.append(np.sqrt(np.mean(error**2)))
    order = -np.polyfit(np.log([shape[0] - 1 for shape in sizes]), np.log(errors), 1)[0]
    assert order >= 1.9


def test_a_restricted_solution_solves_the_restricted_problem(x64):
    instance = darcy.sample(jax.random.key(3), 129, 4.0)
    box = (slice(20, 61), slice(77, 118))
    u = darcy.solve(instance.coefficient[box], instance.solution[box])
    expected = instance.solution[box]
    assert jnp.linalg.norm(u - expected) < 1e-9 * jnp.linalg.norm(expected)


def test_gradients_agree_with_finite_differences(x64):
    keys = jax.random.split(jax.random.key(0), 5)
    shape = (9, 12)
    a = jnp.exp(0.3 * jax.random.normal(keys[0], shape))
    g, weight, da, dg = (jax.random.normal(key, shape) for key in keys[1:])
    value = lambda a, g: jnp.sum(weight * darcy.solve(a, g, extent=EXTENT))  # noqa: E731
    exact = jax.jit(jax.grad(value, argnums=(0, 1)))(a, g)
    step = 1e-5
    change = (value(a + step * da, g) - value(a - step * da, g)) / (2 * step)
    np.testing.assert_allclose(jnp.vdot(exact[0], da), change, rtol=1e-6)
    change = (value(a, g + step * dg) - value(a, g - step * dg)) / (2 * step)
    np.testing.assert_allclose(jnp.vdot(exact[1], dg), change, rtol=1e-6)


def test_one_key_is_one_medium_at_every_resolution(x64):
    key = jax.random.key(1)
    fine = darcy.sample_coefficient(key, (65, 65), 2.0)
    assert jnp.array_equal(fine[::4, ::4], darcy.sample_coefficient(key, (17, 17), 2.0))
    assert set(np.unique(fine)) == {2.0, 12.0}


def test_half_of_scale_8_looks_like_scale_4(x64):
    # Correlation of the medium with itself at lags of 1/16 to 1/2 of the scale-4 domain, from the
    # middle of the domain, where the reflecting boundary matters least.
    def correlation(scale, n, crop):
        keys = jax.random.split(jax.random.key(4), 400)
        a = jax.vmap(lambda key: darcy.sample_coefficient(key, (n, n), scale))(keys)
        a = np.asarray(a[:, crop, crop] - 7) / 5
        lags = [2, 4, 8, 16]
        return np.array([np.mean(a[:, 8, 8] * a[:, 8 + lag, 8]) for lag in lags])

    whole = correlation(4.0, 33, slice(0, 33))
    half = correlation(8.0, 65, slice(16, 49))
    # Standard error of each is about 0.05; a length off by a factor of two shifts them by 0.2.
    np.testing.assert_allclose(half, whole, atol=0.15)


@pytest.mark.parametrize(
    ("coefficient", "boundary", "message"),
    [
        (np.ones((2, 5)), np.ones((2, 5)), "at least 3 x 3"),
        (np.zeros((5, 5)), np.ones((5, 5)), "positive and finite"),
        (np.full((5, 5), np.nan), np.ones((5, 5)), "positive and finite"),
        (np.ones((5, 5)), np.ones((5, 6)), "boundary must have the shape"),
        (np.ones((5, 5)) + 0j, np.ones((5, 5)), "real floating-point"),
    ],
)
def test_bad_input_is_named(coefficient, boundary, message, x64):
    with pytest.raises(ValueError, match=message):
        darcy.solve(jnp.asarray(coefficient), jnp.asarray(boundary))
