"""Malformed arguments of the solvers: a one-line error that names them, or the right result."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import burgers, checks, darcy, helmholtz, navier_stokes, time_stepping

# As users call them: in the tests, annotations are checked, too, and would refuse first.
solve_burgers, simulate_burgers, solve_flow, solve_darcy, solve_waves = map(
    inspect.unwrap,
    (burgers.solve, burgers.simulate, navier_stokes.solve, darcy.solve, helmholtz.solve),
)
check_options, check_times = map(
    inspect.unwrap, (time_stepping.check_options, time_stepping.check_times)
)
ONES = jnp.ones((5, 5))
COMPLEX_ONES = jnp.ones((5, 5), jnp.complex64)
WAVE = jnp.sin(2 * jnp.pi * jnp.linspace(0, 1, 16, endpoint=False))
VORTICES = WAVE[:, None] * WAVE[None, :]


def with_nan(field, index):
    return field.at[index].set(jnp.nan)


CASES = {
    "integer u0": (lambda: solve_burgers(jnp.arange(8), 0.1, [1.0]), "u0 .* got int32"),
    "u0 of two axes": (lambda: solve_burgers(VORTICES, 0.1, [1.0]), "u0 .* 1 axes, got float32"),
    "u0 in words": (lambda: solve_burgers("sine", 0.1, [1.0]), "u0 must be an array of numbers"),
    "integer u0 in simulate": (
        lambda: simulate_burgers(jnp.arange(8), 0.1, [1.0]),
        "u0 .* got int32",
    ),
    "infinite nu": (lambda: solve_burgers(WAVE, jnp.inf, [1.0]), "nu .* got inf"),
    "nu of two": (lambda: solve_burgers(WAVE, np.ones(2), [1.0]), "nu must be a positive"),
    "nu of NaN": (lambda: solve_burgers(WAVE, np.nan, [1.0]), "nu .* got nan"),
    "negative cfl": (lambda: solve_burgers(WAVE, 0.1, [1.0], cfl=-1.0), "cfl .* got -1.0"),
    "cfl of NaN": (lambda: solve_burgers(WAVE, 0.1, [1.0], cfl=np.nan), "cfl .* got nan"),
    "order 3": (lambda: check_options([1.0], 3, 1.0), r"order .* \[2, 4\], got 3"),
    "times in words": (lambda: check_times(["late"]), "times must be numbers"),
    "integer vorticity": (
        lambda: solve_flow(jnp.zeros((8, 8), int), 10.0, [1.0]),
        "vorticity .* got int32",
    ),
    "forcing with NaN": (
        lambda: solve_flow(VORTICES, 10.0, [1.0], forcing=with_nan(0 * VORTICES, (3, 3))),
        "forcing must be finite, got 1 of 256",
    ),
    "forcing with a mean": (
        lambda: solve_flow(VORTICES, 10.0, [1.0], forcing=1 + 0 * VORTICES),
        "forcing must have mean zero .* got mean 1",
    ),
    "forcing of another shape": (
        lambda: solve_flow(VORTICES, 10.0, [1.0], forcing=jnp.zeros((8, 8))),
        r"forcing must have the shape \(16, 16\) of vorticity, got \(8, 8\)",
    ),
    "infinite Re": (lambda: solve_flow(VORTICES, np.inf, [1.0]), "reynolds .* got inf"),
    "negative side": (
        lambda: solve_flow(VORTICES, 10.0, [1.0], side=-1.0),
        "side .* got -1.0",
    ),
    "integer coefficient": (
        lambda: solve_darcy(jnp.ones((5, 5), int), ONES),
        "coefficient .* got int32",
    ),
    "integer boundary": (lambda: solve_darcy(ONES, jnp.ones((5, 5), int)), "boundary .* got int32"),
    "NaN on the ring": (
        lambda: solve_darcy(ONES, with_nan(ONES, (0, 2))),
        "boundary must be finite on its outer ring, got 1 of 16",
    ),
    "extent of one side": (lambda: solve_darcy(ONES, ONES, extent=(1.0,)), "extent .* two"),
    "extent that is a number": (lambda: solve_darcy(ONES, ONES, extent=2.0), "extent .* got 2.0"),
    "negative extent": (lambda: solve_darcy(ONES, ONES, extent=(1.0, -1.0)), "extent .* got -1.0"),
    "extent of NaN": (lambda: solve_darcy(ONES, ONES, extent=(np.nan, 1.0)), "extent .* got nan"),
    "no waves and no boundary values": (
        lambda: solve_waves(ONES, 0.0, impedance=ONES),
        "k must be a positive, finite number, got 0.0",
    ),
    "negative k": (
        lambda: solve_waves(ONES, -1.0, dirichlet=COMPLEX_ONES),
        "k .* not negative, got -1.0",
    ),
    "k of NaN": (lambda: solve_waves(ONES, np.nan, impedance=ONES), "k .* got nan"),
    "beta of NaN": (
        lambda: solve_waves(ONES, 1.0, impedance=ONES, beta=np.nan),
        "beta .* got nan",
    ),
    "NaN in Dirichlet data is no resonance": (
        lambda: solve_waves(ONES, 1.0, dirichlet=with_nan(COMPLEX_ONES, (0, 0))),
        "dirichlet must be finite on its outer ring, got 1 of 16",
    ),
    "NaN in the forcing is no resonance": (
        lambda: solve_waves(ONES, 1.0, dirichlet=COMPLEX_ONES, forcing=with_nan(ONES, (2, 2))),
        "forcing must be finite, got 1 of 25",
    ),
    "NaN in impedance data": (
        lambda: solve_waves(ONES, 1.0, impedance=with_nan(ONES, (0, 0))),
        "impedance must be finite on its outer ring",
    ),
    "integer impedance": (
        lambda: solve_waves(ONES, 1.0, impedance=jnp.ones((5, 5), int)),
        "impedance .* got int32",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_named_in_one_line(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


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
