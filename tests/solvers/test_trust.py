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


def random(*shape):
    return np.random.default_rng(0).uniform(1, 2, size=shape).astype(np.float32)


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
