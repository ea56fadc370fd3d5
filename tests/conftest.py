"""Strict numerics for every test: no silent broadcasting between ranks or dtypes."""

import os

import pytest

# Tests compile far more than they compute: machine code is not optimised, and is made without the
# slower of XLA's two code generators. The flags are read when JAX starts, by this process and by
# those that tests start.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
)

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


# The files that take longest; begun first, they do not keep one worker busy when others have ended.
LONG = (
    "experiments/test_experiments.py",
    "experiments/test_darcy.py",
    "models/test_models.py",
    "train/test_failures.py",
    "train/test_trainer.py",
    "test_docs.py",
    "test_faults.py",
    "test_programs.py",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))


@pytest.fixture
def x64():
    """Runs a test in float64; the library itself never switches precision."""
    with jax.enable_x64(True):
        yield
