"""Data sets on disk: memory-mapped, self-describing, verified.

A data set is a directory: one equation at one scale and one split.

    meta.json          what the data is and how it was made; see `REQUIRED`
    <field>.npy        one file for each field, opened memory-mapped

It holds either independent problems, with the fields ``coefficient``, ``boundary`` and ``solution``
(those that the equation has, ``[sample, *grid, channel]``), or time series in the single field
``trajectory`` (``[sample, time, x, y, channel]``), of which a `Window` cuts past and future frames.
Fields are real or complex, as the equation is.

Examples are NumPy arrays in host memory: the caller decides where they go (`jax.device_put`, a
sharding). `sino_jax.data.batches` draws batches for training and evaluation.
"""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from sino_jax import files
from sino_jax.data.paging import announce
from sino_jax.types import Instance

FORMAT = "sino-jax data set"
FORMAT_VERSION = 1
META = "meta.json"
# What every meta.json states; `checksum` is that of all its other entries.
REQUIRED = (
    "format",
    "format_version",
    "equation",
    "split",
    "scale",
    "samples",
    "seed",
    "grid",  # axes, shape, centrings, extent: those of one sample or frame
    "window",  # how examples are cut from trajectories (see `Window`), else null
    "units",
    "fields",  # name -> shape, dtype, sha256 of the file
    "measures",  # name -> one number for each sample: solver residual, growth, spectral tail
    "limits",  # name -> the bound that every sample's measure keeps
    "config",  # everything needed to make the data again
    "versions",
    "checksum",
)


class DatasetError(ValueError):
    """A data set that must not be used: unfinished, damaged, or of another format."""


