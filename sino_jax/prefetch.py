"""Reading ahead: the next batches are loaded while the device computes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(
    load: Callable[[int], Item], steps: Iterable[int], *, depth: int = 2
) -> Iterator[tuple[int, Item]]:
    """``(step, load(step))`` for each of `steps`, with up to `depth` of them loaded in advance.

    One thread loads, in order. An exception of `load` is raised where its item is due. Closing the
    generator stops the thread.
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    executor = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    waiting = deque()
    try:
        for step in steps:
            waiting.append((step, executor.submit(load, step)))
            if len(waiting) > depth:
                number, future = waiting.popleft()
                yield number, future.result()
        while waiting:
            number, future = waiting.popleft()
            yield number, future.result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
