"""Random fields: one function per key on every grid, and the covariance the spectrum asks for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import random_fields

COARSE = {"cosine": (17, 9), "fourier": (16, 8)}
FINE = {"cosine": (65, 33), "fourier": (64, 32)}


@pytest.mark.parametrize("basis", ["cosine", "fourier"])
def test_one_key_is_one_function_on_nested_grids(basis, x64):
    # More modes than either grid resolves: the function does not depend on the grid all the same.
    draw = lambda shape: random_fields.sample(  # noqa: E731
        jax.random.key(0), shape, random_fields.matern(1.5, 2.0), basis=basis, modes=40
    )
    np.testing.assert_allclose(draw(FINE[basis])[::4, ::4], draw(COARSE[basis]), atol=1e-13)


def test_high_modes_keep_their_digits_in_single_precision(x64):
    only = lambda frequencies: (frequencies[..., 0] == 511).astype(frequencies.dtype)  # noqa: E731
    key = jax.random.key(1)
    field = random_fields.sample(key, (1025,), only, modes=512, dtype=jnp.float32)
    wave = jnp.cos(jnp.pi * 511 * jnp.linspace(0, 1, 1025))
    np.testing.assert_allclose(field, field[0] * wave.astype(jnp.float32), atol=2e-6)


@pytest.mark.parametrize("basis", ["cosine", "fourier"])
@pytest.mark.parametrize("zero_mean", [True, False])
def test_covariance_is_that_of_the_spectrum(basis, zero_mean, x64):
    spectrum = random_fields.stretched_exponential(0.7, 1.0)
    n, modes, samples = 9, 3, 20_000
    keys = jax.random.split(jax.random.key(2), samples)
    fields = jax.vmap(
        lambda key: random_fields.sample(
            key, (n,), spectrum, basis=basis, modes=modes, zero_mean=zero_mean
        )
    )(keys)

    expected = np.zeros((n, n)) if zero_mean else np.ones((n, n))
    x = np.arange(n) / (n - 1 if basis == "cosine" else n)
    for frequency in range(1, modes):
        variance = np.exp(-2 * 0.7 * frequency)
        if basis == "cosine":
            functions = [np.sqrt(2) * np.cos(np.pi * frequency * x)]
        else:
            functions = [np.sqrt(2) * f(2 * np.pi * frequency * x) for f in (np.cos, np.sin)]
        expected += variance * sum(np.outer(f, f) for f in functions)
    # Standard error of a covariance: at most 2 times the largest variance over √samples.
    tolerance = 4 * 2 * expected.max() / np.sqrt(samples)
    np.testing.assert_allclose(fields.T @ fields / samples, expected, atol=tolerance)


@pytest.mark.parametrize(("basis", "unit"), [("cosine", np.pi), ("fourier", 2 * np.pi)])
def test_matern_spectrum_inverts_the_laplacian(basis, unit, x64):
    frequencies = jnp.array([[0.0, 0.0], [1.0, 2.0], [3.0, 0.0]])
    alpha, tau = 2.5, 3.0
    variance = random_fields.matern(alpha, tau, basis=basis)(frequencies) ** 2
    laplacian = unit**2 * np.array([0, 5, 9])
    np.testing.assert_allclose(variance * (laplacian + tau**2) ** alpha, tau ** (2 * alpha - 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "sine"}, "basis must be"),
        ({"modes": 0}, "modes must be"),
        ({"shape": (1, 5)}, "shape must have axes of at least 2"),
        ({"dtype": int}, "dtype must be"),
    ],
)
def test_bad_input_is_named(options, message):
    arguments = {"shape": (5, 5), "basis": "cosine", "modes": 4} | options
    spectrum = random_fields.stretched_exponential(1.0, 1.0)
    with pytest.raises(ValueError, match=message):
        random_fields.sample(jax.random.key(0), spectrum=spectrum, **arguments)
