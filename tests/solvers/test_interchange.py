"""Import and export of PDEBench and The Well: layouts as documented, round trips to the bit."""

import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from sino_jax import data
from sino_jax.train import verification
from solvers import storage
from solvers.interchange import pdebench, the_well
from tests.dataset_files import write_dataset

h5py = pytest.importorskip("h5py")

UNIT_SQUARE = {"axes": ["x", "y"], "shape": [5, 6], "centrings": ["node"] * 2, "extent": [1.0, 1.0]}
WINDOW = {"history": 2, "horizon": 2, "stride": 1, "frames": "axis", "dt": 0.25}


def random(*shape, dtype=np.float32):
    rng = np.random.default_rng(sum(shape))
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if dtype == np.complex64 else values).astype(dtype)


def darcy(directory):
    fields = {"coefficient": np.abs(random(40, 5, 6, 1)), "solution": random(40, 5, 6, 1)}
    return write_dataset(directory, fields, grid=UNIT_SQUARE)


def helmholtz(directory):
    solution = random(3, 5, 6, 1, dtype=np.complex64)
    fields = {"coefficient": np.abs(random(3, 5, 6, 1)), "solution": solution}
    return write_dataset(directory, fields, grid=UNIT_SQUARE, equation="helmholtz", scale=10.0)


def burgers(directory):
    grid = {"axes": ["t", "x"], "shape": [4, 8], "centrings": ["node"] * 2, "extent": [1.5, 0.5]}
    fields = {"solution": random(3, 4, 8, 1)}
    return write_dataset(directory, fields, grid=grid, equation="burgers", scale=400.0)


def vorticity(directory, equation="navier_stokes"):
    grid = {"axes": ["x", "y"], "shape": [6, 4], "centrings": ["cell"] * 2, "extent": [1.5, 1.0]}
    window = {**WINDOW, "frames": "channel"}
    fields = {"trajectory": random(3, 7, 6, 4, 1)}
    return write_dataset(
        directory, fields, grid=grid, equation=equation, scale=1000.0, window=window
    )


def kolmogorov(directory):
    return vorticity(directory, "kolmogorov")


def velocity(directory):
    grid = {"axes": ["x", "y"], "shape": [6, 4], "centrings": ["cell"] * 2, "extent": [1.0, 1.0]}
    fields = {"trajectory": random(3, 7, 6, 4, 2)}
    equation = "navier_stokes_spacetime"
    return write_dataset(
        directory, fields, grid=grid, equation=equation, scale=1000.0, window=WINDOW
    )


def assert_same_data(one, other):
    first, second = data.load(one, verify=True), data.load(other, verify=True)
    assert first.fields.keys() == second.fields.keys()
    for name, values in first.fields.items():
        np.testing.assert_array_equal(values, second.fields[name], strict=True)
    for entry in ("equation", "split", "samples", "window"):
        assert first.meta[entry] == second.meta[entry]
    assert second.scale == pytest.approx(first.scale, rel=1e-12)
    assert first.meta["grid"]["centrings"] == second.meta["grid"]["centrings"]
    np.testing.assert_allclose(first.meta["grid"]["extent"], second.meta["grid"]["extent"], 1e-6)


@pytest.mark.parametrize(
    ("make", "ending", "options"),
    [
        (darcy, "hdf5", {"scale": 4.0}),
        (burgers, "hdf5", {}),
        (velocity, "h5", {"scale": 1000.0, "window": {"history": 2, "horizon": 2, "stride": 1}}),
    ],
)
def test_pdebench_round_trip(tmp_path, make, ending, options):
    original = make(tmp_path / "ours")
    file = tmp_path / f"exported.{ending}"
    pdebench.export_file(original, file)
    equation = data.load(original).equation
    pdebench.import_file(file, tmp_path / "back", equation=equation, **options)
    assert_same_data(original, tmp_path / "back")


def test_pdebench_layout_of_burgers(tmp_path):
    pdebench.export_file(burgers(tmp_path / "ours"), tmp_path / "a.hdf5")
    with h5py.File(tmp_path / "a.hdf5") as opened:
        assert opened["tensor"].shape == (3, 4, 8)
        assert opened["tensor"].dtype == np.float32
        np.testing.assert_allclose(opened["t-coordinate"], [0, 0.5, 1, 1.5, 2], rtol=1e-6)
        np.testing.assert_allclose(opened["x-coordinate"], np.linspace(0, 0.5, 8), rtol=1e-6)
        assert opened.attrs["Nu"] == pytest.approx(math.pi / 400)
        assert opened["tensor"].chunks is None


