"""The checkpoints of a run while it trains: written in the background, complete or absent.

Orbax writes into a temporary directory and renames it, so that a kill or a full disk leaves the
checkpoints before it untouched. Arrays pass through host memory, hence a checkpoint does not depend
on the number of devices that wrote it. What a checkpoint holds: see `sino_jax.checkpoint`.
"""

import json
import math
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from sino_jax import checkpoint
from sino_jax.checkpoint import DIRECTORY, CheckpointError, digest, finished_steps, read
from sino_jax.train.step import TrainState

DAMAGED = "damaged"


class Restored(NamedTuple):
    """A state and the JSON that was saved with it."""

    state: TrainState
    meta: dict[str, Any]


class Store:
    """The checkpoints in ``workdir/checkpoints``. A context manager; leaving it waits for writes.

    Args:
      workdir: directory of the run.
      keep: number of newest checkpoints to keep. The one of least error is kept in addition.
      report: is told, in one line, whatever a user should know.
    """

    def __init__(
        self, workdir: str | os.PathLike, *, keep: int, report: Callable[[str], None]
    ) -> None:
        self.workdir = pathlib.Path(workdir).absolute()
        self._report = report
        self._errors = {step: checkpoint.error_at(workdir, step) for step in self.steps()}
        _remove_unreadable_metrics(self.workdir)
        options = ocp.CheckpointManagerOptions(
            preservation_policy=_NewestAndBest(keep, self._errors),
            cleanup_tmp_directories=True,
            # Otherwise a directory that cannot be made is waited for, five minutes long.
            async_options=ocp.AsyncOptions(create_directories_asynchronously=False),
        )
        self._manager = ocp.CheckpointManager(self.workdir / DIRECTORY, options=options)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind, *exception) -> None:
        try:
            self._guarded(self._manager.close)
        except CheckpointError:
            # A write that failed must not hide the error that the block is left with.
            if kind is None:
                raise

    def steps(self) -> list[int]:
        """Steps of the finished checkpoints, in increasing order."""
        return finished_steps(self.workdir)

    def save(self, state: TrainState, meta: Mapping[str, Any]) -> None:
        """Starts to write a checkpoint; returns as soon as the state has been copied.

        A failure of the write before it is raised here as a `CheckpointError`.

        Args:
          state: the state. It may be donated to the next step afterwards.
          meta: JSON-like values to keep with it; ``evaluation``, if there, ranks the checkpoint.
        """
        items = _to_items(state)
        meta = json.loads(json.dumps(meta))
        meta["digests"] = {name: digest(item) for name, item in items.items()}
        meta["digests"][checkpoint.META] = checkpoint.digest_meta(meta)
        arguments = {name: ocp.args.StandardSave(item) for name, item in items.items()}
        step = int(state.step)
        self._errors[step] = checkpoint.validation_error(meta)
        self._guarded(
            lambda: self._manager.save(
                step,
                args=ocp.args.Composite(meta=ocp.args.JsonSave(meta), **arguments),
                force=True,
            )
        )

    def wait(self) -> None:
        """Returns when everything is written; raises a `CheckpointError` if that failed."""
        self._guarded(self._manager.wait_until_finished)

    def restore(self, like: TrainState) -> Restored | None:
        """The newest checkpoint that is intact, or None if the run has none at all.

        Damaged checkpoints are reported, moved to ``workdir/damaged``, and the one before them is
        taken. Raises a `CheckpointError` if all are damaged, which are then left where they are, or
        if the checkpoint belongs to another model or optimiser than `like`, of which only shapes
        and dtypes are read.
        """
        steps = self.steps()
        damaged = []
        for step in reversed(steps):
            try:
                items, meta = read(self.workdir, step)
            except CheckpointError as error:
                self._report(f"{error}; falling back to the one before")
                damaged.append(step)
                continue
            restored = Restored(_from_items(items, like), meta)
            for one in damaged:
                self._set_aside(one)
            return restored
        lost = sorted(path.name for path in (self.workdir / DAMAGED).glob("*"))
        if steps or lost:
            raise CheckpointError(
                f"no checkpoint of steps {steps} in {self.workdir} is readable"
                + (f" (set aside before as damaged: {', '.join(lost)})" if lost else "")
                + ": restore one of them, or delete the directory to begin anew"
            )
        return None

    def _guarded(self, write: Callable[[], Any]) -> None:
        try:
            write()
        except Exception as error:
            # Whatever was thrown, from tensorstore or the file system: the files tell what stands.
            kept = self.steps()
            last = f"the last good one is of step {kept[-1]}" if kept else "there is none"
            raise CheckpointError(
                f"could not write a checkpoint to {self.workdir}: {error} ({last}; "
                "make room or repair the disk, then start the run again to resume)"
            ) from error

    def _set_aside(self, step: int) -> None:
        if jax.process_index() == 0:
            place = self.workdir / DAMAGED
            place.mkdir(exist_ok=True)
            number = len(list(place.iterdir()))
            (self.workdir / DIRECTORY / str(step)).rename(place / f"{step}-{number}")
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(f"checkpoint {step} set aside")
        self._manager.reload()


