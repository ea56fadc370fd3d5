"""What solvers never read, resonances, numbers that are none; more cases are in tests/faults."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import checks, darcy, helmholtz

# As users call them: in the tests, annotations are checked, too, and would refuse first.
solve_darcy, solve_waves = map(inspect.unwrap, (darcy.solve, helmholtz.solve))
ONES = jnp.ones((5, 5))


def test_what_stands_inside_of_boundary_data_is_never_read():
    ring = jnp.arange(25.0).reshape(5, 5)
    inside = ring.at[1:-1, 1:-1].set(jnp.nan)
    np.testing.assert_array_equal(solve_darcy(ONES, inside), solve_darcy(ONES, ring))
    for condition in ("dirichlet", "impedance"):
        solutions = [
            solve_waves(ONES, 2.0, **{condition: data.astype(jnp.complex64)})
            for data in (inside, ring)
        ]
        np.testing.assert_array_equal(*solutions)
    slope = jax.grad(lambda g: solve_darcy(ONES, g).sum())(inside)
    assert np.isfinite(slope).all()


def test_a_resonant_neumann_problem_is_named(x64):
    """β = 0 leaves a Neumann problem, which has the eigenvalue of the first cosine."""
    n = 17
    angle = np.pi / (n - 1)
    k = float(np.sqrt(6 * (n - 1) ** 2 * (1 - np.cos(angle)) / (2 + np.cos(angle))))
    a, data = jnp.ones((n, n)), jnp.ones((n, n))
    with pytest.raises(ValueError, match=rf"Neumann problem is resonant .* k = {k}"):
        solve_waves(a, k, impedance=data, beta=0.0)
    assert jnp.isfinite(solve_waves(a, k, impedance=data)).all()


def test_numbers_that_are_none():
    for value in ("1", True, 1j, [1.0], None, np.ones(1)):
        with pytest.raises(ValueError, match="x must be a positive, finite number"):
            checks.positive("x", value)
    checks.positive("x", jnp.asarray(2.0))
    checks.positive("x", 3)
