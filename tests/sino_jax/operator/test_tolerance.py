"""Predictions brought to a tolerance: certified errors, any precision, and clear refusals."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, channels, equations
from sino_jax.base import elements
from sino_jax.operator import Operator
from sino_jax.operator.tolerance import ToleranceWarning
from solvers import darcy, helmholtz

META = {"scales": [4.0], "grids": [[17, 17]], "scale_range": [1.0, 100.0]}
SHAPE = (21, 17)
EXTENT = base.square_cells(SHAPE)


def poor(name):
    """An operator that predicts a fraction of the base solution of a constant coefficient."""
    equation = equations.get(name)

    def apply_fn(params, inputs, scale):
        def one(sample):
            field = equation.split(sample)[1]
            solution = params * base.harmonic(field, extent=EXTENT)
            return solution if name == "darcy" else channels.to_channels(solution)

        return jax.vmap(one)(inputs)

    return Operator(equation, apply_fn, 0.9, META)


def problems(name, count=3):
    rng = np.random.default_rng(5)
    shape = (count, *SHAPE, 1)
    if name == "darcy":
        coefficient = rng.choice([2.0, 12.0], size=shape).astype(np.float32)
        return coefficient, rng.normal(size=shape).astype(np.float32)
    field = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
    return np.exp(0.2 * rng.normal(size=shape)).astype(np.float32), field


def truth(name, coefficient, boundary, k=None):
    """The direct solver's solutions, in double precision."""
    with jax.enable_x64(True):
        a, g = jnp.asarray(coefficient, float), jnp.asarray(boundary)
        if name == "darcy":
            solve = lambda a, g: darcy.solve(a[..., 0], g[..., 0], extent=EXTENT)  # noqa: E731
            g = g.astype(float)
        else:
            solve = lambda a, g: helmholtz.solve(  # noqa: E731
                a[..., 0], k, dirichlet=g[..., 0], extent=EXTENT
            )
            g = g.astype(complex)
        return np.asarray(jax.vmap(solve)(a, g))[..., None]


def error(solution, exact):
    axes = (1, 2, 3)
    distance = np.sum(np.abs(np.asarray(solution) - exact) ** 2, axis=axes)
    return np.sqrt(distance / np.sum(np.abs(exact) ** 2, axis=axes))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_darcy_is_right_to_the_tolerance_in_single_precision(tolerance):
    coefficient, boundary = problems("darcy")
    solved = poor("darcy").solve(coefficient, boundary, 4.0, tolerance=tolerance)
    assert solved.solution.dtype == jnp.float32
    errors = error(solved.solution, truth("darcy", coefficient, boundary))
    assert solved.reached.all()
    assert (errors <= solved.bound).all()
    assert (solved.bound <= tolerance * 1.001).all()
    one = poor("darcy").solve(coefficient[1], boundary[1], 4.0, tolerance=tolerance)
    np.testing.assert_allclose(one.solution, solved.solution[1], rtol=1e-5, atol=1e-6)
    assert int(one.iterations) == int(solved.iterations[1])
    assert one.history.shape == (int(one.iterations) + 1,)


def test_helmholtz_beyond_resonances_is_solved_to_an_estimate():
    coefficient, boundary = problems("helmholtz")
    solved = poor("helmholtz").solve(coefficient, boundary, 15.0, tolerance=1e-5)
    assert solved.solution.dtype == jnp.complex64
    errors = error(solved.solution, truth("helmholtz", coefficient, boundary, 15.0))
    assert solved.reached.all()
    assert (errors < 1e-5).all()
    assert np.isinf(solved.bound).all()


def test_iterations_sharpen_the_bound_of_a_prediction(x64):
    """The bound of predictions, and of what a tolerance made of them, is near the true error."""
    coefficient, boundary = (np.asarray(field, float) for field in problems("darcy", count=6))
    exact = truth("darcy", coefficient, boundary)
    operator = poor("darcy")
    polished = operator.solve(coefficient, boundary, 4.0, tolerance=1e-3).solution
    for prediction in (operator.solve(coefficient, boundary, 4.0), polished):
        errors = error(prediction, exact)
        bounds = [
            np.asarray(
                operator.estimate_error(
                    coefficient, boundary, 4.0, solution=prediction, iterations=iterations
                ).bound
            )
            for iterations in (0, 4, 8)
        ]
        for bound in bounds:
            assert (bound >= errors * (1 - 1e-9)).all()
        assert (bounds[1] < 2.5 * errors).all()
        assert (bounds[2] < 1.5 * errors).all()


def test_a_tolerance_that_is_not_reached_is_told():
    coefficient, boundary = problems("darcy")
    with pytest.warns(ToleranceWarning, match=r"problems \[0, 1, 2\].* after 2 iterations"):
        solved = poor("darcy").solve(coefficient, boundary, 4.0, tolerance=1e-5, iterations=2)
    assert not solved.reached.any()
    errors = error(solved.solution, truth("darcy", coefficient, boundary))
    assert (errors <= solved.bound).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        poor("darcy").solve(coefficient, boundary, 4.0, tolerance=1e-5)


def test_refusals():
    coefficient, boundary = problems("darcy")
    with pytest.raises(ValueError, match=r"tolerance must be at least 4.8e-07 .*float32.*x64"):
        poor("darcy").solve(coefficient, boundary, 4.0, tolerance=1e-8)
    unusable = Operator(equations.get("burgers"), lambda *arguments: 1 / 0, None, META)
    with pytest.raises(ValueError, match="equation must be linear .* got burgers"):
        unusable.solve(None, boundary, 4.0, tolerance=1e-3)
    stiffness, mass = elements.eigenvalues(SHAPE, EXTENT)
    k = float(np.sqrt(stiffness[2, 1] / mass[2, 1]))
    _, waves = problems("helmholtz")
    with pytest.raises(ValueError, match=r"problems \[0, 1, 2\] are resonant .* at k = "):
        poor("helmholtz").solve(np.ones_like(coefficient), waves, k, tolerance=1e-3)


def test_double_precision_is_kept_where_it_is_used(x64):
    coefficient, boundary = (field.astype(float) for field in problems("darcy"))
    solved = poor("darcy").solve(coefficient, boundary, 4.0, tolerance=1e-9)
    assert solved.solution.dtype == jnp.float64
    assert (error(solved.solution, truth("darcy", coefficient, boundary)) <= solved.bound).all()
