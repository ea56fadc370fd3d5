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
from solvers.interchange import trust

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
      split: "train", "val" or "test"; PDEBench files hold all.
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
            _import_darcy(opened, directory, scale, common, forced=True)
        elif equation == "burgers":
            _import_burgers(opened, directory, scale, common)
        else:
            _import_navier_stokes(opened, directory, scale, window, common)


def _import_darcy(opened, directory, scale, common, *, forced: bool = False) -> None:
    """Interior data a, or (a, beta) if `forced`; then cell centres become the nodes of the slightly
    smaller square, whose boundary values are those of the outer cells."""
    tensor = trust.numbers(opened, "tensor", (None, 1, None, None))
    count, _, *shape = tensor.shape
    coefficient = trust.numbers(opened, "nu", (count, *shape))
    axes = {
        name: _coordinates(opened, f"{name}-coordinate", points)
        for name, points in zip("xy", shape, strict=True)
    }
    grid, units = interchange.grid(axes), "-∇·(a∇u) = beta, with beta as in config"
    interior = interchange.pieces(coefficient, lambda v: v[..., None], count, positive=True)
    if forced:
        beta = trust.number("beta", opened.attrs["beta"], positive=False)
        interior = (_with_forcing(part, beta) for part in interior)
        lengths = [float(values[-1] - values[0]) for values in axes.values()]
        grid = {**grid, "centrings": ["node", "node"], "extent": lengths}
        units = "-∇·(a∇u) = f; boundary values are those of the outer cells"
    interchange.write(
        directory,
        {
            "coefficient": interior,
            "solution": interchange.pieces(tensor, lambda v: v[:, 0, ..., None], count),
        },
        scale=1.0 if scale is None else scale,
        samples=count,
        grid=grid,
        window=None,
        units={"solution": units},
        **common,
    )


def _with_forcing(coefficient: np.ndarray, beta: float) -> np.ndarray:
    return np.concatenate([coefficient, np.full_like(coefficient, beta)], axis=-1)


def _import_burgers(opened, directory, scale, common) -> None:
    tensor = trust.numbers(opened, "tensor", (None, None, None))
    count, frames, points = tensor.shape
    if scale is None and "Nu" not in opened.attrs:
        raise ValueError("scale must be given: the file has no attribute Nu")
    times = trust.item(opened, "t-coordinate")[...]
    if times.shape not in ((frames,), (frames + 1,)):
        raise ValueError(
            f"t-coordinate must have {frames} entries or one more, got shape {times.shape}"
        )
    axes = {
        "t": trust.coordinates("t-coordinate", times[:frames], frames),
        "x": _coordinates(opened, "x-coordinate", points),
    }
    interchange.write(
        directory,
        {"solution": interchange.pieces(tensor, lambda v: v[..., None], count)},
        scale=math.pi / trust.number("Nu", opened.attrs["Nu"]) if scale is None else scale,
        samples=count,
        grid=interchange.grid(axes),
        window=None,
        units={"scale": "Re = π/Nu", "solution": "velocity"},
        **common,
    )


def _import_navier_stokes(opened, directory, scale, window, common) -> None:
    if scale is None or window is None:
        raise ValueError(f"scale and window must be given, got {scale} and {window}")
    velocity = trust.numbers(opened, "velocity", (None, None, None, None, 2))
    count, frames, nx, ny, _ = velocity.shape
    times = trust.numbers(opened, "t", (count, frames))[...]
    if np.ptp(times - times[:, :1], axis=0).max() > trust.UNEVEN * (times[0, 1] - times[0, 0]):
        raise ValueError("t must be the same for every trajectory, up to where it starts")
    trust.coordinates("t", times[0])
    fields = {"trajectory": interchange.pieces(velocity, lambda v: v, count)}
    for name, shape in {"force": (nx, ny, 2), "particles": (frames, nx, ny, 1)}.items():
        if name in opened:
            found = trust.numbers(opened, name, (count, *shape))
            fields[name] = interchange.pieces(found, lambda v: v, count)
    interchange.write(
        directory,
        fields,
        scale=scale,
        samples=count,
        grid=interchange.grid(
            {name: interchange.coordinates(n, "cell", 1.0) for name, n in (("x", nx), ("y", ny))}
        ),
        window=trust.window({**window, "frames": "axis"}, frames, times[0, 1] - times[0, 0]),
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


def _coordinates(opened: Any, name: str, points: int) -> np.ndarray:
    return trust.coordinates(name, trust.item(opened, name)[...], points)


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
