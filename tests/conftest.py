"""Strict numerics for every test: no silent broadcasting between ranks or dtypes."""

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def x64():
    """Runs a test in float64; the library itself never switches precision."""
    with jax.enable_x64(True):
        yield
