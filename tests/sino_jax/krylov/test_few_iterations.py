"""The differentiable iterations are those of the solvers, and their gradients are right."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from sino_jax import base, krylov
from sino_jax.base import elements
from sino_jax.krylov import improve

SHAPE, EXTENT = (9, 12), (1.2, 0.9)


def problem(*, is_complex, seed=0):
    rng = np.random.default_rng(seed)
    field = rng.normal(size=(*SHAPE, 1))
    if is_complex:
        field = field + 1j * rng.normal(size=field.shape)
    return jnp.asarray(np.exp(0.5 * rng.normal(size=(*SHAPE, 1)))), jnp.asarray(field)


@functools.partial(jax.jit, static_argnames="iterations")
def by_solvers(coefficient, field, k, *, iterations):
    """The same iterations by the solvers of batches."""
    wave = 0.0 if k is None else k

    def residual(u):
        return elements.residual_load(coefficient, u, k=wave, extent=EXTENT)[None]

    matvec = lambda v: residual(jnp.pad(v[0], elements.INNER))  # noqa: E731
    ring = field.at[1:-1, 1:-1].set(0)
    options = dict(start=field[None, 1:-1, 1:-1], tolerance=0.0, iterations=iterations)
    if k is None:
        found = krylov.conjugate_gradients(
            matvec,
            -residual(ring),
            precondition=lambda v: base.poisson(v[0], extent=EXTENT)[None],
            **options,
        )
    else:
        inverse = krylov.shifted_inverse(coefficient, k, extent=EXTENT)
        found = krylov.gmres(
            matvec, -residual(ring), precondition=lambda v: inverse(v[0])[None], **options
        ).iterations
    return ring + jnp.pad(found.solution[0], elements.INNER)


@pytest.mark.parametrize("k", [None, 9.0])
@pytest.mark.parametrize("iterations", [1, 3])
def test_iterates_are_those_of_the_solvers(x64, k, iterations):
    coefficient, field = problem(is_complex=k is not None)
    k = None if k is None else jnp.asarray(k)
    actual, _ = jax.jit(functools.partial(improve, iterations=iterations, extent=EXTENT))(
        field, coefficient, k
    )
    expected = by_solvers(coefficient, field, k, iterations=iterations)
    np.testing.assert_allclose(actual, expected, atol=1e-9)


@pytest.mark.parametrize("k", [None, 7.0])
def test_derivatives_in_start_coefficient_and_wave_number(x64, k):
    coefficient, field = problem(is_complex=k is not None)

    @jax.jit
    def energy(field, coefficient, *k):
        improved, left = improve(field, coefficient, *k, iterations=2, extent=EXTENT)
        return jnp.sum(jnp.abs(improved) ** 2) + left

    arguments = (field, coefficient) + (() if k is None else (jnp.asarray(k),))
    check_grads(energy, arguments, order=1, modes=["rev"], rtol=1e-5)


@pytest.mark.parametrize("k", [None, 7.0])
def test_the_solution_stays_and_has_finite_gradients(x64, k):
    coefficient, field = problem(is_complex=k is not None)
    constant = jnp.ones_like(coefficient)
    if k is None:
        solution = base.harmonic(field, extent=EXTENT)
    else:
        k = jnp.asarray(k)
        solution = base.helmholtz(field, k, 1.0, extent=EXTENT)
    improved, left = improve(solution, constant, k, iterations=3, extent=EXTENT)
    np.testing.assert_allclose(improved, solution, atol=1e-10)
    assert left < 1e-10
    zero = jnp.zeros_like(field)
    gradient = jax.grad(
        lambda a: jnp.sum(jnp.abs(improve(zero, a, k, iterations=2, extent=EXTENT)[0]) ** 2)
    )(coefficient)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.slow
def test_what_is_left_is_nearly_the_error(x64):
    coefficient, field = problem(is_complex=True)
    k = jnp.asarray(7.0)
    run = jax.jit(functools.partial(improve, extent=EXTENT), static_argnames="iterations")
    solution, _ = run(field, coefficient, k, iterations=40)
    start = base.helmholtz(field, k, 1.0, extent=EXTENT)
    for iterations in (0, 2, 4):
        improved, left = run(start, coefficient, k, iterations=iterations)
        error = jnp.linalg.norm(improved - solution) / jnp.linalg.norm(solution)
        assert 0.2 < left / error < 5
