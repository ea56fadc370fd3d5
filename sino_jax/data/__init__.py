"""Data sets on disk: open them, and draw batches as a pure function of (seed, step)."""

from sino_jax.data.dataset import Dataset, DatasetError, load, statistics

__all__ = ["Dataset", "DatasetError", "load", "statistics"]