def test_pdebench_files_of_others(tmp_path):
    """Cell-centred axes, a right-hand side, forced flow with particles."""
    with h5py.File(tmp_path / "darcy.hdf5", "w") as opened:
        opened["nu"], opened["tensor"] = np.abs(random(2, 8, 8)), random(2, 1, 8, 8)
        opened["x-coordinate"] = opened["y-coordinate"] = (np.arange(8) + 0.5) / 8
        opened.attrs["beta"] = np.float32(0.5)
    pdebench.import_file(tmp_path / "darcy.hdf5", tmp_path / "darcy", equation="darcy")
    meta = data.load(tmp_path / "darcy", verify=True).meta
    assert meta["config"]["beta"] == 0.5
    assert meta["grid"]["centrings"] == ["cell", "cell"]
    assert meta["grid"]["extent"] == pytest.approx([1, 1])

    pdebench.import_file(tmp_path / "darcy.hdf5", tmp_path / "forced", equation="darcy_forced")
    forced = data.load(tmp_path / "forced", verify=True)
    assert forced.fields["coefficient"].shape == (2, 8, 8, 2)
    assert (forced.fields["coefficient"][..., 1] == 0.5).all()
    assert forced.meta["grid"]["extent"] == pytest.approx([7 / 8, 7 / 8])
    sub_domains = {"sub_sizes": (5,)}
    verification.check_consistency([forced], sub_domains)
    unforced = data.load(tmp_path / "darcy")
    verification.check_consistency([unforced], {})
    with pytest.raises(ValueError, match="right-hand side 0.5, .* Import the file as darcy_forced"):
        verification.check_consistency([unforced], sub_domains)

    with h5py.File(tmp_path / "flow.h5", "w") as opened:
        opened.create_dataset("velocity", data=random(2, 9, 4, 4, 2), compression="lzf")
        opened["particles"], opened["force"] = random(2, 9, 4, 4, 1), random(2, 4, 4, 2)
        opened["t"] = np.tile(0.1 * np.arange(9), (2, 1))
        opened.attrs["config"] = "NU: 0.01"
    window = {"history": 3, "horizon": 3, "stride": 2}
    options = {"equation": "navier_stokes_spacetime", "scale": 100.0, "window": window}
    pdebench.import_file(tmp_path / "flow.h5", tmp_path / "flow", **options)
    pdebench.export_file(tmp_path / "flow", tmp_path / "again.h5")
    assert len(data.load(tmp_path / "flow", verify=True)) == 2 * 2
    with h5py.File(tmp_path / "flow.h5") as one, h5py.File(tmp_path / "again.h5") as other:
        for name in ("velocity", "particles", "force"):
            np.testing.assert_array_equal(one[name], other[name])
        np.testing.assert_allclose(one["t"], other["t"], rtol=1e-6)


def test_bad_files_are_refused(tmp_path):
    original = darcy(tmp_path / "ours")
    with pytest.raises(ValueError, match=r"files that end in \.hdf5, got a\.h5"):
        pdebench.export_file(original, tmp_path / "a.h5")
    with pytest.raises(ValueError, match="equation must be one of"):
        pdebench.export_file(helmholtz(tmp_path / "other"), tmp_path / "a.hdf5")
    pdebench.export_file(original, tmp_path / "a.hdf5")
    with h5py.File(tmp_path / "a.hdf5", "r+") as opened:
        opened["tensor"][33, 0, 2, 2] = np.nan
    with pytest.raises(ValueError, match=r"samples \[33\] have values that are not finite"):
        pdebench.import_file(tmp_path / "a.hdf5", tmp_path / "new", equation="darcy")
    with pytest.raises(storage.StorageError, match="is not empty"):
        pdebench.import_file(tmp_path / "a.hdf5", original, equation="darcy")


@pytest.mark.parametrize("make", [darcy, helmholtz, burgers, vorticity, kolmogorov, velocity])
def test_the_well_round_trip(tmp_path, make):
    original = make(tmp_path / "ours")
    file = the_well.export_files(original, tmp_path / "well")
    meta = data.load(original).meta
    kind = "PERIODIC" if make is kolmogorov else "OPEN"
    with h5py.File(file) as opened:
        conditions = opened["boundary_conditions"].values()
        assert {condition.attrs["bc_type"] for condition in conditions} == {kind}
    the_well.import_file(file, tmp_path / "back", equation=meta["equation"], window=meta["window"])
    assert_same_data(original, tmp_path / "back")


