"""Programs are compiled before the steps that need them, in the order in which steps do."""

import threading
from collections.abc import Callable


class Ahead:
    """Does something for each of `steps`, in order, in a thread, before the step itself is due.

    The compiler releases Python's lock, so that steps run meanwhile on other cores. There is one
    thread: the program that is needed next is never held up by one that is needed later. A context
    manager; leaving it waits for what is being compiled.

    Args:
      do: what is done for a step, given its number. Its exception is raised where the step waits.
      steps: numbers of steps.
      depth: how many steps it may be ahead of the last one that was waited for. Before any was, it
        does the first one only: whatever else a run begins with needs the cores.
    """

    def __init__(self, do: Callable[[int], None], steps: range, *, depth: int):
        self._do, self._steps, self._depth = do, steps, depth
        self._done = steps.start  # steps below are done
        self._due = steps.start - depth + 1  # work is done for steps below this one plus `depth`
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="compiler", daemon=True)

    def __enter__(self) -> "Ahead":
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def is_done(self, step: int) -> bool:
        """Whether `wait_for` would return at once."""
        return self._done > step

    def wait_for(self, step: int) -> None:
        """Returns when everything up to `step` is done; steps may come again, in any order."""
        with self._changed:
            # Woken for few steps at a time, the thread takes little of a core that these need.
            if step >= self._due + self._depth // 2 or step >= self._done:
                self._due = step
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._done > step or self._error is not None)
            if self._done <= step:
                raise self._error

    def _work(self) -> None:
        try:
            for step in self._steps:
                with self._changed:
                    self._changed.wait_for(lambda: self._closed or self._is_near(step))  # noqa: B023
                    if self._closed:
                        return
                self._do(step)
                with self._changed:
                    self._done = step + 1
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _is_near(self, step: int) -> bool:
        return step < self._due + self._depth
