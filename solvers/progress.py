"""A line on the terminal that says how far a computation is; silent when there is no terminal."""

import io
import sys
import time


class Progress:
    """``darcy train-4  [######....]  154/256  31.2 samples/s  0:03 left``

    Args:
      title: what is being made.
      total: samples in all.
      done: samples that were there before; they do not count for the rate.
      stream: where to draw; standard error by default.
    """

    def __init__(self, title: str, total: int, done: int = 0, stream: io.TextIOBase | None = None):
        self.title, self.total, self.done, self.stream = title, total, done, stream or sys.stderr
        self.before, self.start, self.drawn = done, time.monotonic(), False

    def advance(self, samples: int) -> None:
        """Counts samples that have been finished and draws the line anew."""
        self.done += samples
        if not self.stream.isatty():
            return
        seconds = time.monotonic() - self.start
        rate = max(self.done - self.before, 1) / max(seconds, 1e-9)
        left = round((self.total - self.done) / rate)
        bar = "#" * (20 * self.done // self.total)
        self.stream.write(
            f"\r\033[K{self.title}  [{bar:.<20}]  {self.done}/{self.total}  "
            f"{rate:.3g} samples/s  {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
        )
        self.stream.flush()
        self.drawn = True

    def close(self) -> None:
        """Ends the line, so that what is printed next begins a new one."""
        if self.drawn:
            self.stream.write("\n")
