"""The Well's layout: ``<name>/data/{train,valid,test}/*.hdf5`` and ``<name>/stats.yaml``.

One directory holds one resolution, hence one data set of ours: ``<name>`` is the equation with its
scale. Time is a dimension of its own: Burgers becomes a one-dimensional problem in time, Darcy and
Helmholtz one frame (their loaders then need windows of one frame). A complex field is two,
``..._re`` and ``..._im``. There is no Dirichlet type: boundaries are open, and boundary values are
those of the fields there. Kolmogorov flow is periodic.
"""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from solvers import interchange, storage
from solvers.interchange import trust

# Names of our fields in their files; a vector field has a trailing axis of components.
NAMES = {
    "burgers": "velocity",
    "kolmogorov": "vorticity",
    "navier_stokes": "vorticity",
    "navier_stokes_spacetime": "velocity",
}
VECTORS = ("navier_stokes_spacetime",)
PERIODIC = ("kolmogorov",)


def export_files(directory: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    """Writes a data set below `root`, with stats.yaml if it is training data; the file's path."""
    meta, fields = storage.read(directory)
    trust.one_split(meta["split"])
    name = trust.name("equation", meta["equation"]) + f"_{trust.number('scale', meta['scale']):g}"
    split = {"val": "valid"}.get(meta["split"], meta["split"])
    file = root / name / "data" / split / f"{name}.hdf5"
    axes = interchange.grid_coordinates(meta)
    space = {axis: values for axis, values in axes.items() if axis != "t"}
    columns = _columns(meta["equation"], fields)
    with interchange.hdf5(file, "w") as opened:
        opened.attrs["dataset_name"] = name
        opened.attrs["grid_type"] = "cartesian"
        opened.attrs["n_spatial_dims"] = len(space)
        opened.attrs["n_trajectories"] = meta["samples"]
        opened.attrs["simulation_parameters"] = ["scale"]
        opened.attrs["scale"] = meta["scale"]
        opened.create_group("scalars").attrs["field_names"] = ["scale"]
        _varying(opened["scalars"].create_dataset("scale", data=meta["scale"]), False, False)
        _write_dimensions(opened, space, _times(meta, fields))
        orders = {"t0_fields": 0, "t1_fields": 1, "t2_fields": 2}
        for group, order in orders.items():
            chosen = {n: column for n, column in columns.items() if column.order == order}
            opened.create_group(group).attrs["field_names"] = list(chosen)
            for column_name, column in chosen.items():
                stored = opened[group].create_dataset(column_name, data=column.values)
                _varying(stored, sample=True, time=column.in_time)
                stored.attrs["dim_varying"] = [True] * len(space)
        for axis, values in space.items():
            _write_boundary(opened, axis, len(values), periodic=meta["equation"] in PERIODIC)
    if meta["split"] == "train":
        (root / name / "stats.yaml").write_text(_statistics(columns))
    return file


class _Column:
    """One of their fields: values ``(n, [T,] *space, [D])``, tensor order, whether it has T."""

    def __init__(self, values: np.ndarray, order: int, in_time: bool):
        self.values, self.order, self.in_time = values, order, in_time


def _columns(equation: str, fields: Mapping[str, np.ndarray]) -> dict[str, _Column]:
    if "trajectory" in fields:
        values = fields["trajectory"]
        if equation in VECTORS:
            return {NAMES[equation]: _Column(values, 1, True)}
        return {NAMES[equation]: _Column(values[..., 0], 0, True)}
    if equation == "burgers":
        return {NAMES[equation]: _Column(fields["solution"][..., 0], 0, True)}
    columns = {"coefficient": _Column(fields["coefficient"][..., 0], 0, False)}
    solution = fields["solution"][:, None, ..., 0]
    if np.iscomplexobj(solution):
        columns["solution_re"] = _Column(solution.real, 0, True)
        columns["solution_im"] = _Column(solution.imag, 0, True)
    else:
        columns["solution"] = _Column(solution, 0, True)
    return columns


def _times(meta: Mapping[str, Any], fields: Mapping[str, np.ndarray]) -> np.ndarray:
    if meta["window"]:
        return meta["window"]["dt"] * np.arange(fields["trajectory"].shape[1])
    return interchange.grid_coordinates(meta).get("t", np.zeros(1))


def _write_dimensions(opened, space: Mapping[str, np.ndarray], times: np.ndarray) -> None:
    group = opened.create_group("dimensions")
    group.attrs["spatial_dims"] = list(space)
    for name, values in {"time": times, **space}.items():
        _varying(group.create_dataset(name, data=values.astype("f4")), False, False)


def _write_boundary(opened, axis: str, points: int, *, periodic: bool) -> None:
    kind = "periodic" if periodic else "open"
    group = opened.require_group("boundary_conditions").create_group(f"{axis}_{kind}")
    group.attrs["bc_type"] = kind.upper()
    group.attrs["associated_dims"] = [axis]
    group.attrs["associated_fields"] = []
    _varying(group, False, False)
    group["mask"] = np.isin(np.arange(points), (0, points - 1))


def _varying(item, sample: bool, time: bool) -> None:
    item.attrs["sample_varying"] = sample
    item.attrs["time_varying"] = time


def _statistics(columns: Mapping[str, _Column]) -> str:
    """stats.yaml: a number for each scalar field, a list for each vector; deltas are in time."""
    measures = {"mean": np.mean, "std": np.std, "rms": lambda v, **k: np.sqrt(np.mean(v**2, **k))}
    lines = []
    for suffix in ("", "_delta"):
        for measure, function in measures.items():
            lines.append(f"{measure}{suffix}:")
            for name, column in columns.items():
                values = np.asarray(column.values, np.float64)
                if suffix and not (column.in_time and values.shape[1] > 1):
                    continue
                values = np.diff(values, axis=1) if suffix else values
                axes = tuple(range(values.ndim - column.order))
                lines.append(f"  {name}: {json.dumps(function(values, axis=axes).tolist())}")
    return "\n".join(lines) + "\n"


def import_file(
    file: pathlib.Path,
    directory: pathlib.Path,
    *,
    equation: str,
    split: str = "train",
    scale: float | None = None,
    window: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
) -> None:
    """Makes a data set of one file of The Well.

    Args:
      file: the HDF5 file.
      directory: of the new data set; must not exist or be empty.
      equation: of the registry.
      split: "train", "val" or "test".
      scale: of the data; by default the scalar of that name.
      window: history, horizon, stride and frames, needed for evolutions in two dimensions.
      names: fields in the order of the channels of the solution; by default all but "coefficient".
    """
    with interchange.hdf5(file, "r") as opened:
        dimensions = trust.item(opened, "dimensions")
        space = {}
        for name in map(_text, dimensions.attrs["spatial_dims"]):
            values = trust.item(dimensions, trust.name("a spatial dimension", name))[...]
            space[name] = trust.coordinates(name, values)
        times = np.atleast_2d(trust.item(dimensions, "time")[...])[0]
        if len(times) > 1:
            trust.coordinates("time", times)
        available = {
            name: trust.item(trust.item(opened, group), trust.name("a field", name))
            for group in ("t0_fields", "t1_fields", "t2_fields")
            for name in map(_text, trust.item(opened, group).attrs["field_names"])
        }
        names = list(names or [name for name in available if name != "coefficient"])
        if unknown := sorted(set(names) - set(available)):
            raise ValueError(f"names must be among {sorted(available)}, got {unknown}")
        if not names:
            raise ValueError("the file has no field to import")
        count = trust.count("n_trajectories", opened.attrs["n_trajectories"])
        if scale is None and "scale" not in trust.item(opened, "scalars"):
            raise ValueError("scale must be given: the file has no scalar of that name")
        layout = _Layout(count, len(times), tuple(len(v) for v in space.values()))
        evolution = len(times) > 1
        solution = layout.joined([available[name] for name in names], names, keep_time=evolution)
        if evolution and len(space) > 1:
            if window is None:
                raise ValueError("window must be given for an evolution in two dimensions")
            window = trust.window(window, len(times), times[1] - times[0])
            fields, axes = {"trajectory": solution}, space
        else:
            window = None
            fields = {"solution": solution}
            axes = {"t": times, **space} if evolution else space
        if "coefficient" in available and not evolution:
            coefficient = layout.joined(
                [available["coefficient"]], ["coefficient"], keep_time=False, positive=True
            )
            fields = {"coefficient": coefficient, **fields}
        interchange.write(
            directory,
            fields,
            equation=equation,
            split=split,
            scale=_scale(opened) if scale is None else scale,
            samples=count,
            grid=interchange.grid(axes),
            window=window,
            units={},
            source={"layout": "the_well", "file": file.name, "fields": names},
        )


def _scale(opened: Any) -> float:
    return trust.number("scale", trust.item(trust.item(opened, "scalars"), "scale")[()])


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


class _Layout:
    """Reads their fields, which leave out the axes along which they do not vary."""

    def __init__(self, count: int, frames: int, space: tuple[int, ...]):
        self.count, self.frames, self.space = count, frames, space

    def joined(
        self,
        sources: Sequence[Any],
        names: Sequence[str],
        *,
        keep_time: bool,
        positive: bool = False,
    ):
        """Pieces ``[some, (time,) *space, channel]`` of several fields, channel after channel.

        Pairs ``..._re``, ``..._im`` become one complex channel.
        """

        def transform(rows: np.ndarray) -> np.ndarray:
            parts = {
                name: self._rows(source, rows, keep_time)
                for name, source in zip(names, sources, strict=True)
            }
            channels = []
            for name, values in parts.items():
                if name.endswith("_im") and f"{name[:-3]}_re" in parts:
                    continue
                partner = parts.get(f"{name[:-3]}_im") if name.endswith("_re") else None
                channels.append(values if partner is None else values + 1j * partner)
            return np.concatenate(channels, axis=-1)

        for name, source in zip(names, sources, strict=True):
            self._check(name, source)
        return interchange.pieces(np.arange(self.count), transform, self.count, positive=positive)

    def _check(self, name: str, source: Any) -> None:
        """That a field's axes are as long as the dimensions along which it varies."""
        sample, time, space = (
            source.attrs[f"{what}_varying"] for what in ("sample", "time", "dim")
        )
        if len(space) != len(self.space):
            raise ValueError(
                f"dim_varying of {name} must say something about each of the "
                f"{len(self.space)} spatial dimensions, got {len(space)}"
            )
        expected = [self.count] * bool(sample) + [self.frames] * bool(time)
        expected += [n for n, varies in zip(self.space, space, strict=True) if varies]
        if list(source.shape[: len(expected)]) != expected:
            raise ValueError(
                f"{name} must have the axes {expected}, as the file describes it, "
                f"got shape {list(source.shape)}"
            )

    def _rows(self, source: Any, rows: np.ndarray, keep_time: bool) -> np.ndarray:
        first, last = int(rows[0]), int(rows[-1]) + 1
        in_sample, in_time = source.attrs["sample_varying"], source.attrs["time_varying"]
        values = source[first:last] if in_sample else source[...][None]
        values = values if in_time else values[:, None]
        for axis, varies in enumerate(source.attrs["dim_varying"]):
            values = values if varies else np.expand_dims(values, 2 + axis)
        components = int(np.prod(values.shape[2 + len(self.space) :]))
        values = values.reshape(*values.shape[: 2 + len(self.space)], components)
        values = np.broadcast_to(values, (len(rows), self.frames, *self.space, components))
        return values if keep_time else values[:, 0]
