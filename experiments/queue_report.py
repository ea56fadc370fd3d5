"""The state of a campaign as a table, with times that are left."""

import re
import statistics
import sys
import time

from experiments.queue import Process, Queue, Row

# As the trainer's log has it: "[##...] 100/1600  loss 0.44  12.9 steps/s  1:56 left".
PROGRESS = re.compile(r"\] (\d+)/(\d+) .*?(\S+) left")


class Screen:
    """Shows the table of a queue: over and over on a terminal, now and then elsewhere."""

    def __init__(self, queue: Queue):
        self._queue, self._shown, self._last = queue, 0, 0.0

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def message(self, text: str) -> None:
        self.close()
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def refresh(self, *, every: float | None) -> None:
        """Draws the table again; with `every`, after so many seconds only."""
        if every is not None and time.monotonic() - self._last < every:
            return
        self._last = time.monotonic()
        self.close()
        text = table(self._queue)
        print(text, flush=True)
        self._shown = text.count("\n") + 1 if sys.stdout.isatty() else 0

    def close(self) -> None:
        """Removes the table from a terminal."""
        if self._shown:
            sys.stdout.write(f"\x1b[{self._shown}F\x1b[0J")
            self._shown = 0


def table(queue: Queue) -> str:
    """One line for each row, and a summary."""
    lines, minutes = [], 0.0
    running = {process.row.workdir: process for process in queue.under_way}
    failed = {row.workdir for row in queue.failed()}
    known = [(row, result) for row in queue.rows if (result := queue.done(row))]
    for row in queue.rows:
        if result := queue.done(row):
            state = f"done, {result['core_minutes']:.1f} core-minutes"
        elif row.workdir in running:
            state = progress(running[row.workdir])
            minutes += (estimate(row, known) or 0) / 2
        elif row.workdir in failed:
            state = "failed"
        else:
            expected = estimate(row, known)
            minutes += expected or 0
            state = "left" + (f", about {expected:.0f} core-minutes" if expected else "")
        lines.append(f"{row.name:64s} {state}")
    spent = sum(result["core_minutes"] for _, result in known)
    summary = (
        f"{len(known)} of {len(queue.rows)} rows done in {spent:.0f} core-minutes, "
        f"{len(running)} under way, about {minutes:.0f} core-minutes left"
    )
    return "\n".join([*lines, summary])


def progress(process: Process) -> str:
    """What the log of a process under way says last."""
    if process.lock is None:
        return "its data is being made"
    found = PROGRESS.findall(process.log.read_text(errors="replace")[-2000:])
    if not found:
        return "starting"
    step, total, left = found[-1]
    return f"step {step} of {total}, {left} left"


def estimate(row: Row, known) -> float | None:
    """Core-minutes that a row will take: as finished rows of the same kind, else of the preset."""

    def alike(other: Row, fields) -> bool:
        return all(other.config[field] == row.config[field] for field in fields)

    for fields in (
        ("equation", "preset", "model", "consistency", "base", "changes"),
        ("equation", "preset", "consistency"),
        ("equation", "preset"),
    ):
        if times := [result["core_minutes"] for other, result in known if alike(other, fields)]:
            return statistics.mean(times)
    return None
