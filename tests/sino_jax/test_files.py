"""Files of others: links, pipes, names that leave the directory; files of ours: whole or absent."""

import json
import os
import pathlib
import stat
import threading

import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import data, files
from sino_jax.data import dataset
from sino_jax.diagnostics import error_estimate
from sino_jax.operator import calibration as calibration_file
from sino_jax.operator import portable
from tests.dataset_files import write_dataset

META = {
    "config": {"equation": "darcy", "model": {"name": "fno"}, "precision": "float32"},
    "scales": [4.0],
}
WEIGHTS = {"layer": {"kernel": jnp.arange(6.0).reshape(2, 3)}}


@pytest.fixture
def problems(tmp_path):
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=(3, 5, 5, 1)).astype("f4") for name in ("boundary", "solution")}
    return write_dataset(tmp_path / "problems", values)


def restate(place: pathlib.Path, change) -> None:
    """Changes meta.json and makes its checksum right again, as whoever made the file could."""
    meta = json.loads((place / dataset.META).read_text())
    change(meta)
    meta["checksum"] = dataset.checksum({k: v for k, v in meta.items() if k != "checksum"})
    (place / dataset.META).write_text(json.dumps(meta))


def renamed(name):
    def change(meta):
        meta["fields"][name] = meta["fields"].pop("boundary")

    return lambda place: restate(place, change)


def replaced(make):
    def change(place):
        (place / "boundary.npy").rename(place.parent / "elsewhere.npy")
        make(place / "boundary.npy", place.parent / "elsewhere.npy")

    return change


def pickled(place):
    np.save(place / "boundary.npy", np.array([{}], object), allow_pickle=True)


ATTACKS = {
    "parent directory": (renamed("../elsewhere"), "plain name.*got '../elsewhere'"),
    "absolute path": (renamed("/etc/passwd"), "plain name"),
    "hidden file": (renamed(".boundary"), "plain name"),
    "empty name": (renamed(""), "plain name"),
    "link out": (replaced(lambda file, other: file.symlink_to(other)), "is a link out of"),
    "pipe": (replaced(lambda file, other: os.mkfifo(file)), "ordinary file, it is a pipe"),
    "device": (replaced(lambda file, other: file.symlink_to("/dev/zero")), "it is a device"),
    "directory": (replaced(lambda file, other: file.mkdir()), "it is a directory"),
    "objects": (pickled, "Python objects"),
    "entry without shape": (
        lambda place: restate(place, lambda meta: meta["fields"]["boundary"].pop("shape")),
        "'boundary'.*'shape'",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_data_sets_stay_inside_their_directory(problems, attack):
    change, message = ATTACKS[attack]
    change(problems)
    with pytest.raises(dataset.DatasetError, match=message) as raised:
        data.load(problems)
    assert "allow_pickle" not in str(raised.value)


def test_a_pipe_in_place_of_the_meta_does_not_hang(problems):
    (problems / dataset.META).unlink()
    os.mkfifo(problems / dataset.META)
    with pytest.raises(dataset.DatasetError, match="it is a pipe"):
        data.load(problems)


def test_a_data_set_may_be_a_link_itself(problems, tmp_path):
    (tmp_path / "link").symlink_to(problems)
    assert len(data.load(tmp_path / "link")) == 3


def test_portable_operators_state_their_description(tmp_path):
    place = portable.write(tmp_path / "fno", WEIGHTS, META, None)
    weights, meta = portable.read(place)
    np.testing.assert_array_equal(weights["layer"]["kernel"], WEIGHTS["layer"]["kernel"])
    file = place / portable.META_FILE
    file.write_text(json.dumps({**meta, "scales": [8.0]}))
    with pytest.raises(portable.PortableError, match="operator.json is damaged: its digest"):
        portable.read(place)
    first = {name: value for name, value in meta.items() if name != "meta_digest"}
    file.write_text(json.dumps({**first, "format_version": 1}))
    assert portable.read(place)[1]["scales"] == [4.0]
    file.write_text("[]")
    with pytest.raises(portable.PortableError, match="has format None"):
        portable.read(place)


def test_weights_may_not_be_a_link_out_or_objects(tmp_path):
    place = portable.write(tmp_path / "fno", WEIGHTS, META, None)
    file = place / portable.WEIGHTS_FILE
    file.rename(tmp_path / "weights.npz")
    file.symlink_to(tmp_path / "weights.npz")
    with pytest.raises(portable.PortableError, match="link out of"):
        portable.read(place)
    file.unlink()
    np.savez(file, kernel=np.array([{}], object))
    with pytest.raises(portable.PortableError, match="Python objects") as raised:
        portable.read(place)
    assert "allow_pickle" not in str(raised.value)


@pytest.mark.parametrize(
    "entries", [[], {}, {"factor": 1.0}, {"factor": "1", "upper_factor": 1, "samples": 2}]
)
def test_a_calibration_is_checked(tmp_path, entries):
    (tmp_path / calibration_file.CALIBRATION_FILE).write_text(json.dumps(entries))
    with pytest.raises(ValueError, match="must hold the numbers"):
        calibration_file.read_calibration(tmp_path)
    given = error_estimate.Calibration(float("nan"), 1.0, 0.5, 4)
    calibration_file.write_calibration(tmp_path, given)
    with pytest.raises(ValueError, match="factor in .* must be finite"):
        calibration_file.read_calibration(tmp_path)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_permissions_are_those_of_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        with files.appearing_file(tmp_path / "file") as unfinished:
            unfinished.write_text("1")
        with files.appearing_directory(tmp_path / "directory"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "directory").stat().st_mode) == 0o777 & ~mask


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    """It belongs to the process: another thread's file would get the wrong permissions."""

    def refuse(mask):
        raise AssertionError("umask was changed")

    monkeypatch.setattr(os, "umask", refuse)
    with files.appearing_file(tmp_path / "file") as unfinished:
        unfinished.write_text("1")
    portable.write(tmp_path / "fno", WEIGHTS, META, None)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    file = tmp_path / "file"
    file.write_text("before")

    def fail():
        with files.appearing_file(file) as unfinished:
            unfinished.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_two_writers_of_one_name_do_not_meet(tmp_path):
    def write(text):
        with files.appearing_file(tmp_path / "file") as unfinished:
            unfinished.write_text(text)

    threads = [threading.Thread(target=write, args=(str(i) * 1000,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set((tmp_path / "file").read_text())) == 1
    assert len(list(tmp_path.iterdir())) == 1
