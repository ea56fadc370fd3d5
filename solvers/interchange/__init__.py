"""Data sets from and to the file layouts of PDEBench and The Well.

    python -m solvers.interchange import pdebench FILE DIRECTORY --equation=burgers
    python -m solvers.interchange export the_well DIRECTORY ROOT

Imported data is copied into the package's own format (`solvers.storage`), piece by piece. Values,
parameters and coordinates are checked, and nothing outside of the file is read (`trust`). It is
described as what the file says it is: whether the equation of the registry holds with the same
right-hand side is for the reader to know. HDF5 needs h5py (the extra ``hdf5``).
"""

import contextlib
import importlib
import importlib.metadata
import os
import pathlib
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from solvers import storage
from solvers.interchange import trust

PIECE = 32  # samples in memory at once


@contextlib.contextmanager
def hdf5(file: pathlib.Path, mode: str) -> Iterator[Any]:
    """An opened HDF5 file; h5py is imported here, because nothing else needs it.

    A written file takes its name when it is complete: what had that name before stays till then.
    """
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise ImportError("HDF5 files need h5py: pip install 'sino-jax[hdf5]'") from None
    if mode == "r":
        trust.regular_file(file)
        with h5py.File(file, mode) as opened:
            yield opened
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with h5py.File(temporary, mode) as opened:
            yield opened
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def coordinates(points: int, centring: str, extent: float) -> np.ndarray:
    """Coordinates of an axis as the layouts store them; cells are named by their centres."""
    if centring == "node":
        return np.linspace(0.0, extent, points)
    return (np.arange(points) + 0.5) * extent / points


def axis(values: np.ndarray) -> tuple[str, float]:
    """Centring and extent of an axis with these coordinates: inverse of `coordinates`."""
    step = float(values[1] - values[0])
    if abs(float(values[0]) - step / 2) < 1e-3 * step:
        return "cell", step * len(values)
    return "node", float(values[-1] - values[0])


def grid(axes: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The grid entry of meta.json, from the coordinates of each axis, checked by `trust`."""
    found = [axis(values) for values in axes.values()]
    return {
        "axes": list(axes),
        "shape": [len(values) for values in axes.values()],
        "centrings": [centring for centring, _ in found],
        "extent": [extent for _, extent in found],
    }


def grid_coordinates(meta: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The coordinates of each axis of a data set: inverse of `grid`."""
    entry = meta["grid"]
    rows = zip(entry["axes"], entry["shape"], entry["centrings"], entry["extent"], strict=True)
    return {name: coordinates(points, *rest) for name, points, *rest in rows}


def pieces(
    source: Any,
    transform: Callable[[np.ndarray], np.ndarray],
    count: int,
    *,
    positive: bool = False,
) -> Iterator[np.ndarray]:
    """``transform(source[i:j])`` for consecutive samples; raises for values that are not finite."""
    for start in range(0, count, PIECE):
        values = np.ascontiguousarray(transform(source[start : min(start + PIECE, count)]))
        bad = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        if bad.any():
            samples = (start + np.flatnonzero(bad)).tolist()
            raise ValueError(f"samples {samples} have values that are not finite: not imported")
        if positive and (values <= 0).any():
            raise ValueError(
                f"a coefficient must be positive, got {values.min():.4g}: not imported"
            )
        yield values


def write(
    directory: pathlib.Path,
    fields: Mapping[str, Iterator[np.ndarray]],
    *,
    source: Mapping[str, Any],
    **entries: Any,
) -> None:
    """Writes an imported data set; `source` says where it came from, in place of a config.

    What a failing import has written is removed, so that it can be tried again.
    """
    if directory.exists() and any(directory.iterdir()):
        raise storage.StorageError(f"{directory} is not empty: choose another directory")
    trust.one_split(entries["split"])
    trust.name("equation", entries["equation"])
    trust.number("scale", entries["scale"])
    versions = {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "h5py")},
    }
    description = storage.describe(
        **entries, seed=None, limits={}, config=dict(source), versions=versions
    )
    was_there = directory.exists()
    try:
        storage.write(directory, description, fields, {})
    except BaseException:
        for name in fields:
            (directory / f"{name}.npy").unlink(missing_ok=True)
        shutil.rmtree(directory / storage.PARTS, ignore_errors=True)
        if not was_there and directory.exists():
            directory.rmdir()
        raise
