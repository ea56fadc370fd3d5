"""An operator as one small directory: weights and JSON, nothing executable, complete or absent.

    operator.json       equation, model, statistics, trained scales and grids, versions, digest
    weights.npz         one array for each weight, named by its path
    calibration.json    only if calibrated, see `sino_jax.diagnostics.error_estimate`

No optimiser state, no training data, no paths of the machine that trained it.
"""

import json
import os
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from flax import traverse_util

from sino_jax import checkpoint
from sino_jax.diagnostics.error_estimate import CALIBRATION_FILE, Calibration

FORMAT = "sino-jax operator"
FORMAT_VERSION = 1
META_FILE, WEIGHTS_FILE = "operator.json", "weights.npz"
# Of the config, what it takes to build the model again.
CONFIG_FIELDS = ("equation", "model")
RECORDED = ("statistics", "scales", "grids", "scale_range", "evaluation", "revision", "versions")


class PortableError(RuntimeError):
    """A directory that holds no operator, a damaged one, or one of another release."""


def is_portable(directory: str | os.PathLike) -> bool:
    return (pathlib.Path(directory) / META_FILE).is_file()


def write(
    directory: str | os.PathLike,
    params: Mapping[str, Any],
    meta: Mapping[str, Any],
    calibration: Calibration | None,
) -> pathlib.Path:
    """Writes an operator to a new directory, which appears when it is complete.

    Raises:
      FileExistsError: there is something else at `directory`.
    """
    directory = pathlib.Path(directory).absolute()
    if directory.exists():
        raise FileExistsError(
            f"{directory} exists: choose another directory, or move it away first"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    weights = traverse_util.flatten_dict(_host(params), sep="/")
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "config": {name: meta["config"][name] for name in CONFIG_FIELDS},
        **{name: meta[name] for name in RECORDED if name in meta},
        "digest": checkpoint.digest(weights),
    }
    # A sibling, since a directory can be renamed within one file system only.
    temporary = pathlib.Path(
        tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}-unfinished-")
    )
    try:
        np.savez(temporary / WEIGHTS_FILE, **weights)
        _write_json(temporary / META_FILE, description)
        if calibration is not None:
            _write_json(temporary / CALIBRATION_FILE, calibration._asdict())
        temporary.chmod(0o755)
        temporary.rename(directory)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return directory


def read(directory: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and description of a portable operator; a `PortableError` says what is wrong."""
    directory = pathlib.Path(directory)
    try:
        meta = json.loads((directory / META_FILE).read_text())
    except (OSError, ValueError) as error:
        raise PortableError(f"{directory / META_FILE} cannot be read: {error}") from error
    found = (meta.get("format"), meta.get("format_version"))
    if found != (FORMAT, FORMAT_VERSION):
        raise PortableError(
            f"{directory / META_FILE} has format {found}, this release reads "
            f"{(FORMAT, FORMAT_VERSION)}"
        )
    try:
        with np.load(directory / WEIGHTS_FILE, allow_pickle=False) as stored:
            weights = dict(stored)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise PortableError(f"{directory / WEIGHTS_FILE} cannot be read: {error}") from error
    if checkpoint.digest(weights) != meta["digest"]:
        raise PortableError(f"{directory / WEIGHTS_FILE} is damaged: its digest has changed")
    return traverse_util.unflatten_dict(weights, sep="/"), meta


def _host(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _host(value) if isinstance(value, Mapping) else np.asarray(value)
        for name, value in tree.items()
    }


def _write_json(path: pathlib.Path, entries: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n")
