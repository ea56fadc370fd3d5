"""Files of others: wrong numbers are named, nothing outside of a file is read or written."""

import json
import os
import pathlib
import stat

import numpy as np
import pytest

from solvers import storage
from solvers.interchange import pdebench, the_well, trust
from tests.dataset_files import write_dataset

h5py = pytest.importorskip("h5py")

WINDOW = {"history": 2, "horizon": 2, "stride": 1, "frames": "axis"}


def random(*shape):
    return np.random.default_rng(0).uniform(1, 2, size=shape).astype(np.float32)


def darcy(opened):
    opened["nu"], opened["tensor"] = random(2, 5, 6), random(2, 1, 5, 6)
    opened["x-coordinate"], opened["y-coordinate"] = np.linspace(0, 1, 5), np.linspace(0, 1, 6)


def burgers(opened):
    opened["tensor"] = random(2, 4, 8)
    opened["t-coordinate"], opened["x-coordinate"] = np.linspace(0, 1, 5), np.linspace(0, 1, 8)
    opened.attrs["Nu"] = 0.01


def flow(opened):
    opened["velocity"] = random(2, 5, 4, 4, 2)
    opened["t"] = np.tile(0.1 * np.arange(5, dtype=np.float32), (2, 1))


def well(opened):
    opened.attrs["n_trajectories"] = 2
    group = opened.create_group("dimensions")
    group.attrs["spatial_dims"] = ["x", "y"]
    group["time"], group["x"], group["y"] = np.arange(5.0), np.arange(4.0), np.arange(6.0)
    opened.create_group("scalars")["scale"] = 100.0
    for name in ("t0_fields", "t1_fields", "t2_fields"):
        opened.create_group(name).attrs["field_names"] = []
    opened["t0_fields"].attrs["field_names"] = ["vorticity"]
    stored = opened["t0_fields"].create_dataset("vorticity", data=random(2, 5, 4, 6))
    stored.attrs.update(sample_varying=True, time_varying=True, dim_varying=[True, True])


def replace(path, values):
    def change(opened):
        del opened[path]
        opened[path] = values

    return change


def attribute(path, name, value):
    return lambda opened: opened[path].attrs.__setitem__(name, value)


def link(path, target):
    def change(opened):
        del opened[path]
        opened[path] = target

    return change


def external_storage(opened):
    del opened["nu"]
    opened.create_dataset("nu", (2, 5, 6), "f4", external=[("/etc/hostname", 0, 240)])


