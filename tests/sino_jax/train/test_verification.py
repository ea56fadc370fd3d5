"""What a run checks about its data before it trains on them."""

import json
import os

import numpy as np
import pytest

from sino_jax import data, equations
from sino_jax.data import dataset as dataset_module
from sino_jax.train import config as configs
from sino_jax.train import verification
from tests import training_runs as runs

DARCY = equations.get("darcy")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "cache"))
    return tmp_path / "cache" / "sino_jax" / "verified"


@pytest.fixture
def reads(monkeypatch):
    """Paths of the data sets that are read as a whole."""
    load, seen = data.load, []

    def watched(path, *, verify=False):
        if verify:
            seen.append(str(path))
        return load(path, verify=verify)

    monkeypatch.setattr(data, "load", watched)
    return seen


def load(train, test=(), equation=DARCY, **options):
    given = {"train": tuple(train), "test": tuple(test), **options}
    return verification.datasets(configs.complete({"steps": 1, "data": given}).data, equation)


def alter_meta(path, **changes):
    """A meta.json that is consistent in itself, but says something else."""
    file = os.path.join(path, dataset_module.META)
    with open(file) as stream:
        meta = {**json.load(stream), **changes}
    del meta["checksum"]
    with open(file, "w") as stream:
        json.dump({**meta, "checksum": dataset_module.checksum(meta)}, stream)


def flip_a_bit(path):
    file = os.path.join(path, "solution.npy")
    with open(file, "r+b") as stream:
        stream.seek(-3, os.SEEK_END)
        last = stream.read(1)[0]
        stream.seek(-3, os.SEEK_END)
        stream.write(bytes([last ^ 1]))


def test_values_are_verified_once_and_again_when_a_file_changes(tmp_path, reads):
    path = runs.write_darcy(tmp_path / "train-4")
    load([path])
    load([path])
    assert reads == [path]
    flip_a_bit(path)
    for _ in range(2):  # a damaged one is not remembered
        with pytest.raises(data.DatasetError, match="its checksum is not the one"):
            load([path])
    load([path], verify=False)


def test_without_a_cache_values_are_verified_every_time(tmp_path, reads, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "file"))
    path = runs.write_darcy(tmp_path / "train-4")
    load([path])
    load([path])
    assert reads == [path, path]


def test_values_that_are_not_finite_are_refused(tmp_path):
    solution = np.ones((3, 5, 5))
    solution[1, 2, 2] = np.nan
    fields = {"coefficient": np.ones((3, 5, 5)), "solution": solution}
    path = runs.write_dataset(tmp_path / "train-4", fields, equation="darcy", scale=4.0)
    with pytest.raises(data.DatasetError, match="sample 1 has values that are not finite"):
        load([path])


@pytest.mark.parametrize("scale", [0.0, -4.0, float("inf"), float("nan"), "4", None])
def test_scales_that_make_no_sense_are_refused(tmp_path, scale):
    path = runs.write_darcy(tmp_path / "train-4")
    alter_meta(path, scale=scale)
    with pytest.raises(data.DatasetError, match="scale must be positive and finite, got"):
        load([path])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"samples": 9},
            r"must hold 9 samples on the grid \[9, 9\], got the shape \[10, 9, 9, 1\]",
        ),
        ({"grid": {"shape": [9, 8]}}, r"10 samples on the grid \[9, 8\], got the shape"),
        ({"grid": {"shape": [9]}}, r"darcy has 2 axes, the grid is \[9\]"),
    ],
)
def test_shapes_that_contradict_the_meta_data_are_refused(tmp_path, changes, message):
    path = runs.write_darcy(tmp_path / "train-4")
    alter_meta(path, **changes)
    with pytest.raises(data.DatasetError, match=message):
        load([path])


def test_what_training_is_not_meant_for_is_refused(tmp_path):
    train = runs.write_darcy(tmp_path / "train-4")
    test = runs.write_darcy(tmp_path / "test-4", split="test")
    val = runs.write_darcy(tmp_path / "val-4", split="val")
    found = load([train], [test], val=(val,))
    assert {use: [d.split for d in sets] for use, sets in found.items()} == {
        "train": ["train"], "val": ["val"], "test": ["test"]
    }  # fmt: skip
    with pytest.raises(
        ValueError, match="data.val must name data of the split 'val', but .*test-4"
    ):
        load([train], val=(test,))
    with pytest.raises(ValueError, match="data of the split 'train', but .*test-4 is of the split"):
        load([train, test])
    with pytest.raises(ValueError, match="config.data.train must name at least one data set"):
        load([], [test])
    with pytest.raises(ValueError, match="config.equation is 'burgers', but .* of 'darcy'"):
        load([train], equation=equations.get("burgers"))
    fields = {"solution": np.ones((3, 5, 5))}
    alone = runs.write_dataset(tmp_path / "alone", fields, equation="darcy", scale=4.0)
    with pytest.raises(data.DatasetError, match=r"darcy needs \['coefficient'\], not there"):
        load([alone])
