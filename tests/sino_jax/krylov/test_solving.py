"""Dirichlet problems solved to a tolerance, against the direct solvers of the data."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, boundary, equations, krylov
from sino_jax.base import elements
from sino_jax.loss import relative_l2
from sino_jax.types import Instance
from solvers import darcy, helmholtz, q1

SHAPE, EXTENT = (13, 18), (1.5, 0.8)


@functools.cache
def problems(name, *, scales=(4.0, 4.0, 4.0), contrast=6.0, shape=SHAPE, extent=EXTENT):
    """Rough media and boundary values, with the direct solver's solutions."""
    rng = np.random.default_rng(3)
    count = len(scales)
    coefficient = jnp.asarray(rng.choice([1.0, contrast], size=(count, *shape, 1)))
    field = rng.normal(size=coefficient.shape)
    if name == "helmholtz":
        coefficient = jnp.asarray(np.exp(0.3 * rng.normal(size=coefficient.shape)))
        field = jnp.asarray(field + 1j * rng.normal(size=coefficient.shape))

        def solve(a, g, k):
            return helmholtz.solve(a[..., 0], k, dirichlet=g[..., 0], extent=extent)[..., None]
    else:

        def solve(a, g, k):
            return darcy.solve(a[..., 0], g[..., 0], extent=extent)[..., None]

    scale, field = jnp.asarray(scales), jnp.asarray(field)
    return Instance(coefficient, field, scale, jax.vmap(solve)(coefficient, field, scale))


def solve(name, instance, *, extent=EXTENT, **options):
    return krylov.solve(instance, equation=equations.get(name), extent=extent, **options)


def test_the_operator_is_that_of_the_solvers_to_round_off(x64):
    instance = problems("helmholtz")
    a, u = instance.coefficient[0], instance.boundary[0]
    ours = elements.residual_load(a, u, k=5.0, extent=EXTENT)[..., 0]
    theirs = q1.apply(q1.Operator(a[..., 0], EXTENT, jnp.asarray(25.0)), u[..., 0])
    np.testing.assert_allclose(ours, theirs[1:-1, 1:-1], atol=1e-13)


