"""A trained operator on patches as a preconditioner, with operators that are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, equations, krylov
from sino_jax.base import elements
from sino_jax.loss import relative_l2
from sino_jax.sweep import sweep
from sino_jax.types import Instance
from solvers import darcy

DARCY = equations.get("darcy")
POINTS = 17


def exact(params, inputs, scale):
    """Dense solves of all patches; the parameter distorts the result."""

    def one(sample):
        coefficient, field = DARCY.split(sample)
        size = len(field) - 2

        def column(values):
            inner = jnp.pad(values.reshape(size, size, 1), elements.INNER)
            return elements.residual_load(coefficient, inner).reshape(-1)

        matrix = jax.vmap(column)(jnp.eye(size**2, dtype=field.dtype))
        ring = field.at[1:-1, 1:-1].set(0)
        load = -elements.residual_load(coefficient, ring).reshape(-1)
        inner = jnp.linalg.solve(matrix, load).reshape(size, size, 1)
        return ring + jnp.pad((1 + params) * inner, elements.INNER)

    return jax.vmap(one)(inputs)


def problems():
    """Media of contrast 100 in squares of four cells."""
    rng = np.random.default_rng(2)
    squares = rng.choice([1.0, 100.0], size=(2, 5, 5, 1))
    coefficient = np.repeat(np.repeat(squares, 4, axis=1), 4, axis=2)[:, :POINTS, :POINTS]
    coefficient, field = jnp.asarray(coefficient), jnp.asarray(rng.normal(size=coefficient.shape))
    solve = jax.vmap(lambda a, g: darcy.solve(a[..., 0], g[..., 0])[..., None])
    return Instance(coefficient, field, jnp.full(2, 2.0), solve(coefficient, field))


def solved(instance, tolerance, params=None):
    flexible = None
    if params is not None:
        flexible = sweep(exact, params, equation=DARCY, patch=9, overlap=4)
    found = krylov.solve(
        instance, equation=DARCY, tolerance=tolerance, flexible=flexible, iterations=60
    )
    assert (relative_l2(found.solution, instance.solution) <= found.bound).all()
    return found


def test_an_exact_operator_saves_iterations_and_a_wrong_one_does_no_harm(x64):
    instance = problems()
    plain, right, wrong = (solved(instance, 1e-4, params) for params in (None, 0.0, 0.3))
    assert plain.reached.all()
    assert right.reached.all()
    assert wrong.reached.all()
    assert (right.iterations <= plain.iterations - 3).all()
    assert (wrong.iterations > right.iterations).all()
    # What an operator cannot improve, the inverse of the Laplacian does.
    assert (wrong.iterations <= plain.iterations + 2).all()


def test_a_solution_of_all_patches_is_left_alone(x64):
    """w = u if there is no residual, and then every patch gives itself back."""
    instance = problems()
    direction = sweep(exact, 0.0, equation=DARCY, patch=9, overlap=4)
    zero = jnp.zeros_like(instance.solution[:, 1:-1, 1:-1])
    change = direction(instance.coefficient, instance.solution, zero)
    assert jnp.abs(change).max() < 1e-5 * jnp.abs(instance.solution).max()


def test_without_patches_it_is_the_prediction(x64):
    instance = problems()
    direction = sweep(exact, 0.0, equation=DARCY, patch=POINTS, overlap=4)
    start = jax.vmap(base.harmonic)(instance.boundary)
    zero = jnp.zeros_like(start[:, 1:-1, 1:-1])
    found = start[:, 1:-1, 1:-1] + direction(instance.coefficient, start, zero)
    expected = instance.solution[:, 1:-1, 1:-1]
    np.testing.assert_allclose(found, expected, atol=1e-5 * float(jnp.abs(expected).max()))


def test_other_equations_are_refused():
    with pytest.raises(ValueError, match="equation must be darcy, got helmholtz"):
        sweep(exact, None, equation=equations.get("helmholtz"), patch=9, overlap=4)
