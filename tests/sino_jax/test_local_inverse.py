"""A trained operator on patches as a preconditioner, with operators that are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, equations, krylov
from sino_jax.local_inverse import local_inverse
from sino_jax.loss import relative_l2
from sino_jax.types import Instance
from solvers import darcy

DARCY = equations.get("darcy")
POINTS = 17


def exact(params, inputs, scale):
    def one(sample):
        coefficient, field = DARCY.split(sample)
        return darcy.solve(coefficient[..., 0], field[..., 0])[..., None]

    return jax.vmap(one)(inputs)


def harmonic(params, inputs, scale):
    return jax.vmap(lambda sample: base.harmonic(DARCY.split(sample)[1]))(inputs)


def problems(coefficient):
    field = np.random.default_rng(1).normal(size=coefficient.shape)
    solve = jax.vmap(lambda a, g: darcy.solve(a[..., 0], g[..., 0])[..., None])
    coefficient, field = jnp.asarray(coefficient), jnp.asarray(field)
    return Instance(coefficient, field, jnp.full(len(field), 2.0), solve(coefficient, field))


def iterations(instance, apply_fn=None):
    flexible = None
    if apply_fn:
        flexible = local_inverse(apply_fn, None, equation=DARCY, patch=9, overlap=4)
    found = krylov.solve(instance, equation=DARCY, tolerance=1e-6, flexible=flexible)
    assert found.reached.all()
    assert (relative_l2(found.solution, instance.solution) <= found.bound).all()
    return np.asarray(found.iterations)


def test_in_a_constant_medium_it_is_the_inverse(x64):
    """M and the patches agree there: the harmonic continuation of M r, plus M_i r, is M r."""
    medium = np.full((1, POINTS, POINTS, 1), 3.0)
    rng = np.random.default_rng(0)
    load = jnp.asarray(rng.normal(size=(1, POINTS - 2, POINTS - 2, 1)))
    inverse = local_inverse(harmonic, None, equation=DARCY, patch=9, overlap=4)
    expected = base.poisson(load[0]) / 3
    actual = inverse(jnp.asarray(medium), load)[0]
    np.testing.assert_allclose(actual, expected, atol=1e-6 * float(jnp.abs(expected).max()))


def test_an_operator_that_knows_the_medium_saves_iterations(x64):
    """A medium of contrast 1000 in squares of four cells."""
    squares = np.random.default_rng(2).choice([1.0, 1000.0], size=(1, 5, 5, 1))
    medium = np.repeat(np.repeat(squares, 4, axis=1), 4, axis=2)[:, :POINTS, :POINTS]
    instance = problems(medium)
    exactly = iterations(instance, exact)
    assert (exactly < iterations(instance) / 2).all()
    assert (exactly < iterations(instance, harmonic)).all()


def test_other_equations_are_refused():
    with pytest.raises(ValueError, match="equation must be darcy, got helmholtz"):
        local_inverse(exact, None, equation=equations.get("helmholtz"), patch=9, overlap=4)
