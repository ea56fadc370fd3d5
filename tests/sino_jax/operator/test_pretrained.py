"""Operators that come with the package: found by name, intact, and as good as their cards say."""

import importlib
import json
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import data, operator, predict
from sino_jax.loss import relative_l2
from sino_jax.operator import portable, pretrained
from solvers import generate
from tests import training_runs as runs

NAMES = operator.available()


# New problems of which the mean error is compared; a few of Burgers and Helmholtz are much harder.
COUNTS = {"darcy": 12, "burgers": 64, "helmholtz": 64}


def test_darcy_comes_with_the_package():
    assert "darcy" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_the_errors_of_the_directory(name):
    place = pretrained.directory(name)
    trained = operator.load(name)
    card = (place / portable.CARD_FILE).read_text()
    for dataset, metrics in trained.meta["evaluation"].items():
        scale = dataset.rsplit("-", 1)[1]
        values = " | ".join(f"{100 * value:.2f}" for value in metrics.values())
        # A last column has the base alone, if there is one.
        row = rf"^\| {scale} \| [\dx ]+ \| \d+ \| {re.escape(values)} \|( [\d.]+ \|)?$"
        assert re.search(row, card, re.M)
    assert trained.meta["origin"]["command"] in card
    assert sum(path.stat().st_size for path in place.iterdir()) < 7e6
    text = "".join(path.read_text() for path in place.iterdir() if path.suffix != ".npz")
    assert not re.search(r"/(root|home|work|tmp)/", text)
    assert {leaf.dtype for leaf in jax.tree.leaves(trained.params)} == {np.dtype(np.float32)}


def new_problems(trained, scale, directory, count):
    """Problems of the distributions that the operator was tested on, from another seed."""
    name, _, text = trained.meta["origin"]["data"].partition(":")
    config = importlib.import_module(f"solvers.configs.{name}").get_config(text)
    settings = generate.data_sets(config)[f"test-{scale:g}"]
    settings |= {"seed": 2026, "samples": count, "block": count}
    generate.generate(settings, directory)
    dataset = data.load(directory)
    return dataset.examples(range(len(dataset)))


@pytest.mark.parametrize(
    ("name", "scales"),
    [
        pytest.param(name, scales, marks=() if name == "darcy" else pytest.mark.slow)
        for name, scales in {
            "darcy": (2, 4),
            "helmholtz": (5, 10),
            "burgers": (200, 400),
            "navier_stokes": (500, 1000),
        }.items()
        if name in NAMES
    ],
)
def test_new_problems_are_solved_as_well_as_the_card_says(name, scales, tmp_path):
    trained = operator.load(name)
    for scale in scales:
        problems = new_problems(trained, scale, tmp_path / f"{scale}", COUNTS.get(name, 4))
        predicted = trained.solve(problems.coefficient, problems.solution, problems.scale)
        error = float(relative_l2(predicted, jnp.asarray(problems.solution)).mean())
        stated = trained.meta["evaluation"][f"test-{scale:g}"]
        stated = stated.get("relative_l2_first", stated["relative_l2"])
        assert stated / 3 < error < trained.meta["origin"]["margin"] * stated


def test_half_precision_rounds_large_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(portable, "SMALLEST_HALVED", 16)
    trained = runs.untrained_operator()
    trained.save(tmp_path / "half", storage="float16")
    trained.save(tmp_path / "single")
    sizes = [
        (tmp_path / name / portable.WEIGHTS_FILE).stat().st_size for name in ("half", "single")
    ]
    assert sizes[0] < sizes[1]
    half, single = (operator.load(tmp_path / name) for name in ("half", "single"))
    for rounded, exact in zip(
        jax.tree.leaves(half.params), jax.tree.leaves(single.params), strict=True
    ):
        assert rounded.dtype == exact.dtype
        np.testing.assert_allclose(rounded, exact, rtol=2.0**-11, atol=3e-8)
        same = np.array_equal(rounded, exact)
        assert same == (exact.size < 16 or not np.any(exact))
    # Rounding again changes nothing.
    half.save(tmp_path / "again", storage="float16")
    assert (
        portable.read(tmp_path / "again")[1]["digest"]
        == portable.read(tmp_path / "half")[1]["digest"]
    )


def test_weights_that_half_precision_cannot_hold_are_refused(tmp_path):
    large = {"w": np.full(portable.SMALLEST_HALVED, 7e4, np.float32)}
    with pytest.raises(ValueError, match="storage must be float32: w has entries"):
        portable.write(tmp_path / "large", large, {}, None, storage="float16")
    with pytest.raises(ValueError, match="storage must be one of float32, float16, got 'int8'"):
        portable.write(tmp_path / "large", large, {}, None, storage="int8")
    assert not (tmp_path / "large").exists()


def test_a_damaged_operator_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(portable, "SMALLEST_HALVED", 1)
    place = runs.untrained_operator().save(tmp_path / "half", storage="float16")
    with np.load(place / portable.WEIGHTS_FILE) as stored:
        arrays = dict(stored)
    name = next(iter(arrays))
    arrays[name] = arrays[name] + np.float16(1)
    np.savez(place / portable.WEIGHTS_FILE, **arrays)
    with pytest.raises(portable.PortableError, match="its digest has changed"):
        operator.load(place)


def test_names_and_directories_are_told_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    missing = (
        "nothing: there is no such directory; operators that come with the package are .*darcy"
    )
    with pytest.raises(FileNotFoundError, match=missing):
        operator.load("nothing")
    with pytest.raises(FileNotFoundError, match="^runs/darcy: there is no such directory$"):
        operator.load("runs/darcy")
    with pytest.raises(SystemExit, match=f"error: {missing}"):
        predict.main(["nothing", "input.npz", "output.npz"])
    pathlib.Path("darcy").mkdir()  # a directory of something else is not in the way
    assert operator.load("darcy").equation.name == "darcy"
    pathlib.Path("darcy").rmdir()
    runs.untrained_operator().save("darcy")
    with pytest.raises(ValueError, match="write './darcy' for the directory"):
        operator.load("darcy")
    assert "origin" not in operator.load("./darcy").meta
    assert "origin" not in operator.load(pathlib.Path("darcy")).meta


def test_prediction_from_file_to_file_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = np.meshgrid(np.linspace(0, 1, 33), np.linspace(0, 1, 33), indexing="ij")
    fields = {"coefficient": np.full((33, 33, 1), 2.0), "boundary": (x - 2 * y)[..., None]}
    np.savez("input.npz", **fields, scale=2.0)
    predict.main(["darcy", "input.npz", "output.npz"])
    with np.load("output.npz") as stored:
        # Harmonic, and the medium is constant: the base solution is exact, and the network silent.
        np.testing.assert_allclose(stored["solution"], fields["boundary"], atol=1e-4)
    assert json.loads((pretrained.directory("darcy") / portable.META_FILE).read_text())["digest"]
