"""The direct solver against an independently assembled sparse system, on grids of every shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import elliptic, q1
from tests.solvers import sparse_reference

# Smallest grid, dummies on both axes, an elongated grid, and one without dummies: with κ or not.
SHAPES = {(3, 3): 0.0, (16, 21): 30.0, (7, 40): 0.0, (33, 33): 30.0}
EXTENT = (1.3, 0.8)


def relative(u, v):
    return float(np.linalg.norm(np.asarray(u) - v) / np.linalg.norm(v))


def fields(shape, seed=0):
    """A jumping coefficient, and two random complex fields."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((5, *shape))
    return (
        np.where(normal[0] > 0, 2.0, 12.0),
        normal[1] + 1j * normal[2],
        normal[3] + 1j * normal[4],
    )


@pytest.mark.parametrize(("shape", "shift"), SHAPES.items())
def test_dirichlet_problems_agree_with_a_sparse_solver(shape, shift, x64):
    a, load, values = fields(shape)
    matrix = sparse_reference.assemble(a, shift=shift, extent=EXTENT)
    expected = sparse_reference.solve(matrix, load, dirichlet=values)
    operator = q1.Operator(jnp.asarray(a), EXTENT, jnp.asarray(shift) if shift else None)
    u = elliptic.solve(operator, jnp.asarray(load), dirichlet=jnp.asarray(values))
    assert relative(u, expected) < 1e-10


@pytest.mark.parametrize("shape", [(3, 3), (16, 21), (33, 33)])
def test_robin_problems_agree_with_a_sparse_solver(shape, x64):
    a, load, _ = fields(shape)
    matrix = sparse_reference.assemble(a, shift=30.0, robin=5j, extent=EXTENT)
    expected = sparse_reference.solve(matrix, load)
    operator = q1.Operator(jnp.asarray(a), EXTENT, jnp.asarray(30.0), jnp.asarray(5j))
    u = elliptic.solve(operator, jnp.asarray(load))
    assert relative(u, expected) < 1e-10
    np.testing.assert_allclose(
        q1.apply(operator, u).ravel(), matrix @ np.asarray(u).ravel(), rtol=1e-12, atol=1e-12
    )


def test_several_loads_share_one_factorisation_under_vmap(x64):
    a, load, _ = fields((16, 21))
    operator = q1.Operator(jnp.asarray(a), EXTENT)
    loads = jnp.asarray(np.stack([load.real, load.imag]))
    factors = elliptic.factor(operator)
    zero = jnp.zeros_like(loads[0])
    solve = lambda f: elliptic.solve(operator, f, dirichlet=zero, factors=factors)  # noqa: E731
    both = jax.jit(jax.vmap(solve))(loads)
    matrix = sparse_reference.assemble(a, extent=EXTENT)
    for u, f in zip(both, loads, strict=True):
        expected = sparse_reference.solve(matrix, np.asarray(f), dirichlet=np.zeros(f.shape))
        assert relative(u, expected) < 1e-10


def test_multigrid_agrees_with_a_sparse_solver(x64):
    # Odd numbers of cells on both axes, so that coarse grids are not uniform.
    a, load, values = (field.real for field in fields((102, 104)))
    expected = sparse_reference.solve(
        sparse_reference.assemble(a, extent=EXTENT), load, dirichlet=values
    )
    operator = q1.Operator(jnp.asarray(a), EXTENT)
    u = elliptic.solve(operator, jnp.asarray(load), dirichlet=jnp.asarray(values))
    assert relative(u, expected) < 1e-10


def test_single_precision_stays_single_and_accurate(x64):
    a, load, values = fields((16, 21))
    operator = q1.Operator(jnp.asarray(a, jnp.float32))
    u = elliptic.solve(
        operator,
        jnp.asarray(load.real, jnp.float32),
        dirichlet=jnp.asarray(values.real, jnp.float32),
    )
    assert u.dtype == jnp.float32
    expected = sparse_reference.solve(
        sparse_reference.assemble(a), load.real, dirichlet=values.real
    )
    assert relative(u, expected) < 1e-4


def test_residual_is_round_off_for_solutions_and_large_for_others(x64):
    a, load, values = fields((16, 21))
    operator = q1.Operator(jnp.asarray(a))
    f, g = jnp.asarray(load.real), jnp.asarray(values.real)
    u = elliptic.solve(operator, f, dirichlet=g)
    assert elliptic.residual(operator, u, f) < 1e-15
    assert elliptic.residual(operator, u.at[5, 5].add(1e-3), f) > 1e-6


def test_conditions_must_match_the_operator(x64):
    a, load, _ = fields((7, 11))
    with pytest.raises(ValueError, match="dirichlet must be given"):
        elliptic.solve(q1.Operator(jnp.asarray(a)), jnp.asarray(load))
