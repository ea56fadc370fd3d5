"""An operator as one small directory: weights and JSON, nothing executable, complete or absent.

    operator.json       equation, model, statistics, trained scales and grids, versions, digest
    weights.npz         one array for each weight, named by its path, float32 or float16
    calibration.json    only if calibrated, see `calibration`
    README.md           only if published, the model card

No optimiser state, no training data, no paths of the machine that trained it.
"""

import hashlib
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from flax import traverse_util

from sino_jax import checkpoint, files
from sino_jax.diagnostics.error_estimate import Calibration
from sino_jax.operator.calibration import CALIBRATION_FILE

FORMAT = "sino-jax operator"
# Version 1 has no digest of operator.json itself, version 2 no weights in half precision.
FORMAT_VERSION = 3
READABLE_VERSIONS = (1, 2, 3)
META_FILE, WEIGHTS_FILE, CARD_FILE = "operator.json", "weights.npz", "README.md"
# Of the config, what it takes to build the model again.
CONFIG_FIELDS = ("equation", "model")
RECORDED = (
    "statistics",
    "scales",
    "grids",
    "scale_range",
    "evaluation",
    "origin",  # of published operators: row, seed, command, licence
    "revision",
    "versions",
)
STORAGE = ("float32", "float16")
# Entries that an array must have to be stored in half precision.
SMALLEST_HALVED = 4096


class PortableError(RuntimeError):
    """A directory that holds no operator, a damaged one, or one of another release."""


def is_portable(directory: str | os.PathLike) -> bool:
    return (pathlib.Path(directory) / META_FILE).is_file()


def write(
    directory: str | os.PathLike,
    params: Mapping[str, Any],
    meta: Mapping[str, Any],
    calibration: Calibration | None,
    *,
    storage: str = "float32",
    card: str | None = None,
) -> pathlib.Path:
    """Writes an operator to a new directory, which appears when it is complete.

    Args:
      directory: must not exist.
      params, meta, calibration: of the `sino_jax.operator.Operator`.
      storage: "float16" rounds large arrays of weights, see `halved`.
      card: a text about the operator, in Markdown.

    Raises:
      FileExistsError: there is something else at `directory`.
      ValueError: weights that half precision cannot hold.
    """
    if storage not in STORAGE:
        raise ValueError(f"storage must be one of {', '.join(STORAGE)}, got {storage!r}")
    directory = pathlib.Path(directory).absolute()
    if directory.exists():
        raise FileExistsError(
            f"{directory} exists: choose another directory, or move it away first"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    weights = traverse_util.flatten_dict(_host(params), sep="/")
    if storage == "float16":
        weights = {name: halved(name, array) for name, array in weights.items()}
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "config": {name: meta["config"][name] for name in CONFIG_FIELDS},
        **{name: meta[name] for name in RECORDED if name in meta},
        "digest": checkpoint.digest(weights),
    }
    description["meta_digest"] = _meta_digest(description)
    with files.appearing_directory(directory) as unfinished:
        np.savez(unfinished / WEIGHTS_FILE, **weights)
        _write_json(unfinished / META_FILE, description)
        if calibration is not None:
            _write_json(unfinished / CALIBRATION_FILE, calibration._asdict())
        if card is not None:
            (unfinished / CARD_FILE).write_text(card, encoding="utf-8")
    return directory


def read(directory: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and description of a portable operator; a `PortableError` says what is wrong."""
    directory = pathlib.Path(directory)
    try:
        meta = files.read_json(directory / META_FILE, within=directory)
    except (OSError, files.FileError) as error:
        raise PortableError(f"{directory / META_FILE} cannot be read: {error}") from error
    _check_meta(directory / META_FILE, meta)
    try:
        weights = files.read_arrays(directory / WEIGHTS_FILE, within=directory)
    except (OSError, files.FileError) as error:
        raise PortableError(f"{directory / WEIGHTS_FILE} cannot be read: {error}") from error
    if checkpoint.digest(weights) != meta["digest"]:
        raise PortableError(f"{directory / WEIGHTS_FILE} is damaged: its digest has changed")
    widened = {name: _widened(array) for name, array in weights.items()}
    return traverse_util.unflatten_dict(widened, sep="/"), meta


def halved(name: str, array: np.ndarray) -> np.ndarray:
    """A large single-precision array in half precision; others are returned as they are.

    Entries are rounded by at most 2⁻¹¹ of themselves, or by 3e-8 if that is more. Small arrays hold
    a few percent of the weights and most of the effect of rounding. A ValueError if an entry is not
    finite or above 65504.
    """
    if array.dtype != np.float32 or array.size < SMALLEST_HALVED:
        return array
    if not np.all(np.abs(array) <= np.finfo(np.float16).max):
        raise ValueError(f"storage must be float32: {name} has entries that float16 cannot hold")
    return array.astype(np.float16)


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _check_meta(path: pathlib.Path, meta: Any) -> None:
    found = (meta.get("format"), meta.get("format_version")) if isinstance(meta, dict) else None
    if found not in [(FORMAT, version) for version in READABLE_VERSIONS]:
        raise PortableError(
            f"{path} has format {found}, this release reads {FORMAT!r} of versions "
            f"{', '.join(map(str, READABLE_VERSIONS))}"
        )
    if missing := [name for name in ("config", "digest") if name not in meta]:
        raise PortableError(f"{path} is damaged: it lacks {missing}")
    if meta["format_version"] > 1 and meta.get("meta_digest") != _meta_digest(meta):
        raise PortableError(f"{path} is damaged: its digest has changed")


def _meta_digest(meta: Mapping[str, Any]) -> str:
    """Hash of all entries but the hash itself, in canonical form."""
    entries = {name: value for name, value in meta.items() if name != "meta_digest"}
    canonical = json.dumps(entries, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def _host(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _host(value) if isinstance(value, Mapping) else np.asarray(value)
        for name, value in tree.items()
    }


def _write_json(path: pathlib.Path, entries: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n")
