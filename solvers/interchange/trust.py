"""What a file of somebody else may say: names, links, numbers and axes, checked before use.

Every check raises a ValueError of one line that says what the file has and what is expected.
"""

import os
import pathlib
import re
import stat
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]*")
# Coordinates in single precision are this far from equal distances, relative to a step, at most.
UNEVEN = 1e-2


def regular_file(file: pathlib.Path) -> None:
    """An ordinary file: a FIFO would wait for ever, a device never end."""
    try:
        mode = os.stat(file).st_mode
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{file} must be an ordinary file, got a directory, FIFO or device")


def name(what: str, text: Any) -> str:
    """A name that is part of a path: no separators, no way up."""
    if not isinstance(text, str) or not NAME.fullmatch(text) or ".." in text:
        raise ValueError(
            f"{what} must be a plain name of letters, digits, _ + . -, got {text!r:.60}"
        )
    return text


def one_split(text: Any) -> None:
    if text not in ("train", "val", "test"):
        raise ValueError(f"split must be train, val or test, got {text!r:.60}")


def number(what: str, value: Any, *, positive: bool = True) -> float:
    """One finite number, positive by default."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"{what} must be one finite number, got {value!r:.60}")
    if positive and not array.ravel()[0] > 0:
        raise ValueError(f"{what} must be positive, got {array.ravel()[0]}")
    return float(array.ravel()[0])


def count(what: str, value: Any) -> int:
    """A whole number, at least one."""
    found = number(what, value)
    if found != int(found):
        raise ValueError(f"{what} must be a whole number, got {found}")
    return int(found)


def coordinates(what: str, values: Any, points: int | None = None) -> np.ndarray:
    """Finite, increasing at equal distances, as many as the axis has points (None: any number)."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "fiu" or len(values) < 2:
        raise ValueError(
            f"{what} must be two or more numbers on one axis, "
            f"got {values.dtype} of shape {values.shape}"
        )
    if points is not None and len(values) != points:
        raise ValueError(f"{what} must be as long as its axis, {points}, got {len(values)}")
    steps = np.diff(values.astype(np.float64))
    if not np.isfinite(values).all() or (steps <= 0).any():
        raise ValueError(f"{what} must be finite and increase")
    if np.ptp(steps) > UNEVEN * steps.mean():
        raise ValueError(
            f"{what} must increase at equal distances, got steps of {steps.min():.4g} to "
            f"{steps.max():.4g}"
        )
    return values


def window(entries: Mapping[str, Any] | None, frames: int, dt: Any) -> dict[str, Any]:
    """A window that fits into so many frames, with the time between them."""
    if entries is None:
        raise ValueError("window must be given for trajectories: history, horizon and stride")
    known = {"history", "horizon", "stride", "frames", "dt"}
    if unknown := sorted(set(entries) - known):
        raise ValueError(f"window must have some of {sorted(known)}, got {unknown}")
    checked = dict(entries)
    for part in ("history", "horizon", "stride"):
        checked[part] = count(f"window.{part}", entries.get(part))
    if checked["history"] + checked["horizon"] > frames:
        raise ValueError(
            f"window must fit into the {frames} frames of a trajectory, got history "
            f"{checked['history']} and horizon {checked['horizon']}"
        )
    return {**checked, "dt": number("time between frames", dt)}


def item(group: Any, path: str) -> Any:
    """A member of an HDF5 group that lies in the same file: no external links or storage."""
    import h5py

    link = group.get(path, getlink=True)
    if isinstance(link, h5py.ExternalLink):
        raise ValueError(f"{path} is a link to another file, {link.filename}: not followed")
    try:
        found = group[path]
    except KeyError:
        raise ValueError(f"the file has no {path}, only {sorted(group)}") from None
    if found.file.filename != group.file.filename:
        raise ValueError(f"{path} lies in another file, {found.file.filename}: not followed")
    if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
        raise ValueError(f"{path} keeps its values in another file: not followed")
    return found


def numbers(group: Any, path: str, shape: Sequence[int | None]) -> Any:
    """A data set of real numbers of this shape; None stands for any length."""
    found = item(group, path)
    expected = ["any" if n is None else n for n in shape]
    if not hasattr(found, "dtype") or found.dtype.kind != "f":
        kind = getattr(found, "dtype", "a group")
        raise ValueError(f"{path} must hold floating-point numbers, got {kind}")
    fits = len(found.shape) == len(shape) and all(
        n in (None, m) for n, m in zip(shape, found.shape, strict=True)
    )
    if not fits or 0 in found.shape:
        raise ValueError(f"{path} must have the shape {expected}, got {list(found.shape)}")
    return found
