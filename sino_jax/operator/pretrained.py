"""Trained operators that come with the package, by name: ``sino_jax.operator.load("darcy")``.

Each is a portable directory (see `portable`) below ``sino_jax/pretrained`` with a model card,
``README.md``: training data, scales, errors, licence, and the command that trained it.
``python -m experiments.publish`` makes such a directory from a finished run.
"""

import os
import pathlib

from sino_jax import checkpoint
from sino_jax.operator import portable

DIRECTORY = pathlib.Path(__file__).resolve().parents[1] / "pretrained"


def available() -> tuple[str, ...]:
    """Names of the operators that this installation has."""
    return tuple(sorted(path.parent.name for path in DIRECTORY.glob(f"*/{portable.META_FILE}")))


def directory(name: str) -> pathlib.Path:
    """Where the operator of a name is; a ValueError lists the names that there are."""
    if name not in available():
        raise ValueError(f"name must be one of {', '.join(available())}, got {name!r}")
    return DIRECTORY / name


def resolve(given: str | os.PathLike) -> pathlib.Path:
    """The directory that `load` was given, or the one of the operator that it names.

    Raises:
      ValueError: a name, and also a directory in the working directory that holds an operator.
      FileNotFoundError: neither.
    """
    place = pathlib.Path(given)
    if isinstance(given, str) and given in available():
        if portable.is_portable(place) or checkpoint.finished_steps(place):
            raise ValueError(
                f"{given!r} names an operator of the package and a directory here: write "
                f"'./{given}' for the directory, or move it to load the package's operator"
            )
        return directory(given)
    if place.is_dir():
        return place
    problem = f"{place}: there is no such directory"
    if len(place.parts) == 1:
        problem += f"; operators that come with the package are {', '.join(available()) or 'none'}"
    raise FileNotFoundError(problem)
