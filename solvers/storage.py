"""Data sets written so that nobody ever reads half of one.

A finished data set is a directory of one ``<field>.npy`` for each field and a ``meta.json``, which
is written last: without it there is no data set. Every file appears under its name only when it is
complete and on disk (temporary file, fsync, rename), so that a process may be killed at any moment.
`sino_jax.data` reads the result and says what meta.json must hold; `solvers.parts` keeps what is
finished of a data set in the making.
"""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

FORMAT = "sino-jax data set"
FORMAT_VERSION = 1
META = "meta.json"
PARTS = "parts"


class StorageError(RuntimeError):
    """The data set cannot be written as asked; what was finished before is kept."""


@contextlib.contextmanager
def created(file: pathlib.Path, scratch: pathlib.Path) -> Iterator[BinaryIO]:
    """A stream whose contents appear as `file` at once, when complete and on disk, or not at all.

    Args:
      file: the name under which it appears; what was there before is replaced.
      scratch: directory of the temporary file, on the same file system.
    """
    # Not tempfile's, whose files are private: this one has the permissions that the umask leaves.
    temporary = scratch / f"{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
        _sync_directory(file.parent)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise StorageError(
            f"{file}: {error.strerror}. All samples finished before are kept: "
            "make room and run the same command again"
        ) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _sync_directory(directory: pathlib.Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def describe(**entries: Any) -> dict[str, Any]:
    """The part of meta.json that is known before the first sample, as plain JSON values."""
    entries = {"format": FORMAT, "format_version": FORMAT_VERSION, **entries}
    return json.loads(json.dumps(entries))


def read(directory: pathlib.Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and memory-mapped fields of a finished data set.

    Raises:
      StorageError: the data set is not finished, or a file is missing, not an ordinary file of this
        directory, or not an array of numbers.
    """
    try:
        meta = json.loads(_own_file(directory, META).read_text())
        names = list(meta["fields"])
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{directory / META} is damaged: {error}") from None
    fields = {}
    for name in names:
        if not re.fullmatch(r"\w+", name):
            raise StorageError(f"{directory / META} names a field {name!r:.60}: not a plain name")
        file = _own_file(directory, f"{name}.npy")
        try:
            fields[name] = np.load(file, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError, SyntaxError):
            raise StorageError(f"{file} is damaged, or no array of numbers") from None
    return meta, fields


def _own_file(directory: pathlib.Path, name: str) -> pathlib.Path:
    """An ordinary file in the directory itself: what it links to could be anything."""
    file = directory / name
    try:
        mode = os.lstat(file).st_mode
    except FileNotFoundError:
        raise StorageError(f"{file} is missing: the data set is not finished, or none") from None
    if not stat.S_ISREG(mode):
        raise StorageError(f"{file} must be an ordinary file, got a link, directory or device")
    return file


def write(
    directory: pathlib.Path,
    description: Mapping[str, Any],
    fields: Mapping[str, Iterable[np.ndarray]],
    measures: Mapping[str, np.ndarray],
) -> None:
    """Writes the final files of a data set, meta.json last, and removes ``parts/``.

    Args:
      directory: may hold files of an earlier, interrupted call.
      description: from `describe`; its ``samples`` is the number of samples.
      fields: for each field its samples in order, in pieces ``[some, ...]``.
      measures: numbers that say how good each sample is, such as the solver's residual.
    """
    scratch = directory / PARTS
    scratch.mkdir(parents=True, exist_ok=True)
    entries = {
        name: _write_field(directory / f"{name}.npy", pieces, description["samples"], scratch)
        for name, pieces in fields.items()
    }
    lists = {name: np.asarray(values).tolist() for name, values in measures.items()}
    meta = {**description, "fields": entries, "measures": lists}
    canonical = json.dumps(meta, sort_keys=True, separators=(",", ":"))
    meta["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
    with created(directory / META, scratch) as stream:
        stream.write(json.dumps(meta, indent=1).encode())
    shutil.rmtree(scratch, ignore_errors=True)


def _write_field(
    file: pathlib.Path, pieces: Iterable[np.ndarray], count: int, scratch: pathlib.Path
) -> dict[str, Any]:
    """One .npy file from its pieces, never in memory at once; its entry in meta.json."""
    digest, shape, dtype, written = hashlib.sha256(), None, None, 0
    with created(file, scratch) as stream:
        for piece in pieces:
            if shape is None:
                shape, dtype = (count, *piece.shape[1:]), piece.dtype
                header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(_Tee(stream, digest), header)
            if (piece.shape[1:], piece.dtype) != (shape[1:], dtype):
                raise ValueError(f"{file}: samples of {piece.dtype}{piece.shape[1:]} among {dtype}")
            _Tee(stream, digest).write(np.ascontiguousarray(piece).data.cast("B"))
            written += len(piece)
        if written != count:
            raise ValueError(f"{file}: {written} samples came, {count} were announced")
    return {"shape": list(shape), "dtype": dtype.str, "sha256": digest.hexdigest()}


class _Tee:
    """Writes to a stream and a digest: the checksum is of what was meant."""

    def __init__(self, stream: BinaryIO, digest: Any):
        self.stream, self.digest = stream, digest

    def write(self, content: bytes | memoryview) -> None:
        self.digest.update(content)
        self.stream.write(content)
