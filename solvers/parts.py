"""Unfinished data sets: blocks of samples on disk, made by any number of processes.

Next to what is finished (see `solvers.storage`) a data set in the making has a directory ``parts``:

    description.json     what is being made; a run that makes something else is refused
    lock                 byte b is locked by the process that makes block b
    join.lock            locked while blocks are joined into the final files
    block-00017.npz      the samples of block 17

Blocks do not depend on who makes them, nor on each other. A process may be killed at any moment:
its locks go with it, and the next run makes the blocks that are missing. The process that finds all
blocks there joins them.
"""

import contextlib
import dataclasses
import fcntl
import json
import math
import pathlib
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from solvers import storage


@dataclasses.dataclass(frozen=True)
class Parts:
    """A data set in the making.

    Attributes:
      directory: where it is made.
      description: from `storage.describe`.
      block_size: samples that are solved together, and kept or lost together.
    """

    directory: pathlib.Path
    description: Mapping[str, Any]
    block_size: int

    @property
    def path(self) -> pathlib.Path:
        return self.directory / storage.PARTS

    @property
    def blocks(self) -> range:
        return range(math.ceil(self.description["samples"] / self.block_size))

    def ids(self, block: int) -> range:
        """Numbers of the samples in a block; the last block may be smaller."""
        start = block * self.block_size
        return range(start, min(start + self.block_size, self.description["samples"]))

    def finished(self) -> bool:
        """Whether the data set is there; raises a StorageError if another one is."""
        try:
            meta = json.loads((self.directory / storage.META).read_text())
        except FileNotFoundError:
            return False
        self._require_same({key: meta.get(key) for key in self.description})
        return True

    @contextlib.contextmanager
    def claimed(self, blocks: Iterable[int]) -> Iterator[None]:
        """Reserves `blocks` for this process; raises a StorageError if another one has any."""
        self.path.mkdir(parents=True, exist_ok=True)
        # Locks go when the process ends, however it ends. Closing any descriptor of the file would
        # release them as well, hence nothing else opens it.
        with (self.path / "lock").open("wb") as lock:
            for block in blocks:
                try:
                    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, block)
                except (BlockingIOError, PermissionError):
                    raise storage.StorageError(
                        f"{self.directory}: another process is making block {block}; give each "
                        "process its own --shard, or wait until it has ended"
                    ) from None
            self._describe()
            yield

    def missing(self) -> list[int]:
        """The blocks of which samples are missing."""
        return [block for block in self.blocks if not all(self._done(block))]

    def keep(
        self,
        block: int,
        fields: Mapping[str, np.ndarray],
        measures: Mapping[str, np.ndarray],
        good: np.ndarray,
    ) -> None:
        """Stores the samples of a block for which `good` is true.

        Samples that were kept before and are not good this time stay as they were.
        """
        arrays = {f"field-{name}": values for name, values in fields.items()}
        arrays |= {f"measure-{name}": values for name, values in measures.items()}
        arrays["good"] = good
        if np.any(rescued := self._done(block) & ~good):
            for name, values in arrays.items():
                arrays[name] = values.copy()
                arrays[name][rescued] = self._load(block, name)[rescued]
        with storage.created(self._file(block), self.path) as stream:
            np.savez(stream, **arrays)

    def join(self) -> bool:
        """Joins the blocks into the finished data set if all are there; whether it is finished."""
        if self.finished() or self.missing():
            return self._clean_if_finished()
        try:
            lock = (self.path / "join.lock").open("wb")
        except FileNotFoundError:  # another process has just joined and cleaned up
            return self.finished()
        with lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            if not self.finished():
                fields, measures = self._members("field-"), self._members("measure-")
                measures = {name: np.concatenate(list(m)) for name, m in measures.items()}
                storage.write(self.directory, self.description, fields, measures)
        return self._clean_if_finished()

    def require_space(self) -> None:
        """Raises a StorageError if the disk cannot take the blocks to come and the joined files."""
        sizes = [self._file(b).stat().st_size for b in self.blocks if self._file(b).exists()]
        whole = max(sizes) * len(self.blocks)
        needed, free = 2 * whole - sum(sizes), shutil.disk_usage(self.directory).free
        if needed > free:
            raise storage.StorageError(
                f"{self.directory}: about {needed / 1e9:.3g} GB are needed, {free / 1e9:.3g} GB "
                "are free. What is finished is kept: make room and run the same command again"
            )

    def _file(self, block: int) -> pathlib.Path:
        return self.path / f"block-{block:05d}.npz"

    def _done(self, block: int) -> np.ndarray:
        if not self._file(block).exists():
            return np.zeros(len(self.ids(block)), bool)
        return self._load(block, "good")

    def _load(self, block: int, name: str) -> np.ndarray:
        try:
            with np.load(self._file(block)) as part:
                return part[name]
        except (zipfile.BadZipFile, ValueError, EOFError):  # zip files carry checksums
            raise storage.StorageError(
                f"{self._file(block)} is damaged: remove it and run the same command again, which "
                "makes this block anew"
            ) from None

    def _members(self, prefix: str) -> dict[str, Iterator[np.ndarray]]:
        """What is stored under names with this prefix, block by block."""
        with np.load(self._file(0)) as part:
            names = [name for name in part if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._pieces(name) for name in names}

    def _pieces(self, name: str) -> Iterator[np.ndarray]:
        return (self._load(block, name) for block in self.blocks)

    def _describe(self) -> None:
        file = self.path / "description.json"
        try:
            self._require_same(json.loads(file.read_text()))
        except FileNotFoundError:
            with storage.created(file, self.path) as stream:
                stream.write(json.dumps(self.description, indent=1).encode())

    def _require_same(self, found: Mapping[str, Any]) -> None:
        if changes := list(_differences(found, self.description)):
            raise storage.StorageError(
                f"{self.directory} holds another data set, which is kept as it is. Differences: "
                f"{'; '.join(changes)}. Choose another directory, or remove this one"
            )

    def _clean_if_finished(self) -> bool:
        finished = self.finished()
        if finished:
            shutil.rmtree(self.path, ignore_errors=True)
        return finished


def _differences(there: Any, now: Any, path: Sequence[str] = ()) -> Iterator[str]:
    """Entries in which two JSON values differ, as ``config.seed: 0 there, 1 now``."""
    if isinstance(there, Mapping) and isinstance(now, Mapping):
        for key in sorted({*there, *now}):
            yield from _differences(there.get(key), now.get(key), (*path, key))
    elif there != now:
        yield f"{'.'.join(path)}: {there!r} there, {now!r} now"
