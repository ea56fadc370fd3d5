"""Scale and frequency features against their formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax.nn import bands, embedding


def test_scale_features_run_from_one_to_the_scale(x64):
    scale = jnp.array([0.5, 7.0, 1000.0])
    features = embedding.scale_features(scale, 5)
    np.testing.assert_allclose(features[:, 0], 1.0)
    np.testing.assert_allclose(features[:, -1], scale)
    np.testing.assert_allclose(features, np.asarray(scale)[:, None] ** (np.arange(5) / 4))


def test_log_scale_is_embedded_by_its_powers_and_finite_below_one():
    scale = jnp.array([0.1, 1.0, 10000.0])
    features = embedding.scale_features(scale, 3, log=True)
    np.testing.assert_allclose(features[:, -1], np.log1p(np.asarray(scale)), rtol=1e-6)
    np.testing.assert_allclose(features[:, 1] ** 2, features[:, 2], rtol=1e-6)


def test_component_features_see_each_absolute_component():
    modes, count = (4, 3), 3
    features = embedding.component_features(modes, count)
    assert features.shape == (*bands.band_shape(modes), 2 * count)
    # (ξ_0, ξ_1) = (3, -2) is at index (3, 0) and has the features of (3, 2), at index (3, 4)
    expected = [1, 3**0.5, 3, 1, 2**0.5, 2]
    np.testing.assert_allclose(features[3, 0], expected)
    np.testing.assert_allclose(features[3, 4], expected)
    np.testing.assert_array_equal(features[0, 2], 0.0)  # the zero mode


def test_magnitude_features_are_powers_of_the_length():
    features = embedding.magnitude_features((4, 5), 3)
    np.testing.assert_allclose(features[3, 8], [1, 5**0.5, 5])  # |(3, 4)| = 5
    np.testing.assert_array_equal(features[0, 4], 0.0)


def test_one_feature_is_refused():
    with pytest.raises(ValueError, match="count must be at least 2"):
        embedding.scale_features(jnp.ones(1), 1)
