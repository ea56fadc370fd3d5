"""Progress of a run: JSON lines always, a bar on a terminal or plain lines elsewhere, and extras.

``workdir/metrics.jsonl`` holds one object a line: ``{"kind": ..., "step": ..., "time": ..., ...}``.
A run that resumes at step n first removes the lines after n, so that the file reads as if the run
had never been interrupted.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import pathlib
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import jax

from sino_jax import files

FILE = "metrics.jsonl"


@runtime_checkable
class Sink(Protocol):
    """A further place for scalars, such as TensorBoard."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class Logger:
    """Writes the metrics of a run. A context manager.

    Args:
      workdir: directory of the run; it must exist.
      total_steps: length of the run, for the bar and the time left.
      active: False on all but one process: nothing is written then.
      stream: where the bar or the lines go.
      sinks: further places for the scalars.
      show_errors: False if the caller shows the errors of a finished run itself.
    """

    def __init__(
        self,
        workdir: str | os.PathLike,
        *,
        total_steps: int,
        active: bool = True,
        stream: io.TextIOBase | None = None,
        sinks: tuple[Sink, ...] = (),
        show_errors: bool = True,
    ):
        self._active = active
        self._show_errors = show_errors
        self._total = total_steps
        self._stream = sys.stderr if stream is None else stream
        self._on_terminal = _is_terminal(self._stream)
        self._sinks = sinks if active else ()
        self._path = pathlib.Path(workdir) / FILE
        if active:
            _cut_torn_line(self._path)
        self._file = self._path.open("a") if active else None
        self._width = 0
        self._since = (0, time.monotonic())

    def __enter__(self) -> "Logger":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def rewind(self, step: int) -> None:
        """Prepares for the steps after `step`: lines of an earlier attempt at them are removed."""
        self._since = (step, time.monotonic())
        if self._active:
            self._file.close()
            _remove_after(self._path, step)
            self._file = self._path.open("a")

    @contextlib.contextmanager
    def compiling(self, number: int) -> Iterator[None]:
        """Around the first step of a program, which is not counted in the speed."""
        once = "once; kept for later runs" if _programs_are_kept() else "once"
        with self.uncounted(f"compiling program {number} ({once}) ..."):
            yield
        before, then = self._since
        self._since = (before + 1, then)

    @contextlib.contextmanager
    def uncounted(self, text: str) -> Iterator[None]:
        """Around what is no training: says why the bar stands still; its time is not counted."""
        start = time.monotonic()
        self._show(text, transient=True)
        yield
        before, then = self._since
        self._since = (before, then + time.monotonic() - start)

    def train(self, step: int, values: Mapping[str, float]) -> None:
        """Averages over the last steps, with the speed since the call before."""
        before, then = self._since
        now = time.monotonic()
        self._since = (step, now)
        # Steps that compiled are not among them: what is left will hardly compile any more.
        speed = (step - before) / max(now - then, 1e-9)
        self.record("train", step, {**values, "steps_per_second": speed})
        line = progress_line(step, self._total, values.get("loss", math.nan), speed)
        self._show(line, transient=True)

    def evaluation(self, step: int, values: Mapping[str, float]) -> None:
        """Errors on test data; those of the last step are shown by `summary`."""
        self.record("evaluation", step, values)
        if step < self._total:
            errors = by_dataset(values)
            metric = next(iter(next(iter(errors.values()))))
            listed = "  ".join(f"{name} {100 * e[metric]:.4g}" for name, e in errors.items())
            self._show(f"step {step}: {metric} in percent: {listed}")

    def message(self, text: str, *, step: int | None = None) -> None:
        """Something that happened, in words."""
        self.record("message", step, {"text": text})
        self._show(text)

    def summary(self, step: int, values: Mapping[str, Any]) -> None:
        """The closing lines of a run: steps, seconds, workdir, and ``data set/metric`` errors."""
        self.record("summary", step, values)
        self._show(self._closing(values))

    def show_summary(self) -> bool:
        """Shows the summary again if the run has one; returns whether it has."""
        entries = _parse(self._path) if self._active else []
        summaries = [entry for entry in entries if entry["kind"] == "summary"]
        if summaries:
            values = {k: v for k, v in summaries[-1].items() if k not in ("kind", "step", "time")}
            self._show(self._closing(values))
        return bool(summaries)

    def _closing(self, values: Mapping[str, Any]) -> str:
        line = "finished: {steps} steps in {time}, {workdir}".format(
            time=duration(values["seconds"]), **values
        )
        errors = by_dataset(values)
        return f"{line}\n{error_table(errors)}" if errors and self._show_errors else line

    def record(self, kind: str, step: int | None, values: Mapping[str, Any]) -> None:
        """One JSON line, and the scalars among `values` to the sinks; nothing is shown."""
        if not self._active:
            return
        entry = {"kind": kind, "step": step, "time": time.time(), **values}
        # A NaN is no JSON; what went wrong is exactly what a reader looks for, so keep its name.
        self._file.write(json.dumps(_finite_or_name(entry)) + "\n")
        self._file.flush()
        scalars = {f"{kind}/{k}": v for k, v in values.items() if isinstance(v, int | float)}
        for sink in self._sinks:
            if scalars:
                sink.scalars(step, scalars)

    def close(self) -> None:
        """Ends the bar's line and closes all files; may be called twice."""
        if self._active and self._width:
            self._write("\n")
            self._width = 0
        if self._file is not None:
            self._file.close()
        for sink in self._sinks:
            sink.close()
        self._sinks = ()

    def _show(self, text: str, *, transient: bool = False) -> None:
        if not self._active:
            return
        if self._on_terminal:
            # A bar overwrites itself; blanks remove what is left of a longer line.
            first, *rest = text.split("\n")
            covered = "\n".join([first.ljust(self._width), *rest])
            self._write("\r" + covered + ("" if transient else "\n"))
            self._width = len(text) if transient else 0
        else:
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        """Shows text. Nobody's watching is no reason to end a run: all is in the file, too."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a broken pipe; a closed stream
            self._stream = None


class TensorBoard:
    """Scalars as TensorBoard events in ``workdir/tensorboard``; needs the extra `tensorboard`."""

    def __init__(self, workdir: str | os.PathLike):
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(os.fspath(pathlib.Path(workdir) / "tensorboard"))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Scalars in a W&B project; needs the extra `wandb`. A resumed run continues its curve."""

    def __init__(self, workdir: str | os.PathLike, project: str, config: Mapping[str, Any]):
        import wandb

        place = pathlib.Path(workdir).absolute()
        self._run = wandb.init(
            project=project,
            dir=os.fspath(workdir),
            name="/".join(place.parts[-3:]),
            id=run_id(place, config),
            resume="allow",
            config=dict(config),
        )

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


