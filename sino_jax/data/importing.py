"""Makes data sets of a file of arrays:

    sino-jax import npz fields.npz data/mine --equation=helmholtz \\
        --map coefficient=c,solution=u,scale=k --split train=0.8,val=0.1,test=0.1
    sino-jax import hdf5 fields.h5 data/mine --equation=darcy --map solution=run/p --scale=1

``--map`` says which array of the file is which field: coefficient, boundary, solution and scale; a
field of the same name needs no entry. Arrays are ``[sample, *grid]`` or
``[sample, *grid, channel]`` (see `sino_jax.data.from_arrays`). HDF5 needs h5py (the extra
``hdf5``).
"""

import argparse
import importlib
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sino_jax import files
from sino_jax.data.arrays import from_arrays

FIELDS = ("coefficient", "boundary", "solution", "scale")


def read(layout: str, file: pathlib.Path, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The arrays of the fields in a file.

    Args:
      layout: "npz" or "hdf5".
      file: the file.
      names: field -> array in the file.

    Raises:
      ValueError: an array is not there; lists those that are.
    """
    if layout == "npz":
        return _select(files.read_arrays(file), names, file)
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise ValueError("HDF5 files need h5py: pip install 'sino-jax[hdf5]'") from None
    try:
        opened = h5py.File(files.check_regular(file), "r")
    except OSError as error:
        raise ValueError(f"{file} cannot be read as HDF5: {error}") from None
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:  # is not called for links to other files
        if isinstance(item, h5py.Dataset) and not (item.external or item.is_virtual):
            found[name] = item

    with opened:
        opened.visititems(visit)
        return _select(found, names, file)


def _select(
    stored: Mapping[str, Any], names: Mapping[str, str], file: pathlib.Path
) -> dict[str, np.ndarray]:
    wanted = {**{field: field for field in FIELDS if field in stored}, **names}
    if missing := {field: name for field, name in wanted.items() if name not in stored}:
        held = ", ".join(f"{name} {list(item.shape)}" for name, item in sorted(stored.items()))
        asked = ", ".join(f"{field}={name}" for field, name in missing.items())
        raise ValueError(f"--map asks for {asked}, which {file} does not hold; it holds {held}")
    return {field: np.asarray(stored[name]) for field, name in wanted.items()}


def parse_names(text: str) -> dict[str, str]:
    """``"coefficient=nu,solution=u"`` as a dictionary; refuses unknown fields."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    unknown = [field for field, _, name in pairs if field not in FIELDS or not name]
    if unknown:
        raise ValueError(f"--map takes field=array with fields {', '.join(FIELDS)}, got {text!r}")
    return {field: name for field, _, name in pairs}


def parse_split(text: str) -> str | dict[str, float]:
    """``"train"``, or shares like ``"train=0.8,test=0.2"``."""
    if "=" not in text:
        return text
    try:
        return {
            name: float(share) for name, _, share in (p.partition("=") for p in text.split(","))
        }
    except ValueError:
        raise ValueError(f"--split takes train, or train=0.8,test=0.2, got {text!r}") from None


def parse_extent(text: str) -> list[float]:
    """``"2,1"`` as side lengths."""
    try:
        return [float(side) for side in text.split(",")]
    except ValueError:
        raise ValueError(f"--extent takes side lengths like 2,1, got {text!r}") from None


def main(argv: Sequence[str] | None = None) -> None:
    """The command line; errors are one line on stderr and exit code 1."""
    parser = argparse.ArgumentParser(
        prog="sino-jax import",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("layout", choices=["npz", "hdf5"])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, help="directory of the new data sets")
    parser.add_argument("--equation", required=True)
    parser.add_argument("--map", default="", help="field=array,...")
    parser.add_argument("--scale", type=float, help="of all samples, if the file has none")
    parser.add_argument("--split", default="train", help="train, val, test, or shares")
    parser.add_argument("--extent", help="side lengths, as 2,1; 1 each by default")
    parser.add_argument("--seed", type=int, default=0, help="of the random split")
    arguments = parser.parse_args(argv)
    try:
        given = read(arguments.layout, arguments.file, parse_names(arguments.map))
        if arguments.scale is not None:
            given["scale"] = arguments.scale
        if "scale" not in given:
            raise ValueError("--scale must be given, or --map must say which array the scale is")
        if "solution" not in given:
            raise ValueError(f"--map must say which array of {arguments.file} the solution is")
        made = from_arrays(
            arguments.out,
            equation=arguments.equation,
            split=parse_split(arguments.split),
            extent=parse_extent(arguments.extent) if arguments.extent else None,
            seed=arguments.seed,
            source={"file": arguments.file.name, "map": arguments.map},
            **given,
        )
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    for dataset in made.values():
        grid = " x ".join(map(str, dataset.grid))
        sys.stdout.write(f"{dataset.path}: {len(dataset)} samples on {grid}\n")


if __name__ == "__main__":
    main()