def test_sines_are_eigenvectors_of_stiffness_and_mass(x64):
    rng = np.random.default_rng(0)
    load = jnp.asarray(rng.normal(size=(11, 16, 1)))
    shape = tuple(n + 2 for n in load.shape[:2])
    stiffness, mass = elements.eigenvalues(shape, EXTENT)
    area = np.prod(elements.steps(shape, EXTENT))
    coefficients = base.sine_transform.sine_transforms(load)
    for values, k_squared in ((stiffness, 0.0), (stiffness - 7 * mass, 7.0)):
        field = jnp.pad(load, elements.INNER)
        image = elements.residual_load(
            jnp.ones((*shape, 1)), field, k=k_squared**0.5, extent=EXTENT
        )
        expected = base.sine_transform.sine_transforms(area * values[..., None] * coefficients)
        np.testing.assert_allclose(image, expected, atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
def test_darcy_is_solved_to_the_tolerance_and_certified(x64, tolerance):
    instance = problems("darcy")
    found = solve("darcy", instance, tolerance=tolerance)
    errors = relative_l2(found.solution, instance.solution)
    assert found.reached.all()
    assert (errors <= found.bound).all()
    assert (found.bound <= tolerance).all()
    rings = [jax.vmap(boundary.ring)(field) for field in (found.solution, instance.boundary)]
    np.testing.assert_allclose(*rings, atol=1e-14)


def test_conjugate_gradients_converge_at_the_rate_of_the_contrast(x64):
    """Condition number at most 6: the bound shrinks by ((√6 - 1) / (√6 + 1)) in an iteration."""
    instance = problems("darcy")
    found = solve("darcy", instance, tolerance=1e-9)
    rate = (6**0.5 - 1) / (6**0.5 + 1)
    for i, count in enumerate(np.asarray(found.iterations)):
        column = np.asarray(found.history[: count + 1, i])
        assert column[-1] / column[1] < 2 * 6**0.5 * rate ** (count - 1)


def test_helmholtz_of_several_wave_numbers_in_one_batch(x64):
    """The first is coercive and certified, the others are indefinite."""
    scales = (1.0, 9.0, 14.0)
    instance = problems("helmholtz", scales=scales)
    found = solve("helmholtz", instance, tolerance=1e-6)
    assert found.reached.all()
    assert found.bound[0] <= 1e-6
    assert np.isinf(found.bound[1:]).all()
    errors = relative_l2(found.solution, instance.solution)
    assert (errors < 5e-6).all()
    assert errors[0] <= found.bound[0]
    for i in range(3):
        one = jax.tree.map(lambda x, i=i: x[i : i + 1], instance)
        alone = solve("helmholtz", one, tolerance=1e-6)
        assert int(alone.iterations[0]) == int(found.iterations[i])
        np.testing.assert_allclose(alone.solution[0], found.solution[i], rtol=1e-5, atol=1e-8)
        length = int(alone.iterations[0]) + 1
        np.testing.assert_allclose(alone.history[:length, 0], found.history[:length, i], rtol=1e-4)


@pytest.mark.parametrize(("name", "scale"), [("darcy", 4.0), ("helmholtz", 12.0)])
def test_a_good_start_saves_iterations_and_its_boundary_values_do_not_matter(x64, name, scale):
    instance = problems(name, scales=(scale,) * 3)
    noise = np.random.default_rng(1).normal(size=instance.solution.shape)
    near = instance.solution + 1e-3 * noise.astype(instance.solution.dtype)
    from_base = solve(name, instance, tolerance=1e-6)
    from_near = solve(name, instance, tolerance=1e-6, start=near)
    assert (from_near.iterations < from_base.iterations).all()
    assert (relative_l2(from_near.solution, instance.solution) < 5e-6).all()
    stays = solve(name, instance, tolerance=1e-6, start=instance.solution)
    np.testing.assert_array_equal(stays.iterations, 0)
    assert stays.reached.all()


def test_constant_coefficients_are_done_at_once(x64):
    instance = problems("helmholtz", scales=(1.0, 9.0, 14.0))
    constant = instance._replace(coefficient=jnp.full_like(instance.coefficient, 1.3))
    found = solve("helmholtz", constant, tolerance=1e-9)
    assert found.reached.all()
    assert (found.iterations <= 6).all()


def test_too_few_iterations_are_reported(x64):
    instance = problems("darcy")
    found = solve("darcy", instance, tolerance=1e-9, iterations=3)
    assert not found.reached.any()
    np.testing.assert_array_equal(found.iterations, 3)
    assert found.history.shape == (4, 3)
    assert (relative_l2(found.solution, instance.solution) <= found.bound).all()


def test_single_precision_stalls_without_pretending():
    rng = np.random.default_rng(0)
    coefficient = rng.choice([1.0, 6.0], size=(1, 65, 65, 1)).astype(np.float32)
    field = rng.normal(size=coefficient.shape).astype(np.float32)
    instance = Instance(jnp.asarray(coefficient), jnp.asarray(field), jnp.ones(1))
    found = solve("darcy", instance, tolerance=2e-7, iterations=60, extent=(1.0, 1.0))
    assert not found.reached[0]
    assert 2e-7 < found.bound[0] < 1e-3
    assert solve("darcy", instance, tolerance=1e-2, extent=(1.0, 1.0)).reached[0]


def test_a_resonant_problem_is_not_reached_and_has_no_inverse(x64):
    """k² on an eigenvalue of the discrete problem of a constant coefficient."""
    stiffness, mass = elements.eigenvalues(SHAPE, EXTENT)
    k = float(np.sqrt(stiffness[1, 2] / mass[1, 2]))
    instance = problems("helmholtz")
    resonant = instance._replace(
        coefficient=jnp.ones_like(instance.coefficient), scale=jnp.full(3, k)
    )
    found = solve("helmholtz", resonant, tolerance=1e-6, iterations=60)
    assert not found.reached.any()
    assert (found.amplification > 1e8).all()
    near = solve("helmholtz", resonant._replace(scale=jnp.full(3, k + 1e-3)), tolerance=1e-6)
    assert near.reached.all()
    assert (near.amplification > 20).all()
    direct = jax.vmap(
        lambda a, g: helmholtz.solve(a[..., 0], k + 1e-3, dirichlet=g[..., 0], extent=EXTENT)
    )(resonant.coefficient, resonant.boundary)
    assert (relative_l2(near.solution, direct[..., None]) < 5e-6).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("burgers", {}, "equation must be linear .*darcy or helmholtz.* got burgers"),
        ("darcy", {"tolerance": 1e-9}, "tolerance must be at least 1.2e-07, .*float32, got 1e-09"),
        ("darcy", {"tolerance": float("nan")}, "tolerance must be at least"),
        ("darcy", {"iterations": 0}, "iterations must be at least 1"),
    ],
)
def test_bad_input(name, options, message):
    ones = jnp.ones((1, 9, 9, 1))
    instance = Instance(ones, ones, jnp.ones(1))
    with pytest.raises(ValueError, match=message):
        solve(name, instance, **{"tolerance": 1e-3, **options})
    with pytest.raises(ValueError, match="coefficient of darcy must be positive, got -1"):
        solve("darcy", instance._replace(coefficient=-ones), tolerance=1e-3)
