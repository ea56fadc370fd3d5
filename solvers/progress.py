"""A line on the terminal that says how far a computation is; silent when there is no terminal."""

import io
import sys
import time


class Progress:
    """``darcy train-4  [######....]  154/256  31.2 samples/s  0:00:03 left``

    The first block is announced as a compilation, and neither it nor samples of an earlier start
    count for the rate.

    Args:
      title: what is being made.
      total: samples in all.
      done: samples that were there before.
      stream: where to draw; standard error by default.
    """

    def __init__(self, title: str, total: int, done: int = 0, stream: io.TextIOBase | None = None):
        self.title, self.total, self.done, self.stream = title, total, done, stream or sys.stderr
        self.drawn = False
        self.counted: tuple[int, float] | None = None  # samples and time after the first block
        self._draw("compiling the solver ...")

    def advance(self, samples: int) -> None:
        """Counts samples that have been finished and draws the line anew."""
        self.done += samples
        now = time.monotonic()
        speed = ""
        if self.counted is None:
            self.counted = (self.done, now)
        else:
            before, start = self.counted
            rate = max(self.done - before, 1) / max(now - start, 1e-9)
            left = round((self.total - self.done) / rate)
            clock = f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"
            speed = f"  {rate:.3g} samples/s  {clock} left"
        bar = "#" * (20 * self.done // self.total)
        self._draw(f"[{bar:.<20}]  {self.done}/{self.total}{speed}")

    def close(self) -> None:
        """Ends the line, so that what is printed next begins a new one."""
        if self.drawn:
            self.stream.write("\n")

    def _draw(self, text: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\033[K{self.title}  {text}")
            self.stream.flush()
            self.drawn = True
