"""Announced parts of memory-mapped arrays are in memory before they are touched, others are not."""

import mmap
import os
import resource
import time

import numpy as np
import pytest

from sino_jax.data.paging import announce


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="needs posix_fadvise to drop pages")
def test_announced_rows_are_read_in_the_background(tmp_path):
    path = tmp_path / "rows.npy"
    rows = np.arange(64 * 2**14, dtype=np.float32).reshape(64, -1)  # 64 kB each
    np.save(path, rows)
    array = np.load(path, mmap_mode="r")
    os.sync()
    array._mmap.madvise(mmap.MADV_DONTNEED)
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    chosen = np.array([3, 40, 63])
    announce(array, chosen * array.strides[0], array.strides[0])
    time.sleep(0.2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    np.testing.assert_array_equal(array[chosen], rows[chosen])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_majflt == before


def test_arrays_in_memory_need_nothing():
    announce(np.zeros((3, 4)), np.array([0, 32]), 32)
