"""Checkpoints of a run as files: what they hold, and how one is read and verified.

A checkpoint holds plain arrays and JSON, nothing executable:

    params       the weights, as nested dictionaries
    averages     their moving average, if the run keeps one
    training     optimiser, step, rate, random key, as ``path -> array``
    meta         JSON: config, statistics, scales, data sets, versions, errors, digests of all this

`sino_jax.train.store` writes them.
"""

import hashlib
import json
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from ml_collections import FrozenConfigDict

DIRECTORY = "checkpoints"
META = "meta"


class CheckpointError(RuntimeError):
    """A checkpoint that could not be written or read; the message names the last good one."""


def read(
    workdir: str | os.PathLike, step: int, *, names: tuple[str, ...] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and meta of one checkpoint; raises a `CheckpointError` unless all digests agree.

    Args:
      workdir: directory of the run.
      step: of the checkpoint.
      names: items to read, all by default.
    """
    meta = read_meta(workdir, step)
    digests = {name: value for name, value in meta["digests"].items() if name != META}
    path = _path(workdir, step)
    try:
        items = {name: _read_arrays(path / name) for name in names or digests}
    except Exception as error:
        # A damaged file can make any layer below fail, each with exceptions of its own.
        raise CheckpointError(f"checkpoint of step {step} cannot be read: {error}") from error
    for name, item in items.items():
        if digest(item) != digests.get(name):
            raise CheckpointError(f"checkpoint of step {step} is damaged: {name} has changed")
    return items, meta


def read_meta(workdir: str | os.PathLike, step: int) -> dict[str, Any]:
    """The JSON of one checkpoint; reads no array."""
    try:
        meta = json.loads((_path(workdir, step) / META / "metadata").read_text())
        stated = meta["digests"].get(META)
    except Exception as error:
        raise CheckpointError(f"checkpoint of step {step} cannot be read: {error}") from error
    # Earlier releases did not state it.
    if stated is not None and stated != digest_meta(meta):
        raise CheckpointError(f"checkpoint of step {step} is damaged: {META} has changed")
    return meta


def read_weights(workdir: str | os.PathLike, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The weights to use and the meta of one checkpoint; nothing of the optimiser is read.

    Averaged weights are taken if there are any.
    """
    name = "averages" if "averages" in read_meta(workdir, step)["digests"] else "params"
    items, meta = read(workdir, step, names=(name,))
    return items[name], meta


def finished_steps(workdir: str | os.PathLike) -> list[int]:
    """Steps of the finished checkpoints of a run, in increasing order."""
    directory = pathlib.Path(workdir) / DIRECTORY
    if not directory.is_dir():
        return []
    return sorted(int(entry.name) for entry in directory.iterdir() if entry.name.isdecimal())


def newest(workdir: str | os.PathLike) -> int:
    """Step of the newest finished checkpoint of a run."""
    steps = finished_steps(workdir)
    if not steps:
        raise CheckpointError(f"{workdir} holds no checkpoint: train first, or check the path")
    return steps[-1]


def best(workdir: str | os.PathLike) -> int:
    """Step of the checkpoint of least mean error on the validation data, ``config.data.val``.

    Of equal ones the newest. A checkpoint whose error is not finite, or whose meta cannot be read,
    is never the best.
    """
    errors = {step: error_at(workdir, step) for step in finished_steps(workdir)}
    ranked = {step: error for step, error in errors.items() if math.isfinite(error)}
    if not ranked:
        raise CheckpointError(
            f"{workdir} holds no checkpoint that was evaluated on validation data: name some in "
            "data.val and set evaluation.every, or ask for the newest"
        )
    return max(ranked, key=lambda step: (-ranked[step], step))


def error_at(workdir: str | os.PathLike, step: int) -> float:
    """The error by which a checkpoint is ranked; infinite if it has none."""
    try:
        return validation_error(read_meta(workdir, step))
    except (CheckpointError, AttributeError, TypeError):
        return math.inf


def validation_error(meta: Mapping[str, Any]) -> float:
    """The mean error on the validation data of a checkpoint's meta; infinite without any.

    Earlier releases did not tell validation from test data: all of theirs counts.
    """
    results = meta.get("evaluation") or {}
    chosen = meta.get("validation", results)
    return mean_error({name: results[name] for name in chosen if name in results})


def mean_error(results: Mapping[str, Mapping[str, float]] | None) -> float:
    """The mean over data sets of ``relative_l2``; infinite without any, and for NaN."""
    values = [metrics.get("relative_l2", math.inf) for metrics in (results or {}).values()]
    mean = float(np.mean(values)) if values else math.inf
    return mean if math.isfinite(mean) else math.inf


def check_precision(config: Mapping[str, Any] | FrozenConfigDict) -> None:
    """Refuses a config with the field `precision` of earlier releases, unless it is "float32"."""
    if (given := config.get("precision", "float32")) != "float32":
        raise ValueError(
            f"config.precision must be 'float32' or left out, got {given!r}: bfloat16 only reached "
            "dense layers, which the Fourier models do not have, and was removed"
        )


def digest(tree: Any) -> str:
    """Hash of the paths, shapes, dtypes and bytes of all arrays of a tree of dictionaries."""
    hasher = hashlib.blake2b(digest_size=16)
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        header = f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}"
        hasher.update(header.encode())
        hasher.update(np.ascontiguousarray(leaf).data)
    return hasher.hexdigest()


def digest_meta(meta: Mapping[str, Any]) -> str:
    """Hash of a checkpoint's JSON, but for the hash itself."""
    digests = {name: value for name, value in meta["digests"].items() if name != META}
    text = json.dumps({**meta, "digests": digests}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _path(workdir: str | os.PathLike, step: int) -> pathlib.Path:
    return pathlib.Path(workdir).absolute() / DIRECTORY / str(step)


def _read_arrays(path: pathlib.Path) -> dict[str, Any]:
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as reader:
        return reader.restore(path)
