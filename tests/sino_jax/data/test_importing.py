"""Files of arrays become data sets; what a file lacks is said in one line."""

import os

import numpy as np
import pytest

from sino_jax import data
from sino_jax.data import importing

RNG = np.random.default_rng(0)
ARRAYS = {"nu": RNG.uniform(1, 2, (6, 9, 7)), "u": RNG.normal(size=(6, 9, 7)), "k": [1.0, 2.0] * 3}
MAP = "--map=coefficient=nu,solution=u,scale=k"


@pytest.fixture(params=["npz", "hdf5"])
def file(request, tmp_path):
    path = tmp_path / f"fields.{request.param}"
    if request.param == "npz":
        np.savez(path, **ARRAYS)
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as stored:
            for name, values in ARRAYS.items():
                stored[name] = values
    return request.param, str(path)


def test_named_arrays_become_data_sets(file, tmp_path, capsys):
    split = "--split=train=0.67,test=0.33"
    importing.main([*file, str(tmp_path / "out"), "--equation=darcy", MAP, split])
    assert "train-1: 2 samples on 9 x 7" in capsys.readouterr().out
    found = [data.load(tmp_path / "out" / name) for name in ("train-1", "test-1", "train-2")]
    assert [(d.split, d.scale, len(d)) for d in found] == [
        ("train", 1.0, 2),
        ("test", 1.0, 1),
        ("train", 2.0, 2),
    ]
    stored = np.concatenate([d.fields["solution"] for d in found[:2]])[..., 0]
    expected = ARRAYS["u"][::2].astype(np.float32)
    np.testing.assert_array_equal(np.sort(stored[:, 0, 0]), np.sort(expected[:, 0, 0]))
    assert found[0].meta["config"]["file"].startswith("fields.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--map=coefficient=nu,solution=v,scale=k"], "asks for solution=v, which .* holds k"),
        (["--map=coefficient=nu,solution=u"], "--scale must be given"),
        (["--map=coefficient=nu,scale=k"], "--map must say which array of .* the solution is"),
        (["--map=medium=nu"], "--map takes field=array with fields coefficient"),
        ([MAP, "--split=train=a"], "--split takes train, or"),
        ([MAP, "--extent=1"], "extent must be a positive length for each of x, y"),
        ([MAP, "--extent=1,wide"], "--extent takes side lengths like 2,1, got '1,wide'"),
    ],
)
def test_what_is_missing_is_one_line(arguments, message, file, tmp_path):
    with pytest.raises(SystemExit, match=f"error: .*{message}"):
        importing.main([*file, str(tmp_path / "out"), "--equation=darcy", *arguments])
    assert not (tmp_path / "out").exists()


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("no arrays")
    np.savez(tmp_path / "objects.npz", solution=np.array([{}]))
    os.mkfifo(tmp_path / "pipe")
    for layout, name, message in [
        ("npz", "text.npz", "cannot be read as an .npz file"),
        ("hdf5", "text.npz", "cannot be read as HDF5"),
        ("npz", "objects.npz", "only plain arrays are read"),
        ("npz", "pipe", "must be an ordinary file"),
        ("hdf5", "pipe", "must be an ordinary file"),
    ]:
        arguments = [layout, str(tmp_path / name), str(tmp_path / "out"), "--equation=darcy"]
        with pytest.raises(SystemExit, match=f"error: .*{message}"):
            importing.main(arguments)


def test_values_in_another_file_are_not_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as stored:
        stored["solution"] = h5py.ExternalLink("/elsewhere.h5", "/u")
        stored.create_dataset("coefficient", (2, 3), "f4", external=[("/etc/hostname", 0, 24)])
    with pytest.raises(ValueError, match="--map asks for solution=solution, which .* not hold"):
        importing.read("hdf5", tmp_path / "a.h5", {"solution": "solution"})
    assert importing.read("hdf5", tmp_path / "a.h5", {}) == {}
