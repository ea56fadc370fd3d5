"""Ctrl-C and SIGTERM: finish the step, save, and leave with an exit code of its own."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# EX_TEMPFAIL of sysexits.h: not done yet, start again. No Python error and no signal gives it.
EXIT_CODE = 75
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(SystemExit):
    """The run was asked to stop and saved its state; uncaught, the process exits with `EXIT_CODE`.

    Attributes:
      step: number of steps that are saved.
    """

    def __init__(self, step: int):
        super().__init__(EXIT_CODE)
        self.step = step


class Request:
    """True once a signal asked to stop."""

    def __init__(self):
        self.received = False

    def __bool__(self) -> bool:
        return self.received


@contextmanager
def listen() -> Iterator[Request]:
    """Turns the first SIGINT or SIGTERM into a request; a second one ends the process at once.

    Handlers can be set in the main thread only; elsewhere signals keep their meaning.
    """
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def on_signal(number, frame):
        del number, frame
        request.received = True
        # The system's own action needs no interpreter: it ends even a long compilation.
        for other in SIGNALS:
            signal.signal(other, signal.SIG_DFL)

    previous = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
