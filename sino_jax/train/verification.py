"""What a run checks about its data before it trains on them.

Meta data always: the equation, a positive and finite scale, shapes that agree with the grid and the
equation, and that training data was made for training. With ``config.data.verify`` also every
value: checksums, and that all are finite. That takes as long as reading the files; its outcome is
remembered in the user's cache directory, by path, size and time of each file, so that the runs of a
campaign read a data set once.
"""

import hashlib
import itertools
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from ml_collections import FrozenConfigDict

from sino_jax import data, runtime
from sino_jax.data import Dataset, DatasetError
from sino_jax.equations import Equation


def datasets(config: FrozenConfigDict, equation: Equation) -> dict[str, list[Dataset]]:
    """The sets "train", "val" and "test" of a config section ``data``; an error names an unfit one.

    Raises:
      ValueError: the config names no training set, or sets of another equation or split.
      sino_jax.data.DatasetError: a set is unfinished, damaged, or not what it says.
    """
    if not config.train:
        raise ValueError("config.data.train must name at least one data set, got none")
    sets = {use: [data.load(path) for path in config[use]] for use in ("train", "val", "test")}
    for use in ("train", "val"):
        for dataset in sets[use]:
            if dataset.split != use:
                raise ValueError(
                    f"config.data.{use} must name data of the split {use!r}, but {dataset.path} is "
                    f"of the split {dataset.split!r}"
                )
    for dataset in itertools.chain(*sets.values()):
        check_meta(dataset, equation)
        if config.verify:
            check_values(dataset)
    if config.stride:
        sets["train"] = [dataset.with_window(stride=config.stride) for dataset in sets["train"]]
    return sets


def check_meta(dataset: Dataset, equation: Equation) -> None:
    """Raises unless the data set is one of `equation`, with a sound scale and shapes."""
    if dataset.equation != equation.name:
        raise ValueError(
            f"config.equation is {equation.name!r}, but {dataset.path} holds data of "
            f"{dataset.equation!r}"
        )
    scale, samples = dataset.meta["scale"], dataset.meta["samples"]
    if not isinstance(scale, int | float) or not (math.isfinite(scale) and scale > 0):
        raise DatasetError(f"{dataset.path}: scale must be positive and finite, got {scale!r}")
    wanted = {"trajectory"} if dataset.window else {"solution"}
    if not dataset.window and equation.coefficient_channels:
        wanted.add("coefficient")
    if missing := wanted - dataset.fields.keys():
        raise DatasetError(f"{dataset.path}: {equation.name} needs {sorted(missing)}, not there")
    grid = tuple(dataset.meta["grid"]["shape"])
    axes = len(equation.axes) - (dataset.window is not None and dataset.window.frames == "axis")
    for name, field in dataset.fields.items():
        if field.shape[0] != samples or field.shape[-1 - len(grid) : -1] != grid:
            raise DatasetError(
                f"{dataset.path}: {name} must hold {samples} samples on the grid {list(grid)}, "
                f"got the shape {list(field.shape)}"
            )
    if len(grid) != axes:
        raise DatasetError(
            f"{dataset.path}: {equation.name} has {axes} axes, the grid is {list(grid)}"
        )


def check_consistency(train: Sequence[Dataset], loss_options: Mapping[str, Any]) -> None:
    """Raises if scale-consistency is asked for on data of which it does not hold.

    Imported Darcy flow may have a constant right-hand side, which `darcy` knows nothing of.
    """
    if not (loss_options.get("sub_sizes") or loss_options.get("super_rates")):
        return
    for dataset in train:
        beta = dataset.meta["config"].get("beta", 0)
        if dataset.equation == "darcy" and isinstance(beta, int | float) and beta != 0:
            raise ValueError(
                f"{dataset.path} has the right-hand side {beta:g}, which a sub-domain of side λ "
                "has λ² times: scale-consistency of the equation darcy does not hold. Import the "
                "file as darcy_forced, or train without sub_sizes and super_rates"
            )


def check_values(dataset: Dataset) -> None:
    """Reads the whole data set, unless that was done before, and raises if it is damaged."""
    files = [dataset.path / f"{name}.npy" for name in sorted(dataset.fields)]
    state = {"digest": dataset.digest, "files": [_stamp(file) for file in files]}
    note = _note(dataset.path)
    if _read(note) == state:
        return
    data.load(dataset.path, verify=True)
    if note is not None:
        runtime.write_quietly(note, json.dumps(state))


def _stamp(file: pathlib.Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _note(path: pathlib.Path) -> pathlib.Path | None:
    cache = runtime.user_cache()
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    return None if cache is None else cache / "verified" / f"{name}.json"


def _read(note: pathlib.Path | None) -> Any:
    try:
        return None if note is None else json.loads(note.read_text())
    except (OSError, ValueError):
        return None
