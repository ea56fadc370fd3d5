"""Strict numerics for every test: no silent broadcasting between ranks or dtypes."""

import os

import pytest

# Tests compile far more than they compute: unoptimised machine code halves their time. It is read
# when JAX starts, by this process and by those that tests start.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=0"

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def x64():
    """Runs a test in float64; the library itself never switches precision."""
    with jax.enable_x64(True):
        yield
