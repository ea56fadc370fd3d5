"""Ctrl-C and SIGTERM: finish the step, save, and leave with an exit code of its own."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sino_jax import runtime

# EX_TEMPFAIL of sysexits.h: not done yet, start again. No Python error and no signal gives it.
EXIT_CODE = 75
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ACKNOWLEDGEMENT = "\nstopping after this step, then saving (Ctrl-C again: at once, unsaved)\n"


class Interrupted(SystemExit):
    """The run was asked to stop and saved its state; uncaught, the process exits with `EXIT_CODE`.

    Attributes:
      step: number of steps that are saved.
    """

    def __init__(self, step: int):
        super().__init__(EXIT_CODE)
        self.step = step

    def __str__(self) -> str:
        return f"saved at step {self.step}; the same call resumes there"


class Request:
    """True once a signal asked to stop."""

    def __init__(self):
        self.received = False

    def __bool__(self) -> bool:
        return self.received


@contextmanager
def listen() -> Iterator[Request]:
    """Turns the first SIGINT or SIGTERM into a request; a second one ends the process at once.

    The first is acknowledged on stderr when it arrives, also while XLA compiles. In a notebook a
    second one raises a KeyboardInterrupt instead: the kernel goes on, and what was saved last is
    what the same call goes on from. Handlers can be set in the main thread only; elsewhere signals
    keep their meaning.
    """
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    in_notebook = runtime.in_notebook()

    def on_signal(number, frame):
        del number, frame
        request.received = True
        if in_notebook:
            runtime.say(ACKNOWLEDGEMENT.rstrip())
        # The system's own action needs no interpreter: it ends even a long compilation.
        for other in SIGNALS:
            signal.signal(other, previous[other] if in_notebook else signal.SIG_DFL)

    previous = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        with contextlib.nullcontext() if in_notebook else _watched():
            yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _watched() -> Iterator[None]:
    """Answers signals in a thread: the main one sees them only between two steps of Python.

    A second signal that comes before the main thread has seen the first ends the process here.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=_answer, args=(reading,), name="signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)  # ends the thread
        thread.join()
        os.close(reading)


def _answer(reading: int) -> None:
    received = 0
    while numbers := os.read(reading, 1):
        if numbers[0] not in SIGNALS:
            continue
        received += 1
        if received > 1:
            os._exit(128 + numbers[0])
        with contextlib.suppress(OSError):  # nobody reads it
            os.write(2, ACKNOWLEDGEMENT.encode())
