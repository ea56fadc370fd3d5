"""Operations with gradients of their own, against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax.activation import gelu
from sino_jax.products import tall_product


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
