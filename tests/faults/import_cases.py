"""Cases of files of others: parameters, coordinates and names that cannot be right."""

import pathlib

import numpy as np
from case import Case, use

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


MAKERS = {"darcy": darcy, "burgers": burgers, "flow": flow, "well": well}


def replace(path, values):
    def change(opened):
        del opened[path]
        opened[path] = values

    return change


def attribute(path, name, value):
    return lambda opened: opened[path].attrs.__setitem__(name, value)


def external_storage(opened):
    del opened["nu"]
    opened.create_dataset("nu", (2, 5, 6), "f4", external=[("/etc/hostname", 0, 240)])


def cases(place: pathlib.Path) -> list[Case]:
    h5py, storage = use("h5py"), use("solvers.storage")
    pdebench = use("solvers.interchange.pdebench")
    the_well = use("solvers.interchange.the_well")
    outside = h5py.ExternalLink("/elsewhere.h5", "/nu")

    def imported(kind, change, options):
        def call():
            directory = place / f"import-{len(list(place.iterdir()))}"
            directory.mkdir()
            file = directory / ("a.h5" if kind == "flow" else "a.hdf5")
            with h5py.File(file, "w") as opened:
                MAKERS[kind](opened)
                if change:
                    change(opened)
            layout = the_well if kind == "well" else pdebench
            names = {"well": "navier_stokes", "flow": "navier_stokes_spacetime"}
            new = directory / "new"
            try:
                layout.import_file(file, new, equation=names.get(kind, kind), **options)
            except Exception:
                assert not new.exists(), "a second try finds an empty place"
                raise
            return storage.read(new)[0]["samples"]

        return call

    def case(kind, what, says, change=None, **options):
        if kind in ("well", "flow"):
            options = {"window": WINDOW, **options}
        return Case("import", f"{kind}, {what}", imported(kind, change, options), says)

    def good(kind, **options):
        right = case(kind, "a file with nothing wrong", "", **options)
        return right._replace(right=lambda samples: samples == 2)

    x, times = "x-coordinate", "t-coordinate"
    steps = np.linspace(0, 1, 5)
    increase = "must be finite and increase"
    return [
        good("darcy", scale=2.0),
        good("burgers", scale=2.0),
        good("flow", scale=2.0),
        good("well"),
        case("darcy", "x that falls", f"{x} {increase}", replace(x, steps[::-1])),
        case("darcy", "x with NaN", f"{x} {increase}", replace(x, np.full(5, np.nan))),
        case("darcy", "x too short", f"{x} must be as long as its axis, 5, got 4",
             replace(x, np.linspace(0, 1, 4))),
        case("darcy", "x at unequal distances", f"{x} must increase at equal distances",
             replace(x, steps**2)),
        case("darcy", "no y", "no y-coordinate", lambda opened: opened.__delitem__("y-coordinate")),
        case("darcy", "fewer coefficients",
             r"nu must have the shape \[2, 5, 6\], got \[1, 5, 6\]", replace("nu", random(1, 5,
             6))),
        case("darcy", "integer coefficients", "nu must hold floating-point numbers, got int64",
             replace("nu", np.ones((2, 5, 6), int))),
        case("darcy", "coefficient of zero", "coefficient must be positive, got 0",
             replace("nu", np.zeros((2, 5, 6)))),
        case("darcy", "scale of zero", "scale must be positive, got 0", scale=0.0),
        case("darcy", "scale of NaN", "scale must be one finite number", scale=np.nan),
        case("darcy", "split of another name", "split must be train, val or", split="../up"),
        case("darcy", "external link", "nu is a link to another file", replace("nu", outside)),
        case("darcy", "external storage", "nu keeps its values in another file", external_storage),
        case("burgers", "negative Nu", "Nu must be positive, got -1", attribute("/", "Nu", -1.0)),
        case("burgers", "Nu of zero", "Nu must be positive, got 0", attribute("/", "Nu", 0.0)),
        case("burgers", "Nu in words", "Nu must be one finite", attribute("/", "Nu", "small")),
        case("burgers", "too many times",
             rf"{times} must have 4 entries or one more, got shape \(9,\)",
             replace(times, np.linspace(0, 1, 9))),
        case("burgers", "times that stand still", f"{times} {increase}",
             replace(times, np.zeros(5))),
        case("burgers", "no frames at all", "tensor must have the shape",
             replace("tensor", np.zeros((2, 0, 8), np.float32))),
        case("flow", "three components", "velocity must have the shape",
             replace("velocity", random(2, 5, 4, 4, 3)), scale=1.0),
        case("flow", "a window too long", "window must fit into the 5 frames",
             scale=1.0, window={**WINDOW, "history": 9}),
        case("flow", "a window of nothing", "window.stride must be positive, got 0",
             scale=1.0, window={**WINDOW, "stride": 0}),
        case("flow", "times of one trajectory", r"t must have the shape \[2, 5\], got \[1, 5\]",
             replace("t", np.zeros((1, 5), np.float32)), scale=1.0),
        case("flow", "times that differ", "t must be the same for every trajectory",
             replace("t", np.outer([1, 2], np.arange(5.0)).astype(np.float32)), scale=1.0),
        case("well", "a field name that leads up", "a field must be a plain name",
             attribute("t0_fields", "field_names", ["../scalars/scale"])),
        case("well", "an absolute dimension", "a spatial dimension must be a plain name",
             attribute("dimensions", "spatial_dims", ["/scalars/scale"])),
        case("well", "more trajectories than there are",
             r"vorticity must have the axes \[7, 5, 4, 6\]", attribute("/", "n_trajectories", 7)),
        case("well", "half a trajectory", "n_trajectories must be a whole number",
             attribute("/", "n_trajectories", 0.5)),
        case("well", "time that runs backwards", f"time {increase}",
             replace("dimensions/time", -np.arange(5.0))),
        case("well", "x shorter than the field", "vorticity must have the axes",
             replace("dimensions/x", np.arange(3.0))),
        case("well", "negative scale", "scale must be positive, got -1",
             replace("scalars/scale", -1.0)),
        case("well", "a field in another file", "vorticity is a link to another file",
             replace("t0_fields/vorticity", outside)),
        case("well", "no fields", "no field to import",
             attribute("t0_fields", "field_names", [])),
    ]  # fmt: skip
