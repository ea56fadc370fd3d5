"""The calibration of an operator's error estimates, as a file beside its weights."""

import json
import os
import pathlib

from sino_jax import checks, files
from sino_jax.diagnostics.error_estimate import Calibration

CALIBRATION_FILE = "calibration.json"


def read_calibration(directory: str | os.PathLike) -> Calibration | None:
    """The calibration that a directory holds, or None."""
    directory = pathlib.Path(directory)
    path = directory / CALIBRATION_FILE
    if not path.exists():
        return None
    entries = files.read_json(path, within=directory)
    names = set(Calibration._fields)
    if not isinstance(entries, dict) or set(entries) != names:
        raise ValueError(f"{path} must hold the numbers {sorted(names)}, got {entries!r:.200}")
    for name, value in entries.items():
        low = -1 if name == "rank_correlation" else 0
        checks.number(f"{name} in {path}", value, low=low)
    return Calibration(**entries)


def write_calibration(directory: str | os.PathLike, calibration: Calibration) -> pathlib.Path:
    """Adds a calibration to the directory of a run; `sino_jax.operator.load` then reads it."""
    path = pathlib.Path(directory) / CALIBRATION_FILE
    text = json.dumps(calibration._asdict(), indent=2, sort_keys=True) + "\n"
    with files.appearing_file(path) as unfinished:
        unfinished.write_text(text)
    return path
