"""Files of others are not trusted; files of ours appear when they are complete.

A file that is read may have come with a download: it may be a pipe on which a reader waits for
ever, a link to something of the user's, or not what its name says. A file that is written must not
replace another before it is whole, and gets the permissions that the user's umask gives: temporary
files are created the ordinary way, since reading the umask means changing it for all threads.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import stat
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

# Names of fields and splits become names of files.
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+")


class FileError(ValueError):
    """A file that must not be used; the message says why."""


def check_name(name: Any, what: str) -> str:
    """A name that stays inside its directory: letters, digits and ``_-.+``, no leading dot."""
    if not isinstance(name, str) or not name or name.startswith(".") or set(name) - PLAIN:
        raise FileError(
            f"{what} must be a plain name of letters, digits, '_', '-', '.' and '+', got {name!r}"
        )
    return name


def check_regular(path: pathlib.Path, *, within: pathlib.Path | None = None) -> pathlib.Path:
    """The path, if it is an ordinary file, and with `within` if it lies in that directory.

    A link may lead from one place of the directory to another, but not out of it. Raises a
    `FileError`, or the `FileNotFoundError` of a file that is not there.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kinds = {"directory": stat.S_ISDIR, "pipe": stat.S_ISFIFO, "socket": stat.S_ISSOCK}
        kind = next((name for name, test in kinds.items() if test(mode)), "device")
        raise FileError(f"{path} must be an ordinary file, it is a {kind}")
    if within is not None and not path.resolve().is_relative_to(within.resolve()):
        raise FileError(f"{path} is a link out of {within}, to {path.resolve()}: copy the file")
    return path


def read_json(path: pathlib.Path, *, within: pathlib.Path | None = None) -> Any:
    """The contents of a JSON file; a `FileError` if it is none."""
    try:
        return json.loads(check_regular(path, within=within).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is not JSON: {error}") from None


def read_arrays(path: pathlib.Path, *, within: pathlib.Path | None = None) -> dict[str, np.ndarray]:
    """All arrays of an .npz file, in native byte order; a `FileError` if there are others."""
    try:
        stored = np.load(check_regular(path, within=within), allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise FileError(f"{path} holds one array, not an .npz file's named arrays")
        with stored:
            arrays = {name: np.asarray(stored[name]) for name in stored}
    except FileError:
        raise
    except Exception as error:
        # Whatever the layers below make of a damaged or malicious archive.
        raise FileError(f"{path} cannot be read as an .npz file: {reason(error)}") from None
    return {name: native(array) for name, array in arrays.items()}


def native(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of the machine, the only one that JAX takes."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def reason(error: Exception) -> str:
    """An error of NumPy in our words where its own advise to trust the file."""
    text = str(error) or type(error).__name__
    if "pickle" in text:
        return "it holds Python objects or is no file of NumPy; only plain arrays are read"
    if isinstance(error, zipfile.BadZipFile):
        return "it is damaged or no archive"
    return text


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes a file at once: a reader, or whoever comes after a crash, finds the old or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def appearing_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A name to write to; what is there becomes `path` if the block ends without an error."""
    temporary = _unfinished(path)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def appearing_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A directory to fill, which becomes `path` if the block ends without an error."""
    temporary = _unfinished(path)
    # A sibling, since a directory can be renamed within one file system only.
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unfinished(path: pathlib.Path) -> pathlib.Path:
    # Cut, since a name may have 255 bytes only.
    return path.with_name(f".{path.name[:100]}-unfinished-{os.getpid()}-{secrets.token_hex(4)}")
