"""Checkpoints of a run as files: what they hold, and how one is read and verified.

A checkpoint holds plain arrays and JSON, nothing executable:

    params       the weights, as nested dictionaries
    averages     their moving average, if the run keeps one
    training     optimiser, step, rate, random key, as ``path -> array``
    meta         JSON: config, statistics, scales, data sets, versions, digests of all arrays

`sino_jax.train.store` writes them.
"""

import hashlib
import os
import pathlib
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

DIRECTORY = "checkpoints"


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
    path = pathlib.Path(workdir).absolute() / DIRECTORY / str(step)
    try:
        with ocp.Checkpointer(ocp.JsonCheckpointHandler()) as reader:
            meta = reader.restore(path / "meta")
        digests = meta["digests"]
        items = {name: _read_arrays(path / name) for name in names or digests}
    except Exception as error:
        # A damaged file can make any layer below fail, each with exceptions of its own.
        raise CheckpointError(f"checkpoint of step {step} cannot be read: {error}") from error
    for name, item in items.items():
        if digest(item) != digests[name]:
            raise CheckpointError(f"checkpoint of step {step} is damaged: {name} has changed")
    return items, meta


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


def digest(tree: Any) -> str:
    """Hash of the paths, shapes, dtypes and bytes of all arrays of a tree of dictionaries."""
    hasher = hashlib.blake2b(digest_size=16)
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        header = f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}"
        hasher.update(header.encode())
        hasher.update(np.ascontiguousarray(leaf).data)
    return hasher.hexdigest()


def _read_arrays(path: pathlib.Path) -> dict[str, Any]:
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as reader:
        return reader.restore(path)
