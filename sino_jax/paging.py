"""Reading parts of memory-mapped arrays: these parts, all at once, and nothing else.

A page that is not in memory is read when it is touched, one after another, and the system reads
ahead around it, often megabytes, since it expects neighbours to follow. Shuffled examples have no
such neighbours.
"""

import mmap
from collections.abc import Iterable

import numpy as np


def announce(array: np.ndarray, parts: Iterable[np.ndarray]) -> None:
    """Tells the system which contiguous views of a memory-mapped array will be read next.

    It then reads their pages together, in the background. Nothing happens for arrays in memory, and
    on systems without `madvise`.
    """
    if not isinstance(array, np.memmap) or not hasattr(mmap, "MADV_WILLNEED"):
        return
    begin = array.ctypes.data - array.offset % mmap.ALLOCATIONGRANULARITY
    for part in parts:
        first = part.ctypes.data - begin
        page = first - first % mmap.PAGESIZE
        array._mmap.madvise(mmap.MADV_WILLNEED, page, first + part.nbytes - page)
