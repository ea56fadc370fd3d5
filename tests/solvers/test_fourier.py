"""Dealiased modes: round trips, derivatives, and products without aliasing."""

import jax
import numpy as np
import pytest

from solvers import fourier

SHAPES = [(16,), (17,), (12, 12), (15, 10), (10, 13)]


def random_modes(key, shape):
    return fourier.to_modes(jax.random.normal(key, shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_fields_below_the_cutoff_survive_a_round_trip(shape, x64):
    modes = random_modes(jax.random.key(0), shape)
    field = fourier.to_grid(modes, shape)
    assert field.shape == shape
    np.testing.assert_allclose(fourier.to_modes(field), modes, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_have_no_aliasing_error(shape, x64):
    first, second = (random_modes(key, shape) for key in jax.random.split(jax.random.key(1)))
    product = fourier.to_modes(fourier.to_grid(first, shape) * fourier.to_grid(second, shape))
    # On three times the points nothing aliases at all; modes carry the number of points.
    fine = tuple(3 * n for n in shape)

    def on_fine_grid(modes):
        spectrum = np.zeros((*fine[:-1], fine[-1] // 2 + 1), complex)
        spectrum[stored_modes(shape)] = modes
        return np.fft.irfftn(spectrum, fine, axes=range(len(shape))) * 3 ** len(shape)

    exact = np.fft.rfftn(on_fine_grid(first) * on_fine_grid(second)) / 3 ** len(shape)
    np.testing.assert_allclose(product, exact[stored_modes(shape)], atol=1e-11)


def stored_modes(shape):
    """Where the stored modes are in an array of all modes of any finer grid."""
    axes = fourier.wave_numbers(shape, np.float64)
    return np.ix_(*[np.asarray(k).ravel().astype(int) for k in axes])


def test_differentiation_is_exact_for_waves(x64):
    shape = (12, 15)
    x, y = np.meshgrid(*[2 * np.pi * np.arange(n) / n for n in shape], indexing="ij")
    _, ky = fourier.wave_numbers(shape, np.float64)
    modes = fourier.to_modes(jax.numpy.asarray(np.sin(3 * x + 2 * y)))
    derivative = fourier.to_grid(fourier.differentiate(ky, modes), shape)
    np.testing.assert_allclose(derivative, 2 * np.cos(3 * x + 2 * y), atol=1e-13)
