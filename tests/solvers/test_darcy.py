"""Darcy flow: exact solutions, discrete scale-consistency, gradients, and the random medium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import darcy

EXTENT = (1.5, 0.75)
# Coefficient and solution of -∇·(a∇u) = 0.
EXACT = {
    "harmonic": (lambda x, y: np.ones_like(x), lambda x, y: np.exp(2 * x) * np.sin(2 * y)),
    "variable": (lambda x, y: (1 + x) ** 2 * np.exp(y), lambda x, y: 1 / (1 + x) + np.exp(-y)),
}


def grid(shape, extent):
    axes = [np.linspace(0, length, n) for length, n in zip(extent, shape, strict=True)]
    return np.meshgrid(*axes, indexing="ij")


@pytest.mark.parametrize("problem", EXACT)
def test_second_order_in_l2_on_exact_solutions(problem, x64):
    coefficient, solution = EXACT[problem]
    sizes = [(9, 7), (13, 10), (25, 19)]
    errors = []
    for shape in sizes:
        x, y = grid(shape, EXTENT)
        a, u = jnp.asarray(coefficient(x, y)), solution(x, y)
        error = np.asarray(darcy.solve(a, jnp.asarray(u), extent=EXTENT)) - u
        # Trapezoidal rule: the error is zero on the boundary.
        errors.append(np.sqrt(np.sum(error**2) / ((shape[0] - 1) * (shape[1] - 1))))
    order = -np.polyfit(np.log([shape[0] - 1 for shape in sizes]), np.log(errors), 1)[0]
    assert order >= 1.9


def test_exact_at_the_nodes_where_the_mean_coefficient_gives_a_constant_flux(x64):
    # a = eˣ, u = e⁻ˣ: mean(a) times the difference of u over a cell is -sinh h, whatever the cell.
    x, _ = grid((13, 9), EXTENT)
    u = darcy.solve(jnp.asarray(np.exp(x)), jnp.asarray(np.exp(-x)), extent=EXTENT)
    np.testing.assert_allclose(u, np.exp(-x), atol=1e-13)


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
    # One compiled program gives both.
    both = jax.jit(jax.value_and_grad(value, argnums=(0, 1)))
    slopes, step = both(a, g)[1], 1e-5
    change = (both(a + step * da, g)[0] - both(a - step * da, g)[0]) / (2 * step)
    np.testing.assert_allclose(jnp.vdot(slopes[0], da), change, rtol=1e-6)
    change = (both(a, g + step * dg)[0] - both(a, g - step * dg)[0]) / (2 * step)
    np.testing.assert_allclose(jnp.vdot(slopes[1], dg), change, rtol=1e-6)


def test_one_key_is_one_medium_at_every_resolution(x64):
    key = jax.random.key(1)
    fine = darcy.sample_coefficient(key, (65, 65), 2.0)
    assert jnp.array_equal(fine[::4, ::4], darcy.sample_coefficient(key, (17, 17), 2.0))
    assert set(np.unique(fine)) == {2.0, 12.0}


def test_half_of_scale_8_looks_like_scale_4(x64):
    # Correlation of the medium with itself at lags of 1/32 to 1/4 of the scale-4 domain, in the
    # middle of the domain, where the reflecting boundary matters least.
    def correlation(scale, n):
        keys = jax.random.split(jax.random.key(4), 100)
        a = jax.lax.map(lambda key: darcy.sample_coefficient(key, (n, n), scale), keys)
        middle = slice(n // 2 - 8, n // 2 + 9)
        a = np.asarray(a[:, middle, middle] - 7) / 5
        return np.array([np.mean(a[:, :-lag] * a[:, lag:]) for lag in (1, 2, 4, 8)])

    half, whole = correlation(8.0, 65), correlation(4.0, 33)
    np.testing.assert_allclose(half, whole, atol=0.06)


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
