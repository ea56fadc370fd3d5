"""The rows of a campaign and the processes that run them; `experiments.campaign` is its command."""

import argparse
import contextlib
import fcntl
import functools
import importlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from ml_collections import ConfigDict

from experiments import naming, outcome, tables
from sino_jax.train import interruption

LOG, LOCK = "log.txt", "campaign.lock"


class Row(NamedTuple):
    """One line of a campaign file.

    Attributes:
      experiment: its name.
      config: see `experiments.configs`.
      workdir: of its run.
      kept: the copy of its result.
    """

    experiment: str
    config: ConfigDict
    workdir: pathlib.Path
    kept: pathlib.Path

    @property
    def data(self) -> str:
        """The name of its data sets, of one equation and config."""
        return f"{self.config.equation} {self.config.data}"

    @property
    def name(self) -> str:
        preset = self.workdir.parent.parent.name
        return f"{self.experiment} {preset}: {naming.label(self.config)}, {self.workdir.name}"


class Process(NamedTuple):
    """A row, or the data of one (`log` tells), that is under way on some cores."""

    row: Row
    process: subprocess.Popen
    worker: int
    log: pathlib.Path
    lock: IO | None = None


def read(path: pathlib.Path, places: argparse.Namespace) -> list[Row]:
    """The rows of a file; a ValueError names the line that is none."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            experiment, text = words
            config = importlib.import_module(f"experiments.configs.{experiment}").get_config(text)
        except (ValueError, ModuleNotFoundError) as error:
            raise ValueError(f"{path}, line {number}, {line!r}: {error}") from error
        workdir = naming.directory(config, places.runs)
        kept = places.results / workdir.parent.relative_to(places.runs) / f"{workdir.name}.json"
        rows.append(Row(experiment, config, workdir, kept))
    if not rows:
        raise ValueError(f"{path} has no rows")
    return list({row.workdir: row for row in rows}.values())


class Queue:
    """What is done, under way and left; `advance` starts and collects processes.

    Args:
      rows: in the order in which they are to be run.
      places: `data`, `runs` and `results` directories, and `cores`, one set for each worker.
    """

    def __init__(self, rows: Sequence[Row], places: argparse.Namespace):
        self.rows, self._places = rows, places
        self.under_way: list[Process] = []
        self._failed: list[pathlib.Path] = []
        self._data_done: set[str] = set()

    def done(self, row: Row) -> dict[str, Any] | None:
        """A row's result if there is one: of its run, or kept from a run that is gone."""
        path = row.workdir / outcome.RESULT
        if path.exists():
            return tables.read(path)
        kept = tables.read(row.kept) if row.kept.exists() else None
        return kept if kept and outcome.is_of(row.config, kept) else None

    def left(self) -> list[Row]:
        """Rows that are neither done, nor failed, nor under way here."""
        busy = {process.row.workdir for process in self.under_way if process.lock}
        gone = busy | set(self._failed)
        return [row for row in self.rows if row.workdir not in gone and self.done(row) is None]

    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.workdir in self._failed]

    def finished(self) -> bool:
        """Whether nothing is left, and all results are kept: also those of rows that went on alone
        when an earlier campaign was killed."""
        kept = all(row.kept.exists() for row in self.rows if row.workdir not in self._failed)
        return kept and not self.under_way and not self.left()

    def advance(self) -> list[str]:
        """Collects what has ended and starts what can start; says so in a line each."""
        events = [self._collect(process) for process in self.under_way if _ended(process)]
        self.under_way = [process for process in self.under_way if process.process.poll() is None]
        for row in self.rows:
            if not row.kept.exists() and (result := self.done(row)):
                tables.write(result, row.kept)
        busy = {process.worker for process in self.under_way}
        for worker in range(len(self._places.cores)):
            if worker not in busy and (started := self._start(worker)):
                self.under_way.append(started)
                what = "data of " if started.lock is None else ""
                events.append(f"started {what}{started.row.name}")
        return events

    def interrupt(self) -> None:
        """Asks all processes to save and stop, and waits for them."""
        for process in self.under_way:
            process.process.send_signal(signal.SIGTERM)
        for process in self.under_way:
            process.process.wait()

    def _start(self, worker: int) -> Process | None:
        making = {process.row.data for process in self.under_way if process.lock is None}
        for row in self.left():
            if row.data in making:
                continue
            row.workdir.mkdir(parents=True, exist_ok=True)
            if row.data not in self._data_done:
                log = row.workdir / "data.txt"
                return Process(row, self._run(worker, self._data_command(row), log), worker, log)
            if (lock := _locked(row.workdir / LOCK)) is None:
                continue  # another campaign runs it
            if self.done(row) is not None:
                lock.close()
                continue
            log = row.workdir / LOG
            process = self._run(worker, self._command(row), log, lock)
            return Process(row, process, worker, log, lock)
        return None

    def _collect(self, process: Process) -> str:
        row, code = process.row, process.process.wait()
        if process.lock is None:
            if code == 0:
                self._data_done.add(row.data)
                return f"data of {row.name}: ready"
            self._failed += [other.workdir for other in self.rows if other.data == row.data]
            return f"data of {row.name}: failed, see {process.log}"
        process.lock.close()
        if code == 0 and (result := self.done(row)):
            tables.write(result, row.kept)
            errors = sorted(outcome.errors_by_scale(result).items())
            listed = ", ".join(f"{scale:g}: {100 * error:.2f}" for scale, error in errors)
            return f"finished {row.name}: {result['core_minutes']:.1f} core-minutes; % {listed}"
        if code == interruption.EXIT_CODE:
            return f"stopped {row.name}"
        self._failed.append(row.workdir)
        return f"failed {row.name}, see {process.log}"

    def _command(self, row: Row) -> list[str]:
        text = naming.config_text(row.config)
        return [
            sys.executable, "-m", f"experiments.{row.experiment}",
            f"--config=experiments/configs/{row.experiment}.py:{text}",
            f"--data={self._places.data}", f"--runs={self._places.runs}",
        ]  # fmt: skip

    def _data_command(self, row: Row) -> list[str]:
        return [
            sys.executable, "-m", "solvers.generate",
            f"--config=solvers/configs/{row.config.equation}.py:{row.config.data}",
            f"--out={self._places.data}",
        ]  # fmt: skip

    def _run(
        self, worker: int, command: list[str], log: pathlib.Path, lock: IO | None = None
    ) -> subprocess.Popen:
        bind = functools.partial(os.sched_setaffinity, 0, self._places.cores[worker])
        with log.open("a") as stream:
            # A group of its own: Ctrl-C reaches the campaign only, which passes it on.
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                preexec_fn=bind,
                process_group=0,
                # It holds the lock, too: should the campaign be killed, the row stays taken.
                pass_fds=() if lock is None else (lock.fileno(),),
            )


def _ended(process: Process) -> bool:
    return process.process.poll() is not None


def _locked(path: pathlib.Path) -> IO | None:
    """The open file with a lock that ends with this process; None if another one has it."""
    file = path.open("a")
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file
    file.close()
    return None