def run_id(workdir: pathlib.Path, config: Mapping[str, Any]) -> str:
    """An identifier of its own for each directory and config, the same whenever a run resumes."""
    text = json.dumps([str(workdir), config], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def progress_line(step: int, total: int, loss: float, speed: float, *, width: int = 24) -> str:
    """``[#####.......] 120/500  loss 0.0312  8.1 steps/s  0:47 left``."""
    filled = round(width * step / max(total, 1))
    left = duration((total - step) / speed) if speed > 0 else "?"
    bar = "#" * filled + "." * (width - filled)
    return f"[{bar}] {step}/{total}  loss {loss:.4g}  {speed:.3g} steps/s  {left} left"


def error_table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Errors in percent: a line for each data set, in the order of scales, a column a metric."""
    metrics = list(next(iter(results.values())))
    width = max(len("data set"), *map(len, results))
    lines = [
        name.ljust(width)
        + "".join(f"  {100 * results[name][metric]:{len(metric)}.3f}" for metric in metrics)
        for name in sorted(results, key=_by_scale)
    ]
    head = "data set".ljust(width) + "".join(f"  {metric}" for metric in metrics)
    return "\n".join([f"{head}   (percent)", *lines])


def by_dataset(values: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Errors ``{"test-4/relative_l2": ...}`` as ``{"test-4": {"relative_l2": ...}}``, by scale."""
    found: dict[str, dict[str, float]] = {}
    for name in sorted((name for name in values if "/" in name), key=_by_scale):
        dataset, metric = name.rsplit("/", 1)
        found.setdefault(dataset, {})[metric] = float(values[name])
    return found


def _by_scale(name: str) -> list[str | float]:
    """Sorts "test-4" before "test-16"."""
    dataset = name.rsplit("/", 1)[0]
    parts = re.split(r"(\d+(?:\.\d+)?)", dataset)
    return [float(part) if i % 2 else part for i, part in enumerate(parts)]


def duration(seconds: float) -> str:
    """``h:mm:ss``, or ``m:ss`` under an hour."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def read(workdir: str | os.PathLike, kind: str | None = None) -> list[dict[str, Any]]:
    """The entries of a run's metrics, of one kind or of all; a torn last line is left out."""
    path = pathlib.Path(workdir) / FILE
    entries = _parse(path) if path.exists() else []
    return [entry for entry in entries if kind in (None, entry["kind"])]


def _parse(path: pathlib.Path) -> list[dict[str, Any]]:
    """The entries of a file; what a crash made of others is left out."""
    entries = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and {"kind", "step"} <= entry.keys():
            entries.append(entry)
    return entries


def _cut_torn_line(path: pathlib.Path) -> None:
    """Removes an unfinished last line, which a killed process leaves, before more is appended."""
    if path.exists():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)


def _remove_after(path: pathlib.Path, step: int) -> None:
    if path.exists():
        kept = [entry for entry in _parse(path) if entry["step"] is None or entry["step"] <= step]
        files.write_text(path, "".join(json.dumps(entry) + "\n" for entry in kept))


def _is_terminal(stream: io.TextIOBase | None) -> bool:
    """Whether a line can be written over: on a terminal, and below a notebook's cell."""
    try:
        in_cell = type(stream).__module__.startswith("ipykernel")
        return stream is not None and (in_cell or stream.isatty())
    except ValueError:  # closed
        return False


def _programs_are_kept() -> bool:
    """Whether compiled programs outlive this process."""
    return bool(jax.config.jax_enable_compilation_cache and jax.config.jax_compilation_cache_dir)


def _finite_or_name(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite_or_name(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
