"""PDEBench's layouts of Darcy flow, the 1-D Burgers equation and incompressible Navier-Stokes.

    Darcy           .hdf5   tensor (N, 1, Nx, Ny), nu (N, Nx, Ny), x-/y-coordinate, attribute beta
    Burgers         .hdf5   tensor (N, Nt, Nx), x-coordinate, t-coordinate (Nt + 1), attribute Nu
    Navier-Stokes   .h5     velocity (B, Nt, Nx, Ny, 2), t (B, Nt), force, particles

What differs from this package: PDEBench's Darcy flow has the right-hand side beta and zero boundary
values; its Burgers equation is u_t + (u²/2)_x = (Nu/π) u_xx, hence Re = π/Nu; its Navier-Stokes
flow is forced. The time axis of Burgers files is one longer than the data. Loaders go by the ending
of the file name.
"""

import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from solvers import interchange, storage

ENDINGS = {
    "darcy": ".hdf5",
    "darcy_forced": ".hdf5",
    "burgers": ".hdf5",
    "navier_stokes_spacetime": ".h5",
}


def import_file(
    file: pathlib.Path,
    directory: pathlib.Path,
    *,
    equation: str,
    split: str = "train",
    scale: float | None = None,
    window: Mapping[str, Any] | None = None,
) -> None:
    """Makes a data set of a PDEBench file.

    Args:
      file: the HDF5 file.
      directory: of the new data set; must not exist or be empty.
      equation: "darcy", "darcy_forced" (the right-hand side beta is a channel of the interior data,
        as scale-consistency needs it), "burgers" or "navier_stokes_spacetime".
      split: "train" or "test"; PDEBench files hold both.
      scale: of the data. Burgers files state it; for Darcy it is a label and is 1 by default.
      window: history, horizon and stride in frames, for Navier-Stokes.
    """
    _check(equation, file)
    with interchange.hdf5(file, "r") as opened:
        source = {"layout": "pdebench", "file": file.name}
        source |= {name: _plain(value) for name, value in opened.attrs.items()}
        common = {"equation": equation, "split": split, "source": source}
        if equation == "darcy":
            _import_darcy(opened, directory, scale, common)
        elif equation == "darcy_forced":
            _import_forced_darcy(opened, directory, scale, common)
        elif equation == "burgers":
            _import_burgers(opened, directory, scale, common)
        else:
            _import_navier_stokes(opened, directory, scale, window, common)


def _import_darcy(opened, directory, scale, common) -> None:
    count = len(opened["tensor"])
    interchange.write(
        directory,
        {
            "coefficient": interchange.pieces(opened["nu"], lambda v: v[..., None], count),
            "solution": interchange.pieces(opened["tensor"], lambda v: v[:, 0, ..., None], count),
        },
        scale=float(scale or 1.0),
        samples=count,
        grid=interchange.grid({name: opened[f"{name}-coordinate"][:] for name in "xy"}),
        window=None,
        units={"solution": "-∇·(a∇u) = beta, with beta as in config"},
        **common,
    )


def _import_forced_darcy(opened, directory, scale, common) -> None:
    """Interior data (a, beta). Cell centres become the nodes of the slightly smaller square."""
    count = len(opened["tensor"])
    beta = np.asarray(opened.attrs["beta"], opened["nu"].dtype)

    def with_forcing(values: np.ndarray) -> np.ndarray:
        return np.stack([values, np.full_like(values, beta)], axis=-1)

    axes = {name: opened[f"{name}-coordinate"][:] for name in "xy"}
    interchange.write(
        directory,
        {
            "coefficient": interchange.pieces(opened["nu"], with_forcing, count),
            "solution": interchange.pieces(opened["tensor"], lambda v: v[:, 0, ..., None], count),
        },
        scale=float(scale or 1.0),
        samples=count,
        grid={
            "axes": list(axes),
            "shape": [len(values) for values in axes.values()],
            "centrings": ["node"] * len(axes),
            "extent": [float(values[-1] - values[0]) for values in axes.values()],
        },
        window=None,
        units={"solution": "-∇·(a∇u) = f; boundary values are those of the outer cells"},
        **common,
    )


def _import_burgers(opened, directory, scale, common) -> None:
    count, frames, _ = opened["tensor"].shape
    if scale is None and "Nu" not in opened.attrs:
        raise ValueError("scale must be given: the file has no attribute Nu")
    interchange.write(
        directory,
        {"solution": interchange.pieces(opened["tensor"], lambda v: v[..., None], count)},
        scale=float(scale or math.pi / opened.attrs["Nu"]),
        samples=count,
        grid=interchange.grid(
            {"t": opened["t-coordinate"][:frames], "x": opened["x-coordinate"][:]}
        ),
        window=None,
        units={"scale": "Re = π/Nu", "solution": "velocity"},
        **common,
    )


def _import_navier_stokes(opened, directory, scale, window, common) -> None:
    if scale is None or window is None:
        raise ValueError(f"scale and window must be given, got {scale} and {window}")
    count, _, nx, ny, _ = opened["velocity"].shape
    times = opened["t"][0]
    fields = {"trajectory": interchange.pieces(opened["velocity"], lambda v: v, count)}
    for name in ("force", "particles"):
        if name in opened:
            fields[name] = interchange.pieces(opened[name], lambda v: v, count)
    interchange.write(
        directory,
        fields,
        scale=float(scale),
        samples=count,
        grid=interchange.grid(
            {name: interchange.coordinates(n, "cell", 1.0) for name, n in (("x", nx), ("y", ny))}
        ),
        window={**window, "frames": "axis", "dt": float(times[1] - times[0])},
        units={"x, y": "unit square", "trajectory": "velocity"},
        **common,
    )


def export_file(directory: pathlib.Path, file: pathlib.Path) -> None:
    """Writes a data set as a PDEBench file, contiguous for fast random access."""
    meta, fields = storage.read(directory)
    _check(meta["equation"], file)
    axes = interchange.grid_coordinates(meta)
    with interchange.hdf5(file, "w") as opened:
        if meta["equation"] in ("darcy", "darcy_forced"):
            opened["nu"] = fields["coefficient"][..., 0]
            opened["tensor"] = fields["solution"][:, None, ..., 0]
            opened.attrs["beta"] = meta["config"].get("beta", 0.0)
        elif meta["equation"] == "burgers":
            opened["tensor"] = fields["solution"][..., 0]
            opened.attrs["Nu"] = math.pi / meta["scale"]
            times = axes.pop("t")
            opened["t-coordinate"] = np.append(times, 2 * times[-1] - times[-2]).astype("f4")
        else:
            count, frames = fields["trajectory"].shape[:2]
            times = meta["window"]["dt"] * np.arange(frames)
            opened["t"] = np.tile(times.astype("f4"), (count, 1))
            opened["velocity"] = fields["trajectory"]
            for name in ("force", "particles"):
                if name in fields:
                    opened[name] = fields[name]
            return
        for name, values in axes.items():
            opened[f"{name}-coordinate"] = values.astype("f4")


def _check(equation: str, file: pathlib.Path) -> None:
    if equation not in ENDINGS:
        raise ValueError(f"equation must be one of {sorted(ENDINGS)}, got {equation!r}")
    if file.suffix != ENDINGS[equation]:
        raise ValueError(
            f"PDEBench's loaders take {equation} from files that end in {ENDINGS[equation]}, "
            f"got {file.name}"
        )


def _plain(value: Any) -> Any:
    """An HDF5 attribute as a JSON value."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
