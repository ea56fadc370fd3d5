"""Reading ahead: the next batches are loaded while the device computes."""

import threading
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
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
    # Two bare queues: an executor takes several times as long, on a core that the step needs.
    loaded, allowed = SimpleQueue(), SimpleQueue()
    closed = threading.Event()

    def work():
        try:
            for step in steps:
                allowed.get()
                if closed.is_set():
                    return
                loaded.put((step, load(step), None))
            loaded.put(None)
        except BaseException as error:
            loaded.put((None, None, error))

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    for _ in range(depth):
        allowed.put(True)
    thread.start()
    try:
        while (item := loaded.get()) is not None:
            step, batch, error = item
            if error is not None:
                raise error
            allowed.put(True)
            yield step, batch
            del item, batch  # before the next one is waited for: a batch may be large
    finally:
        closed.set()
        allowed.put(True)
        thread.join()