def test_the_well_layout_of_a_flow(tmp_path):
    file = the_well.export_files(velocity(tmp_path / "ours"), tmp_path)
    root = tmp_path / "navier_stokes_spacetime_1000"
    assert file == root / "data" / "train" / "navier_stokes_spacetime_1000.hdf5"
    with h5py.File(file) as opened:
        assert opened.attrs["n_spatial_dims"] == 2
        assert opened.attrs["n_trajectories"] == 3
        assert list(opened.attrs["simulation_parameters"]) == ["scale"]
        assert opened.attrs["scale"] == opened["scalars"]["scale"][()] == 1000.0
        assert list(opened["dimensions"].attrs["spatial_dims"]) == ["x", "y"]
        np.testing.assert_allclose(opened["dimensions"]["time"], 0.25 * np.arange(7))
        assert list(opened["t0_fields"].attrs["field_names"]) == []
        assert list(opened["t2_fields"].attrs["field_names"]) == []
        stored = opened["t1_fields"]["velocity"]
        assert stored.shape == (3, 7, 6, 4, 2)
        assert stored.attrs["time_varying"]
        assert stored.attrs["sample_varying"]
        assert stored.attrs["dim_varying"].tolist() == [True, True]
        for name, condition in opened["boundary_conditions"].items():
            assert condition.attrs["associated_dims"] == [name[0]]
            assert condition["mask"][0]
            assert condition["mask"][-1]
            assert condition["mask"][:].sum() == 2


def test_the_well_statistics(tmp_path):
    the_well.export_files(vorticity(tmp_path / "ours"), tmp_path)
    values = random(3, 7, 6, 4, 1).astype(np.float64)[..., 0]
    lines = (tmp_path / "navier_stokes_1000" / "stats.yaml").read_text().splitlines()
    found = {lines[i][:-1]: float(lines[i + 1].split(":")[1]) for i in range(0, len(lines), 2)}
    delta = np.diff(values, axis=1)
    expected = {
        "mean": values.mean(),
        "std": values.std(),
        "rms": np.sqrt((values**2).mean()),
        "mean_delta": delta.mean(),
        "std_delta": delta.std(),
        "rms_delta": np.sqrt((delta**2).mean()),
    }
    assert found == pytest.approx(expected)


def test_the_well_fields_that_do_not_vary(tmp_path):
    """Axes along which a field is constant are left out of their files."""
    with h5py.File(tmp_path / "a.hdf5", "w") as opened:
        opened.attrs["n_trajectories"] = 3
        group = opened.create_group("dimensions")
        group.attrs["spatial_dims"] = ["x", "y"]
        group["time"], group["x"], group["y"] = np.arange(4.0), np.arange(5.0), np.arange(6.0)
        opened.create_group("scalars").attrs["field_names"] = []
        for name in ("t0_fields", "t1_fields", "t2_fields"):
            opened.create_group(name).attrs["field_names"] = []
        opened["t0_fields"].attrs["field_names"] = ["depth", "speed"]
        depth = opened["t0_fields"].create_dataset("depth", data=random(6))
        depth.attrs.update(sample_varying=False, time_varying=False, dim_varying=[False, True])
        speed = opened["t0_fields"].create_dataset("speed", data=random(3, 4, 5, 6))
        speed.attrs.update(sample_varying=True, time_varying=True, dim_varying=[True, True])
    the_well.import_file(
        tmp_path / "a.hdf5", tmp_path / "new", equation="navier_stokes", scale=1.0, window=WINDOW
    )
    trajectory = data.load(tmp_path / "new", verify=True).fields["trajectory"]
    np.testing.assert_array_equal(trajectory[2, 3, 1, :, 0], random(6))
    np.testing.assert_array_equal(trajectory[..., 1], random(3, 4, 5, 6))


def test_the_command_line(tmp_path):
    """Out to The Well and back."""
    run = [sys.executable, "-m", "solvers.interchange"]
    root = pathlib.Path(__file__).parents[2]
    original, file = (
        vorticity(tmp_path / "ours"),
        "navier_stokes_1000/data/train/navier_stokes_1000",
    )
    subprocess.run([*run, "export", "the_well", original, tmp_path], cwd=root, check=True)
    command = [*run, "import", "the_well", tmp_path / f"{file}.hdf5", tmp_path / "back"]
    options = ["--equation=navier_stokes", "--history=2", "--horizon=2"]
    subprocess.run([*command, *options], cwd=root, check=True)
    assert_same_data(original, tmp_path / "back")
    again = subprocess.run([*command, *options], cwd=root, capture_output=True, check=False)
    assert again.returncode == 1
    assert b"is not empty" in again.stderr
