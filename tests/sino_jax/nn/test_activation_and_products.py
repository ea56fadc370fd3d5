"""Operations with gradients of their own, against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax.nn.activation import gelu
from sino_jax.nn.products import channel_product, mode_product, tall_product


def test_gelu_and_its_gradient(x64):
    x = jnp.linspace(-6.0, 6.0, 101)
    np.testing.assert_allclose(gelu(x), jax.nn.gelu(x), atol=1e-14)
    ours, reference = (jax.vmap(jax.grad(f))(x) for f in (gelu, jax.nn.gelu))
    np.testing.assert_allclose(ours, reference, atol=1e-13)
    exact = x * jax.scipy.stats.norm.cdf(x)
    assert jnp.max(jnp.abs(gelu(x) - exact)) < 5e-4


def test_gelu_gradient_is_finite_for_large_arguments():
    slopes = jax.vmap(jax.grad(gelu))(jnp.array([-1e4, 1e4]))
    np.testing.assert_array_equal(slopes, [0.0, 1.0])


@pytest.mark.parametrize("activate", [False, True])
@pytest.mark.parametrize("rows", [320, 331, 7])  # many blocks, a prime number, fewer than a block
def test_tall_products_and_their_gradients(rows, activate, x64):
    left = jax.random.normal(jax.random.key(0), (rows, 5), jnp.float64)
    right = jax.random.normal(jax.random.key(1), (5, 3), jnp.float64)

    def reference(a, b):
        return (jax.nn.gelu(a) if activate else a) @ b

    def gradients(product):
        return jax.grad(lambda a, b: jnp.sum(jnp.sin(product(a, b))), (0, 1))(left, right)

    ours = gradients(lambda a, b: tall_product(a, b, activate))
    for value, expected in zip(ours, gradients(reference), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 24), (24, 40), (40, 80), (80, 40), (2, 40)])
def test_gradients_of_wide_and_narrow_products(shape, x64):
    """One product, or blocks with the wider factor on the right."""
    channels, out = shape
    left = jax.random.normal(jax.random.key(0), (64, channels), jnp.float64)
    right = jax.random.normal(jax.random.key(1), (channels, out), jnp.float64)
    weights = jnp.sin(jnp.arange(64.0 * out)).reshape(64, out)
    ours = jax.grad(lambda b: jnp.sum(weights * tall_product(left, b, False)))(right)
    np.testing.assert_allclose(ours, left.T @ weights, atol=1e-11)


@pytest.mark.parametrize("activate", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 1)])  # either factor the wider; one output
def test_channel_products_and_their_gradients(shape, activate, x64):
    field = jax.random.normal(jax.random.key(0), (4, shape[0], 7), jnp.float64)
    matrix = jax.random.normal(jax.random.key(1), shape, jnp.float64)

    def reference(a, b):
        return jnp.einsum("nci,cd->ndi", jax.nn.gelu(a) if activate else a, b)

    def gradients(product):
        return jax.grad(lambda a, b: jnp.sum(jnp.sin(product(a, b))), (0, 1))(field, matrix)

    ours = gradients(lambda a, b: channel_product(a, b, activate))
    for value, expected in zip(ours, gradients(reference), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)


@pytest.mark.parametrize("rows", [6, 40])  # a sum of outer products, a matrix product
def test_mode_products_and_their_gradients(rows, x64):
    left = jax.random.normal(jax.random.key(0), (7, rows, 5), jnp.float64)
    right = jax.random.normal(jax.random.key(1), (7, 5, 3), jnp.float64)

    def gradients(product):
        return jax.grad(lambda a, b: jnp.sum(jnp.sin(product(a, b))), (0, 1))(left, right)

    for value, expected in zip(gradients(mode_product), gradients(jnp.matmul), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)
