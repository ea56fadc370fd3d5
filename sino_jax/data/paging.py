"""Reading parts of memory-mapped arrays: these parts, all at once, and nothing else.

A page that is not in memory is read when it is touched, one after another, and the system reads
ahead around it, often megabytes, since it expects neighbours to follow. Shuffled examples have no
such neighbours.
"""

import mmap

import numpy as np


def announce(array: np.ndarray, starts: np.ndarray, length: int) -> None:
    """Tells the system that `length` bytes from each of `starts` on will be read next.

    It then reads their pages together, in the background. Nothing happens for arrays in memory, and
    on systems without `madvise`.

    Args:
      array: a memory-mapped array as `numpy.load` returns it.
      starts: distances in bytes from the array's first element.
      length: in bytes.
    """
    if not isinstance(array, np.memmap) or not hasattr(mmap, "MADV_WILLNEED"):
        return
    for start in (array.offset % mmap.ALLOCATIONGRANULARITY + starts).tolist():
        page = start - start % mmap.PAGESIZE
        array._mmap.madvise(mmap.MADV_WILLNEED, page, start + length - page)