@dataclasses.dataclass(frozen=True)
class Window:
    """How examples are cut from a trajectory: `history` frames in, `horizon` frames out.

    Attributes:
      history: past frames, the example's coefficient.
      horizon: future frames, the example's solution.
      stride: frames between the beginnings of neighbouring windows.
      frames: where the frames go: "channel" gives ``[x, y, frame * channel]`` (one prediction a
        step), "axis" gives ``[x, y, frame, channel]`` (space-time problems).
      dt: time between frames.
    """

    history: int
    horizon: int
    stride: int
    frames: Literal["channel", "axis"]
    dt: float

    def __post_init__(self):
        if min(self.history, self.horizon, self.stride) < 1:
            raise ValueError(f"history, horizon and stride must be at least 1, got {self}")
        if self.frames not in ("channel", "axis"):
            raise ValueError(f'frames must be "channel" or "axis", got {self.frames!r}')

    @property
    def length(self) -> int:
        return self.history + self.horizon

    def count(self, frames: int) -> int:
        """Windows in a trajectory of `frames` frames."""
        return max(0, (frames - self.length) // self.stride + 1)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """An opened data set; `load` makes it. Its length is its number of examples.

    Attributes:
      path: its directory.
      meta: the contents of meta.json.
      fields: memory-mapped, read-only arrays by name.
      window: how examples are cut from trajectories; None for independent problems.
    """

    path: pathlib.Path
    meta: Mapping[str, Any]
    fields: Mapping[str, np.ndarray]
    window: Window | None = None

    def __post_init__(self):
        if (self.window is None) == ("trajectory" in self.fields):
            raise ValueError(f"{self.path}: a window is needed for trajectories, and only for them")
        if len(self) == 0:
            frames = self.fields["trajectory"].shape[1] if self.window else 0
            raise ValueError(f"{self.path}: {self.window} does not fit into {frames} frames")

    @property
    def equation(self) -> str:
        return self.meta["equation"]

    @property
    def split(self) -> str:
        return self.meta["split"]

    @property
    def scale(self) -> float:
        return self.meta["scale"]

    @property
    def grid(self) -> tuple[int, ...]:
        """Points of one example on each axis of its solution."""
        shape = tuple(self.meta["grid"]["shape"])
        by_axis = self.window is not None and self.window.frames == "axis"
        return (*shape, self.window.horizon) if by_axis else shape

    @property
    def digest(self) -> str:
        """Identifies the data: two data sets with one digest hold the same bytes."""
        return self.meta["checksum"]

    def __repr__(self) -> str:
        grid = " x ".join(map(str, self.grid))
        what = f"{self.equation}, {self.split}, scale {self.scale:g}"
        return f"Dataset({what}: {len(self)} examples on {grid} points, {str(self.path)!r})"

    def __len__(self) -> int:
        if self.window is None:
            return self.meta["samples"]
        trajectories, frames = self.fields["trajectory"].shape[:2]
        return trajectories * self.window.count(frames)

    def with_window(self, **changes) -> "Dataset":
        """The same trajectories cut otherwise, as in ``with_window(horizon=20, stride=20)``."""
        if self.window is None:
            raise ValueError(
                f"{self.path} holds independent problems: there is no window to change"
            )
        return dataclasses.replace(self, window=dataclasses.replace(self.window, **changes))

    def examples(self, ids: Sequence[int] | np.ndarray) -> Instance:
        """The examples numbered `ids` as one batch ``[len(ids), *grid, channel]``, copied."""
        ids = np.asarray(ids)
        if ids.size == 0 or ids.min() < 0 or ids.max() >= len(self):
            raise ValueError(f"ids must be some of 0...{len(self) - 1}, got {ids}")
        scale = np.full(len(ids), self.scale, np.float32)
        if self.window is None:
            for field in self.fields.values():
                announce(field, ids * field.strides[0], field.strides[0])
            # Not as the memory-mapped class, whose every view is slow to make.
            part = {
                name: files.native(field.view(np.ndarray)[ids])
                for name, field in self.fields.items()
            }
            return Instance(
                part.get("coefficient"), part.get("boundary"), scale, part.get("solution")
            )
        frames = self._frames(ids)
        past, future = np.split(frames, [self.window.history], axis=-2)
        if self.window.frames == "channel":
            past, future = (part.reshape(*part.shape[:-2], -1) for part in (past, future))
        return Instance(past, None, scale, future)

    def _frames(self, ids: np.ndarray) -> np.ndarray:
        """The windows numbered `ids`, ``[window, x, y, time, channel]``."""
        trajectory, length = self.fields["trajectory"], self.window.length
        numbers, windows = np.divmod(ids, self.window.count(trajectory.shape[1]))
        first = windows * self.window.stride
        whole, frame = trajectory.strides[:2]
        announce(trajectory, numbers * whole + first * frame, length * frame)
        values = trajectory.view(np.ndarray)
        parts = (values[n, t : t + length] for n, t in zip(numbers, first, strict=True))
        return files.native(np.stack([np.moveaxis(part, 0, -2) for part in parts]))


def load(path: str | pathlib.Path, *, verify: bool = False) -> Dataset:
    """Opens a data set; raises a `DatasetError` that says what is wrong and what to do.

    Always checked: that the data set is finished, of this format, that meta.json is unaltered and
    that every file has the header and the size that meta.json states.

    Args:
      path: the directory.
      verify: also reads everything: checksums, and that all values are finite.
    """
    path = pathlib.Path(path)
    meta = _read_meta(path)
    fields = {name: _open_field(path, name, entry) for name, entry in meta["fields"].items()}
    if verify:
        for name, entry in meta["fields"].items():
            _verify_field(path / f"{name}.npy", fields[name], entry["sha256"])
    window = meta["window"]
    return Dataset(path, meta, fields, None if window is None else Window(**window))


def statistics(datasets: Sequence[Dataset]) -> dict[str, dict[str, list[float]]]:
    """Mean and standard deviation of every real channel of every field, over training data only.

    They belong to the model that is trained with them, and are stored with it. A complex channel
    counts as its (re, im) pair. Raises a ValueError for data of any other split than "train".
    """
    if wrong := [str(dataset.path) for dataset in datasets if dataset.split != "train"]:
        raise ValueError(f"statistics must come from training data alone, got {wrong}")
    result = {}
    for name in datasets[0].fields:
        count, total, squares = 0, 0.0, 0.0
        for dataset in datasets:
            for sample in dataset.fields[name]:
                values = _real_channels(sample)
                count += len(values)
                total = total + values.sum(0)
                squares = squares + (values**2).sum(0)
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
        result[name] = {"mean": mean.tolist(), "std": deviation.tolist()}
    return result


def _real_channels(sample: np.ndarray) -> np.ndarray:
    """``[*grid, channel]`` as float64 ``[point, real channel]``."""
    wide = np.ascontiguousarray(sample, np.result_type(sample.dtype, np.float64))
    return wide.view(np.float64).reshape(-1, wide.shape[-1] * (wide.itemsize // 8))


def _read_meta(path: pathlib.Path) -> dict[str, Any]:
    try:
        meta = files.read_json(path / META, within=path)
    except FileNotFoundError:
        if not path.is_dir():
            raise DatasetError(f"{path}: there is no such data set") from None
        raise DatasetError(
            f"{path}: no {META}; the data set is not finished (run its generation again: it goes "
            "on where it stopped) or is not a data set"
        ) from None
    except (OSError, files.FileError) as error:
        raise DatasetError(f"{path}: {META} is damaged: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise DatasetError(f"{path}: {META} does not describe a data set of this package")
    if meta.get("format_version") != FORMAT_VERSION:
        raise DatasetError(
            f"{path} has format version {meta.get('format_version')}, this release reads version "
            f"{FORMAT_VERSION}: generate the data anew, or use the release that made it"
        )
    if missing := [key for key in REQUIRED if key not in meta]:
        raise DatasetError(f"{path}: {META} lacks {missing}")
    stated = meta["checksum"]
    if stated != checksum({key: value for key, value in meta.items() if key != "checksum"}):
        raise DatasetError(f"{path}: {META} was altered since it was written: generate it anew")
    return meta


def checksum(entries: Mapping[str, Any]) -> str:
    """SHA-256 of JSON entries in canonical form: sorted keys, no spaces, ASCII."""
    canonical = json.dumps(entries, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _open_field(path: pathlib.Path, name: str, entry: Mapping[str, Any]) -> np.ndarray:
    try:
        file = path / f"{files.check_name(name, f'a field of {META}')}.npy"
        shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
        files.check_regular(file, within=path)
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing: generate the data set anew") from None
    except (files.FileError, OSError, KeyError, TypeError) as error:
        raise DatasetError(f"{path}: field {name!r} of {META} cannot be used: {error}") from None
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, SyntaxError, EOFError) as error:
        raise DatasetError(f"{file} is damaged (truncated?): {files.reason(error)}") from None
    expected = array.offset + array.nbytes
    if (array.shape, array.dtype) != (shape, dtype) or file.stat().st_size != expected:
        raise DatasetError(
            f"{file} holds {array.dtype}{list(array.shape)} in {file.stat().st_size} bytes, "
            f"{META} states {dtype}{list(shape)}: the file is damaged or from another data set"
        )
    return array


def _verify_field(file: pathlib.Path, array: np.ndarray, sha256: str) -> None:
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
            raise DatasetError(
                f"{file}: its checksum is not the one in {META}: the file is damaged"
            )
    for number, sample in enumerate(array):
        if not np.all(np.isfinite(sample)):
            raise DatasetError(f"{file}: sample {number} has values that are not finite")