class _NewestAndBest:
    """Orbax preservation policy: the newest checkpoints, and the best of those with an error.

    Args:
      keep: number of newest ones.
      errors: of all checkpoints by step, infinite for those without; read when it is asked.
    """

    def __init__(self, keep: int, errors: Mapping[int, float]):
        self._keep, self._errors = keep, errors

    def should_preserve(self, checkpoints, *, context) -> list[bool]:
        del context
        errors = [self._errors.get(info.step, math.inf) for info in checkpoints]
        best = min(errors, default=math.inf)
        first_recent = len(checkpoints) - self._keep
        return [i >= first_recent or error == best < math.inf for i, error in enumerate(errors)]


def _remove_unreadable_metrics(workdir: pathlib.Path) -> None:
    """Removes torn metrics of Orbax, which earlier releases wrote and nothing here reads.

    Orbax parses all of them when it opens a directory, and fails.
    """
    for file in (workdir / DIRECTORY).glob("*/metrics/metrics"):
        try:
            json.loads(file.read_text())
        except ValueError:
            file.unlink(missing_ok=True)


def start_from(workdir: str | os.PathLike, state: TrainState) -> TrainState:
    """`state` with the newest weights of another run, the averaged ones if it has any.

    Raises a `CheckpointError` if that run has none, or weights of another model.
    """
    weights, _ = checkpoint.read_weights(workdir, checkpoint.newest(workdir))
    params = _fill(state.params, _by_path(weights))
    averages = None if state.averages is None else jax.tree.map(np.array, params)
    return state._replace(params=params, averages=averages)


def _to_items(state: TrainState) -> dict[str, Any]:
    """The state as host arrays, copied: the state's own buffers are donated to the next step."""
    host = jax.tree.map(lambda x: np.array(x), state._replace(key=jax.random.key_data(state.key)))
    training = host._replace(params=None, averages=None)
    items = {"params": host.params, "training": _by_path(training)}
    if host.averages is not None:
        items["averages"] = host.averages
    return items


def _from_items(items: Mapping[str, Any], like: TrainState) -> TrainState:
    expected = jax.eval_shape(lambda s: s._replace(key=jax.random.key_data(s.key)), like)
    empty = expected._replace(params=None, averages=None)
    training = _fill(empty, items["training"])
    params = _fill(expected.params, _by_path(items["params"]))
    averages = like.averages
    if averages is not None:
        averages = _fill(expected.averages, _by_path(items["averages"]))
    key = jax.random.wrap_key_data(jnp.asarray(training.key))
    return training._replace(params=params, averages=averages, key=key)


def _by_path(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _fill(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A tree of the structure of `like` with the leaves of `arrays`."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}
    found = {path: (leaf.shape, leaf.dtype) for path, leaf in arrays.items()}
    if wanted != found:
        wrong = sorted(path for path in wanted | found if wanted.get(path) != found.get(path))
        raise CheckpointError(
            "the checkpoint belongs to another model or optimiser; first difference at "
            f"{wrong[0]}: the checkpoint has {found.get(wrong[0])}, "
            f"the config builds {wanted.get(wrong[0])}"
        )
    return jax.tree_util.tree_unflatten(structure, [arrays[path] for path in wanted])
