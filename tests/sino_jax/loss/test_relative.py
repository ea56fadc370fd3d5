"""Relative errors: values, complex safety, gradients, and refused shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import channels, loss

NODES = ("node", "node")


def random_field(seed, shape=(3, 6, 5, 1)):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), "c8")


def test_relative_l2_of_a_scaled_target_is_the_scaling_error():
    target = random_field(0)
    np.testing.assert_allclose(loss.relative_l2(0.75 * target, target), 0.25, rtol=1e-5)
    np.testing.assert_allclose(loss.relative_l2(1j * target, target), np.sqrt(2), rtol=1e-5)


def test_complex_error_equals_the_error_of_its_real_channels():
    prediction, target = random_field(1), random_field(2)
    np.testing.assert_allclose(
        loss.relative_l2(prediction, target),
        loss.relative_l2(channels.to_channels(prediction), channels.to_channels(target)),
        rtol=1e-5,
    )


def test_relative_h1_of_a_sine_is_its_closed_form(x64):
    """v = sin(mπx) has ||v||² + ||v'||² = (1 + m²π²)/2."""
    x = jnp.linspace(0, 1, 2001).reshape(1, -1, 1, 1) * jnp.ones((1, 1, 3, 1))
    target, error = jnp.sin(jnp.pi * x), jnp.sin(5 * jnp.pi * x)
    expected = np.sqrt((1 + 25 * np.pi**2) / (1 + np.pi**2))
    result = loss.relative_h1(target + error, target, centrings=NODES)
    np.testing.assert_allclose(result, expected, rtol=1e-3)


def test_central_half_sees_only_the_centre():
    target = jnp.ones((1, 16, 12, 1))
    outside = target.at[:, :4].set(9.0).at[:, :, -3:].set(9.0)
    assert loss.relative_l2_central_half(outside, target) == 0
    assert loss.relative_l2(outside, target) > 1
    inside = target.at[:, 4, 3].set(2.0)
    np.testing.assert_allclose(
        loss.relative_l2_central_half(inside, target), np.sqrt(1 / (8 * 6)), rtol=1e-6
    )
    assert loss.relative_l2_central_half(outside, target, axes=[0]) > 1


@pytest.mark.parametrize("function", [loss.relative_l2, loss.relative_l2_central_half])
def test_gradient_is_finite_at_a_perfect_prediction(function):
    target = jnp.ones((2, 8, 8, 1))
    gradient = jax.grad(lambda p: function(p, target).sum())(target)
    np.testing.assert_array_equal(gradient, jnp.zeros_like(target))


def test_mismatched_shapes_are_refused():
    with pytest.raises(ValueError, match=r"got \(2, 8, 8, 1\) and \(2, 8, 8, 2\)"):
        loss.relative_l2(jnp.ones((2, 8, 8, 1)), jnp.ones((2, 8, 8, 2)))