OUTSIDE = h5py.ExternalLink("/elsewhere.h5", "/nu")
MAKERS = {"darcy": darcy, "burgers": burgers, "navier_stokes_spacetime": flow, "well": well}
# name: (layout or equation, what is wrong with the file, options of the import, message)
CASES = {
    "x that falls": (
        "darcy",
        replace("x-coordinate", np.linspace(1, 0, 5)),
        {},
        "x-coordinate must be finite and increase",
    ),
    "x with NaN": (
        "darcy",
        replace("x-coordinate", np.full(5, np.nan)),
        {},
        "x-coordinate must be finite and increase",
    ),
    "x too short": (
        "darcy",
        replace("x-coordinate", np.linspace(0, 1, 4)),
        {},
        "x-coordinate must be as long as its axis, 5, got 4",
    ),
    "x at unequal distances": (
        "darcy",
        replace("x-coordinate", np.linspace(0, 1, 5) ** 2),
        {},
        "x-coordinate must increase at equal distances",
    ),
    "no y": ("darcy", lambda opened: opened.__delitem__("y-coordinate"), {}, "no y-coordinate"),
    "fewer coefficients": (
        "darcy",
        replace("nu", random(1, 5, 6)),
        {},
        r"nu must have the shape \[2, 5, 6\], got \[1, 5, 6\]",
    ),
    "integer coefficients": (
        "darcy",
        replace("nu", np.ones((2, 5, 6), int)),
        {},
        "nu must hold floating-point numbers, got int64",
    ),
    "coefficient of zero": (
        "darcy",
        replace("nu", np.zeros((2, 5, 6))),
        {},
        "coefficient must be positive, got 0",
    ),
    "scale of zero": ("darcy", None, {"scale": 0.0}, "scale must be positive, got 0"),
    "scale of NaN": ("darcy", None, {"scale": np.nan}, "scale must be one finite number"),
    "split of another name": ("darcy", None, {"split": "../up"}, "split must be train, val or"),
    "external link": ("darcy", link("nu", OUTSIDE), {}, "nu is a link to another file"),
    "external storage": ("darcy", external_storage, {}, "nu keeps its values in another file"),
    "negative Nu": ("burgers", attribute("/", "Nu", -1.0), {}, "Nu must be positive, got -1"),
    "Nu of zero": ("burgers", attribute("/", "Nu", 0.0), {}, "Nu must be positive, got 0"),
    "Nu in words": ("burgers", attribute("/", "Nu", "small"), {}, "Nu must be one finite number"),
    "too many times": (
        "burgers",
        replace("t-coordinate", np.linspace(0, 1, 9)),
        {},
        r"t-coordinate must have 4 entries or one more, got shape \(9,\)",
    ),
    "times that stand still": (
        "burgers",
        replace("t-coordinate", np.zeros(5)),
        {},
        "t-coordinate must be finite and increase",
    ),
    "no frames at all": (
        "burgers",
        replace("tensor", np.zeros((2, 0, 8), np.float32)),
        {},
        "tensor must have the shape",
    ),
    "three components": (
        "navier_stokes_spacetime",
        replace("velocity", random(2, 5, 4, 4, 3)),
        {"scale": 1.0, "window": WINDOW},
        "velocity must have the shape",
    ),
    "a window too long": (
        "navier_stokes_spacetime",
        None,
        {"scale": 1.0, "window": {**WINDOW, "history": 9}},
        "window must fit into the 5 frames",
    ),
    "a window of nothing": (
        "navier_stokes_spacetime",
        None,
        {"scale": 1.0, "window": {**WINDOW, "stride": 0}},
        "window.stride must be positive, got 0",
    ),
    "times of one trajectory": (
        "navier_stokes_spacetime",
        replace("t", np.zeros((1, 5), np.float32)),
        {"scale": 1.0, "window": WINDOW},
        r"t must have the shape \[2, 5\], got \[1, 5\]",
    ),
    "times that differ": (
        "navier_stokes_spacetime",
        replace("t", np.outer([1, 2], np.arange(5.0)).astype(np.float32)),
        {"scale": 1.0, "window": WINDOW},
        "t must be the same for every trajectory",
    ),
    "a field name that leads up": (
        "well",
        attribute("t0_fields", "field_names", ["../scalars/scale"]),
        {"window": WINDOW},
        "a field must be a plain name",
    ),
    "an absolute dimension": (
        "well",
        attribute("dimensions", "spatial_dims", ["/scalars/scale"]),
        {"window": WINDOW},
        "a spatial dimension must be a plain name",
    ),
    "more trajectories than there are": (
        "well",
        attribute("/", "n_trajectories", 7),
        {"window": WINDOW},
        r"vorticity must have the axes \[7, 5, 4, 6\]",
    ),
    "half a trajectory": (
        "well",
        attribute("/", "n_trajectories", 0.5),
        {"window": WINDOW},
        "n_trajectories must be a whole number",
    ),
    "time that runs backwards": (
        "well",
        replace("dimensions/time", -np.arange(5.0)),
        {"window": WINDOW},
        "time must be finite and increase",
    ),
    "x shorter than the field": (
        "well",
        replace("dimensions/x", np.arange(3.0)),
        {"window": WINDOW},
        "vorticity must have the axes",
    ),
    "negative scale": (
        "well",
        replace("scalars/scale", -1.0),
        {"window": WINDOW},
        "scale must be positive, got -1",
    ),
    "a field in another file": (
        "well",
        link("t0_fields/vorticity", OUTSIDE),
        {"window": WINDOW},
        "vorticity is a link to another file",
    ),
    "no fields": (
        "well",
        attribute("t0_fields", "field_names", []),
        {"window": WINDOW},
        "no field to import",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_file_is_named_in_one_line_and_leaves_nothing(tmp_path, case):
    kind, change, options, message = CASES[case]
    file = tmp_path / ("a.h5" if kind == "navier_stokes_spacetime" else "a.hdf5")
    with h5py.File(file, "w") as opened:
        MAKERS[kind](opened)
        if change:
            change(opened)
    layout = the_well if kind == "well" else pdebench
    equation = "navier_stokes" if kind == "well" else kind
    with pytest.raises(ValueError, match=message) as error:
        layout.import_file(file, tmp_path / "new", equation=equation, **options)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists(), "a second try finds an empty place"


@pytest.mark.parametrize("kind", MAKERS)
def test_the_files_are_good_before_they_are_spoilt(tmp_path, kind):
    file = tmp_path / ("a.h5" if kind == "navier_stokes_spacetime" else "a.hdf5")
    with h5py.File(file, "w") as opened:
        MAKERS[kind](opened)
    options = {"window": WINDOW} if kind in ("well", "navier_stokes_spacetime") else {}
    if kind == "well":
        the_well.import_file(file, tmp_path / "new", equation="navier_stokes", **options)
    else:
        pdebench.import_file(file, tmp_path / "new", equation=kind, scale=2.0, **options)
    assert storage.read(tmp_path / "new")[0]["samples"] == 2


def dataset(directory, **changes):
    fields = {"coefficient": random(2, 4, 5, 1), "solution": random(2, 4, 5, 1)}
    return write_dataset(directory, fields, **changes)


@pytest.mark.parametrize(
    "changes", [{"equation": "../../up"}, {"equation": "/absolute"}, {"split": "../up"}]
)
def test_an_export_stays_below_its_directory(tmp_path, changes):
    directory = dataset(tmp_path / "ours", **changes)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"(equation|split) must be"):
        the_well.export_files(directory, tmp_path / "deep" / "root")
    assert sorted(tmp_path.rglob("*")) == before


def test_validation_data_is_exported_under_the_name_that_the_well_has_for_it(tmp_path):
    file = the_well.export_files(dataset(tmp_path / "ours", split="val"), tmp_path)
    assert file.parent.name == "valid"


def test_a_failing_export_leaves_what_was_there(tmp_path, monkeypatch):
    directory, file = dataset(tmp_path / "ours"), tmp_path / "a.hdf5"
    pdebench.export_file(directory, file)
    before = file.read_bytes()
    monkeypatch.setattr(pdebench.interchange, "grid_coordinates", lambda meta: {"x": "none"})
    with pytest.raises(AttributeError):
        pdebench.export_file(directory, file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.hdf5"]


def test_data_sets_are_read_from_ordinary_files_of_their_own(tmp_path):
    directory = dataset(tmp_path / "ours")
    field = directory / "solution.npy"
    content = field.read_bytes()
    field.unlink()
    with pytest.raises(storage.StorageError, match=r"solution\.npy is missing"):
        storage.read(directory)
    (tmp_path / "secret.npy").write_bytes(content)
    field.symlink_to(tmp_path / "secret.npy")
    with pytest.raises(storage.StorageError, match="must be an ordinary file, got a link"):
        storage.read(directory)
    field.unlink()
    os.mkfifo(field)
    with pytest.raises(storage.StorageError, match="must be an ordinary file"):
        storage.read(directory)
    field.unlink()
    np.save(field, np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(storage.StorageError, match="no array of numbers") as error:
        storage.read(directory)
    assert "pickle" not in str(error.value)


def test_a_field_name_cannot_lead_out_of_a_data_set(tmp_path):
    directory = dataset(tmp_path / "ours")
    meta = json.loads((directory / storage.META).read_text())
    meta["fields"]["../secret"] = meta["fields"].pop("solution")
    (directory / storage.META).write_text(json.dumps(meta))
    with pytest.raises(storage.StorageError, match=r"a field '\.\./secret': not a plain name"):
        storage.read(directory)


def test_a_fifo_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.hdf5")
    for file in (tmp_path / "a.hdf5", pathlib.Path("/dev/zero"), tmp_path / "none.hdf5"):
        with pytest.raises(ValueError, match="must be an ordinary file|cannot be read"):
            trust.regular_file(file)
    with pytest.raises(ValueError, match="must be an ordinary file"):
        pdebench.import_file(tmp_path / "a.hdf5", tmp_path / "new", equation="darcy")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_umask_decides_who_may_read(tmp_path, mask):
    before = os.umask(mask)
    try:
        directory = dataset(tmp_path / "ours")
    finally:
        assert os.umask(before) == mask, "the process's own was not changed"
    for file in directory.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask
