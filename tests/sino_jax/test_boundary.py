"""Traces, their extension to channels, and the magnitude that normalises by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import boundary, channels
from sino_jax.boundary import Side


def field(shape, dtype="f4"):
    values = np.random.default_rng(0).normal(size=shape)
    return jnp.asarray(values + 1j * values[::-1] if dtype == "c8" else values, dtype)


@pytest.mark.parametrize("shape", [(5, 7, 1), (4, 6, 3, 2)])
@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_extended_trace_is_constant_along_its_axis_and_holds_the_trace(shape, dtype):
    u = field(shape, dtype)
    for side in boundary.all_sides(len(shape) - 1):
        extended = boundary.extended_traces(u, [side])
        assert extended.shape == u.shape
        for index in range(u.shape[side.axis]):
            np.testing.assert_array_equal(
                jnp.take(extended, index, axis=side.axis), boundary.trace(u, side)
            )


def test_sides_are_ordered_axis_by_axis():
    assert boundary.all_sides(2) == (
        Side(0, "low"),
        Side(0, "high"),
        Side(1, "low"),
        Side(1, "high"),
    )


def test_magnitude_is_the_standard_deviation_per_example_and_scales_with_the_data():
    channels = field((3, 5, 7, 4)) + jnp.float32(10.0)
    np.testing.assert_allclose(
        boundary.magnitude(channels), np.std(channels, axis=(1, 2, 3)), rtol=1e-5
    )
    np.testing.assert_allclose(
        boundary.magnitude(3 * channels), 3 * boundary.magnitude(channels), rtol=1e-5
    )


@pytest.mark.parametrize("power", [-110, -70, 100])
def test_magnitude_is_homogeneous_where_squares_leave_the_range(power):
    channels = field((3, 5, 7, 4)) + jnp.float32(10.0)
    factor = jnp.float32(2.0**power)
    np.testing.assert_array_equal(
        boundary.magnitude(factor * channels), factor * boundary.magnitude(channels)
    )


@pytest.mark.parametrize(("constant", "expected"), [(0.0, 0.0), (-2.5, 2.5)])
def test_magnitude_of_constant_boundary_data_has_a_gradient(constant, expected):
    channels = jnp.full((1, 5, 7, 4), constant, jnp.float32)
    np.testing.assert_allclose(boundary.magnitude(channels), [expected], rtol=1e-6)
    gradient = jax.grad(lambda c: boundary.magnitude(c).sum())(channels)
    assert jnp.isfinite(gradient).all()


def test_complex_fields_round_trip_through_real_channels():
    u = field((4, 5, 3), "c8")
    real = channels.to_channels(u)
    assert real.shape == (4, 5, 6)
    np.testing.assert_array_equal(real[..., 0], u[..., 0].real)
    np.testing.assert_array_equal(real[..., 1], u[..., 0].imag)
    np.testing.assert_array_equal(channels.from_channels(real), u)


def test_from_channels_refuses_an_odd_number():
    with pytest.raises(ValueError, match=r"\(re, im\) pairs, got 3"):
        channels.from_channels(jnp.ones((4, 4, 3)))
