"""Error estimates against true errors, with small dense systems as the reference."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, diagnostics
from sino_jax.types import Instance

SHAPE, EXTENT = (12, 9), (1.0, 0.6)


def medium(seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.choice([2.0, 12.0], size=(*SHAPE, 1)))


@jax.jit
def load(coefficient, field):
    return diagnostics.diffusion_load(coefficient, field, extent=EXTENT)


@jax.jit
def error_bounds(coefficient, prediction):
    return diagnostics.darcy_error_bounds(coefficient, prediction, extent=EXTENT)


@jax.jit
def residual_norm(coefficient, prediction, k):
    return diagnostics.residual_norm(coefficient, prediction, k=k, extent=EXTENT)


def dense(coefficient):
    """Matrix of inner unknowns to inner loads, one column for each unit vector."""
    inner = (SHAPE[0] - 2) * (SHAPE[1] - 2)
    units = jnp.eye(inner).reshape(inner, SHAPE[0] - 2, SHAPE[1] - 2, 1)
    fields = jnp.pad(units, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.asarray(jax.jit(jax.vmap(load, (None, 0)))(coefficient, fields)).reshape(inner, -1).T


def test_constant_coefficient_load_is_that_of_the_base(x64):
    """K⁻¹ by sine transforms inverts the element-wise operator, and its solutions have no load."""
    ones = jnp.ones((*SHAPE, 1))
    right = jnp.asarray(np.random.default_rng(0).normal(size=(SHAPE[0] - 2, SHAPE[1] - 2, 1)))
    expected = np.linalg.solve(dense(ones), np.asarray(right).ravel())
    actual = jax.jit(functools.partial(base.poisson, extent=EXTENT))(right)
    np.testing.assert_allclose(np.asarray(actual).ravel(), expected, atol=1e-12)
    g = jnp.asarray(np.random.default_rng(1).normal(size=(*SHAPE, 1)))
    np.testing.assert_allclose(
        load(ones, jax.jit(functools.partial(base.harmonic, extent=EXTENT))(g)), 0, atol=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_darcy_bounds_enclose_the_error(x64, seed):
    coefficient = medium(seed)
    rng = np.random.default_rng(seed)
    g = jnp.asarray(rng.normal(size=(*SHAPE, 1)))
    ring = g.at[1:-1, 1:-1].set(0)
    inside = np.linalg.solve(dense(coefficient), -np.asarray(load(coefficient, ring)).ravel())
    solution = ring.at[1:-1, 1:-1, 0].set(inside.reshape(SHAPE[0] - 2, SHAPE[1] - 2))
    np.testing.assert_allclose(load(coefficient, solution), 0, atol=1e-11)

    prediction = solution.at[1:-1, 1:-1].add(jnp.asarray(rng.normal(size=(10, 7, 1))))
    bounds = error_bounds(coefficient, prediction)
    error = np.asarray(prediction - solution)
    stiffness = load(jnp.ones((*SHAPE, 1)), jnp.asarray(error))
    gradient = np.sqrt(np.sum(error[1:-1, 1:-1] * np.asarray(stiffness)))
    cell = EXTENT[0] * EXTENT[1] / ((SHAPE[0] - 1) * (SHAPE[1] - 1))
    mass = np.asarray(base.apply_mass(base.apply_mass(jnp.asarray(error), 0), 1))
    value = np.sqrt(cell * np.sum(error[1:-1, 1:-1] * mass))
    assert bounds.gradient_lower < gradient < bounds.gradient_upper
    assert value < bounds.value_upper
    assert bounds.gradient_upper < 6.01 * bounds.gradient_lower  # a_max / a_min


def test_bounds_are_sharp_for_a_constant_coefficient(x64):
    sines = np.sin(np.pi * np.linspace(0, 1, 33))
    error = jnp.asarray(np.outer(sines, sines))[
        ..., None
    ]  # the lowest eigenfunction, and the zero solution
    bounds = jax.jit(diagnostics.darcy_error_bounds)(jnp.full_like(error, 3.0), error)
    assert float(bounds.gradient_lower) == pytest.approx(float(bounds.gradient_upper), rel=1e-10)
    assert float(bounds.gradient_upper) == pytest.approx(np.pi / np.sqrt(2), rel=2e-3)
    assert float(bounds.value_upper) == pytest.approx(0.5, rel=2e-3)


def test_helmholtz_residual_vanishes_for_the_finite_element_solution_only(x64):
    rng = np.random.default_rng(0)
    g = jnp.asarray(rng.normal(size=(*SHAPE, 1)) + 1j * rng.normal(size=(*SHAPE, 1)))
    solution = jax.jit(functools.partial(base.helmholtz, extent=EXTENT))(g, 5.0, 1.5)
    coefficient = jnp.full((*SHAPE, 1), 1.5)
    exact = residual_norm(coefficient, solution, 5.0)
    other = residual_norm(coefficient, solution, 5.5)
    assert exact < 1e-11
    assert other > 1e-2


def test_boundary_error_is_relative_on_the_given_sides():
    boundary = jnp.ones((2, 5, 6, 1))
    prediction = boundary.at[1].multiply(1.5).at[:, 1:-1, 1:-1].set(100.0)
    error = diagnostics.boundary_error(prediction, boundary, equation="darcy")
    np.testing.assert_allclose(error, [0.0, 0.5], atol=1e-6)
    # Burgers has no data at the final time.
    prediction = boundary.at[:, -1].set(7.0).at[:, -1, 0].set(1.0).at[:, -1, -1].set(1.0)
    assert diagnostics.boundary_error(prediction, boundary, equation="burgers").max() == 0


def test_self_consistency_is_zero_for_an_exact_operator_and_ignores_the_solution():
    def first_trace(params, inputs, scale):
        return inputs[..., 1:2] + params

    g = jnp.ones((2, 17, 17, 1))
    instance = Instance(g, g, jnp.ones(2), solution=7 * g)
    options = dict(equation="darcy", size=9, key=jax.random.key(0), draws=3)
    exact = diagnostics.self_consistency_error(first_trace, 0.0, instance, **options)
    shifted = diagnostics.self_consistency_error(first_trace, 1.0, instance, **options)
    np.testing.assert_allclose(exact, 0, atol=1e-6)
    np.testing.assert_allclose(shifted, 0.5, rtol=1e-6)  # predicts 2, then 3 from it


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: diagnostics.boundary_error(f, f[:, 1:], equation="darcy"), "one shape"),
        (lambda f: diagnostics.boundary_error(f, f, equation="navier_stokes"), "no boundary data"),
        (lambda f: diagnostics.residual_norm(f[0], f[0, 1:]), "one grid"),
        (
            lambda f: diagnostics.self_consistency_error(
                print, None, Instance(f, f, jnp.ones(1)),
                equation="darcy", size=3, key=jax.random.key(0), draws=0,
            ),
            "draws must be",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(jnp.ones((1, 5, 5, 1)))
