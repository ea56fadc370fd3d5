"""The directory of a run: one writer at a time, and one config for good.

workdir/config.json    the completed config, written once the run can begin
workdir/lock           exists while a process trains here; a lock of the system, which a process
                       loses when it ends, however that happens
"""

import contextlib
import json
import os
import pathlib
import socket
from collections.abc import Iterator

import jax
import numpy as np
from jax.experimental import multihost_utils
from ml_collections import FrozenConfigDict

from sino_jax import checkpoint, files
from sino_jax.train import config as configs

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

CONFIG_FILE = "config.json"
LOCK_FILE = "lock"


class InUseError(RuntimeError):
    """A directory that this process cannot train in: another one does, or it is not writable."""


@contextlib.contextmanager
def lock(workdir: pathlib.Path) -> Iterator[None]:
    """Makes the directory, and keeps other writers out of it; raises an `InUseError` at once.

    If it is left by an exception before anything was written, the directory is removed again.
    """
    new = not workdir.exists()
    chief = jax.process_index() == 0
    file, reason = _acquire(workdir) if chief else (None, "")
    # All processes learn of it, or the others would wait for the first one.
    if _on_any_process(chief and file is None):
        raise InUseError(f"{workdir} {reason or 'is refused by the first process'}")
    try:
        yield
    finally:
        if file is not None:
            (workdir / LOCK_FILE).unlink(missing_ok=True)
            file.close()
            if new:
                with contextlib.suppress(OSError):  # not empty: the run has begun
                    workdir.rmdir()


def _acquire(workdir: pathlib.Path):
    """The open and locked file, or None and the reason why there is none."""
    path = workdir / LOCK_FILE
    while True:
        try:
            workdir.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
        except OSError as error:
            return None, f"cannot be written: {error}"
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            return None, (
                f"is in use by {holder}: a run has one writer; wait for it, end it, or choose "
                "another workdir"
            )
        except OSError:
            pass  # a file system without locks
        # One that ended in between may have removed the file that we opened.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            return file, ""
        file.close()


def _on_any_process(value: bool) -> bool:
    """Whether `value` is true on one of the processes, which all learn it."""
    if jax.process_count() == 1:
        return value
    return bool(np.any(multihost_utils.process_allgather(np.array(value))))


def check(workdir: pathlib.Path, config: FrozenConfigDict) -> None:
    """Refuses the directory of a run with a different config.

    A config file that was torn by a crash is as good as none if the directory has no checkpoint;
    otherwise the newest readable checkpoint tells what it was.
    """
    path = workdir / CONFIG_FILE
    if not path.exists():
        return
    try:
        there = json.loads(path.read_text())
        if not isinstance(there, dict):
            raise ValueError("no object")
    except ValueError:
        there = _config_of_checkpoints(workdir)
    if there is not None:
        check_same(there, config, of=f"{workdir} belongs to a run")


def check_same(recorded: configs.ConfigLike, config: FrozenConfigDict, *, of: str) -> None:
    """Raises a ValueError that lists the fields in which `recorded` differs from `config`.

    Fields that are newer than the record count as their defaults, which change nothing.
    """
    # A record that is no valid config any more is compared as it stands.
    with contextlib.suppress(ValueError):
        recorded = configs.complete(recorded)
    ignored = (*configs.RUNTIME_FIELDS, "experiment")  # a record, which nothing is made of
    changed = configs.differences(recorded, config, ignore=ignored)
    if changed:
        raise ValueError(
            f"{of} of a different config (there -> here): {'; '.join(changed)}. Choose another "
            "workdir, or delete this one. A finished run is trained further in another workdir, "
            "with start_from naming this one: from its weights, with a schedule of its own."
        )


def claim(workdir: pathlib.Path, config: FrozenConfigDict) -> None:
    """Writes the config into a directory that has none, or a torn one."""
    path = workdir / CONFIG_FILE
    if jax.process_index() != 0:
        return
    try:
        if isinstance(json.loads(path.read_text()), dict):
            return
    except (FileNotFoundError, ValueError):
        pass
    files.write_text(path, configs.to_json(config))


def _config_of_checkpoints(workdir: pathlib.Path) -> dict | None:
    for step in reversed(checkpoint.finished_steps(workdir)):
        with contextlib.suppress(checkpoint.CheckpointError):
            return checkpoint.read_meta(workdir, step)["config"]
    return None
