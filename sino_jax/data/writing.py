"""Writes a data set in the format that `sino_jax.data.load` reads; complete or not at all."""

import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from sino_jax import files
from sino_jax.data.dataset import FORMAT, FORMAT_VERSION, META, checksum


def write(
    directory: pathlib.Path,
    fields: Mapping[str, np.ndarray],
    *,
    equation: str,
    split: str,
    scale: float,
    grid: Mapping[str, Any],
    source: Mapping[str, Any],
    units: Mapping[str, str] | None = None,
) -> None:
    """A new directory of independent problems, which appears when it is complete.

    Args:
      directory: must not exist.
      fields: ``[sample, *grid, channel]`` by name.
      equation, split, scale, units: as in meta.json.
      grid: axes, shape, centrings and extent.
      source: where the data came from, the entry ``config`` of meta.json.

    Raises:
      FileExistsError: there is something at `directory`.
    """
    if directory.exists():
        raise FileExistsError(f"{directory} exists: choose another directory, or move it away")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with files.appearing_directory(directory) as unfinished:
        meta = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "equation": equation,
            "split": split,
            "scale": float(scale),
            "samples": len(next(iter(fields.values()))),
            "seed": None,
            "grid": dict(grid),
            "window": None,
            "units": dict(units or {}),
            "fields": {name: _write_field(unfinished, name, v) for name, v in fields.items()},
            "measures": {},
            "limits": {},
            "config": dict(source),
            "versions": {
                "python": platform.python_version(),
                "numpy": importlib.metadata.version("numpy"),
            },
        }
        meta = json.loads(json.dumps(meta))
        (unfinished / META).write_text(json.dumps({**meta, "checksum": checksum(meta)}, indent=1))


def _write_field(directory: pathlib.Path, name: str, values: np.ndarray) -> dict[str, Any]:
    """Writes one field; its entry in meta.json."""
    path = directory / f"{name}.npy"
    with path.open("wb") as stream:
        np.save(stream, np.ascontiguousarray(values), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"shape": list(values.shape), "dtype": values.dtype.str, "sha256": digest}
