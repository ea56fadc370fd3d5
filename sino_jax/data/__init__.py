"""Data sets on disk: make and open them, and draw batches as a pure function of (seed, step)."""

from sino_jax.data.arrays import from_arrays
from sino_jax.data.dataset import Dataset, DatasetError, load, statistics

__all__ = ["Dataset", "DatasetError", "from_arrays", "load", "statistics"]
