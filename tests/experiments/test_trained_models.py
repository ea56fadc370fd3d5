"""Decomposition and diagnostics of a tiny run, checked against the run's own evaluation."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import darcy, decomposition, diagnostics, runner, trained_run
from experiments.configs import darcy as run_configs
from experiments.configs import decomposition as configs
from sino_jax import error_estimate, operator


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Data, and a run of two steps with all its checkpoints."""
    root = tmp_path_factory.mktemp("trained")
    config = run_configs.get_config("tiny,epochs=1")
    # optax raises a weakly typed float to an integer power: strict promotion is not for it.
    with jax.numpy_dtype_promotion("standard"):
        runner.run(darcy.EXPERIMENT, config, data=root / "data", runs=root / "runs", keep_every=1)
    return root


@pytest.fixture(scope="module")
def workdir(root):
    return root / "runs/darcy/tiny/fno/seed-0"


def arguments(root, workdir, *more):
    return ["--run", str(workdir), f"--data={root / 'data'}", f"--results={root}", *more]


def recorded_error(workdir, scale):
    result = json.loads((workdir / runner.RESULT).read_text())
    return runner.errors_by_scale(result)[scale]


def test_keeping_every_checkpoint(workdir):
    assert trained_run.checkpoints(workdir) == [0, 1, 2]


def test_decomposition_starts_from_the_evaluated_error(root, workdir, capsys):
    text = "tiny,size_ratio=1,overlaps=9,levels=1+2"
    decomposition.main(arguments(root, workdir, f"--config={text}", "--write"))
    out = root / "decomposition/tiny"
    result = json.loads((out / "fno/seed-0.json").read_text())
    variants = result["variants"]
    assert set(variants) == {
        "paper layout", "from zeros", "levels 1, 2", "overlap 9", "training-size patches"
    }  # fmt: skip
    start = variants["paper layout"]["errors"][0]
    assert start == pytest.approx(recorded_error(workdir, 4.0), rel=1e-4)
    assert variants["from zeros"]["errors"][0] == 1.0
    assert variants["levels 1, 2"]["patches"] == [1, 2]
    assert all(len(entry["errors"]) == 3 for entry in variants.values())
    # One patch of the whole domain is the global prediction with the right boundary values.
    whole = variants["training-size patches"]["errors"]
    assert whole[1] == pytest.approx(whole[2], rel=1e-4)
    table = (out / "table.md").read_text()
    assert f"| 0 | {100 * start:.2f} | 0.00 | 5.32 | 0.00 |" in table
    assert table in capsys.readouterr().out
    for name in ("fields", "iterations"):
        assert (out / f"fno/seed-0-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_larger_data_has_the_spacing_of_the_training_data():
    config, name = decomposition.large_data("tiny", 4)
    assert name == "test-16"
    assert config.points == ((16, 129),)
    assert config.name == "darcy-tiny-large"
    own, name = decomposition.large_data("small", 4)
    assert (own.name, name) == ("darcy-small", "test-16")


def test_patches_of_training_size_cover_the_paper_s_domain():
    chosen = decomposition.variants(configs.get_config("small"), 65, 257)
    (layout,) = set(chosen["training-size patches"].layouts)
    assert layout == decomposition.Layout(7, 32, 8)
    assert [x.patches for x in chosen["levels 2, 4"].layouts] == [2, 2, 4, 4, 4]


def test_diagnostics_measure_every_checkpoint_and_calibrate(root, workdir, capsys):
    diagnostics.main(arguments(root, workdir, "--keep_calibration", "--config=tiny,draws=1"))
    out = workdir / "diagnostics"
    result = json.loads((out / "fno/seed-0.json").read_text())
    assert list(result["terms"]) == ["smooth", "two-phase"]
    for curve in result["terms"].values():
        assert [entry["step"] for entry in curve] == [0, 1, 2]
        for entry in curve:
            assert set(entry["supremum"]) == set(diagnostics.TERMS)
            assert all(entry["mean"][t] <= entry["supremum"][t] for t in diagnostics.TERMS)
        assert curve[0]["supremum"] != curve[2]["supremum"]
    scales = result["estimates"]["scales"]
    for scale in (2, 4):
        assert np.mean(scales[str(scale)]["error"]) == pytest.approx(
            recorded_error(workdir, float(scale)), rel=1e-4
        )
        assert min(scales[str(scale)]["indicator"]) > 0
    factors = error_estimate.Calibration(**result["estimates"]["calibration"])
    assert operator.load(workdir).calibration == factors
    text = (out / "table.md").read_text()
    assert "| FNO, seed 0 | two-phase |" in text
    assert text in capsys.readouterr().out
    for name in ("theorem", "calibration"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("steepness", [10.0, 80.0])
def test_smooth_media_are_as_steep_as_they_may_be(steepness):
    keys = jax.random.split(jax.random.key(0), 4)
    media = jax.vmap(lambda key: diagnostics.steep_medium(key, 65, steepness))(keys)
    assert media.min() >= 2
    assert media.max() <= 12
    slopes = [jnp.diff(media, axis=axis) * 64 for axis in (1, 2)]
    steepest = jnp.sqrt(jnp.max(slopes[0][:, :, :-1] ** 2 + slopes[1][:, :-1] ** 2, axis=(1, 2)))
    assert (steepest <= 1.001 * steepness).all()
    assert (steepest > 0.5 * steepness).all()


def test_runs_that_cannot_be_measured(root, workdir, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        decomposition.main(arguments(root, tmp_path / "nothing"))
    with pytest.raises(ValueError, match="there is no preset 'tinny'"):
        decomposition.main(arguments(root, workdir, "--config=tinny"))
    with pytest.raises(ValueError, match="ratio must divide the 32 cells"):
        diagnostics.main(arguments(root, workdir, "--config=tiny,ratio=3"))
