"""One row of the Darcy table in the tiny preset, from seed to table, figures and diagnostics."""

import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import (
    comparison,
    darcy,
    decomposition,
    diagnostics,
    figures,
    naming,
    outcome,
    publish,
    runner,
    tables,
    training,
)
from experiments.configs import darcy as configs
from experiments.configs import decomposition as decomposition_configs
from sino_jax import operator
from sino_jax.diagnostics import error_estimate


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    root = tmp_path_factory.mktemp("experiment")
    return {"data": root / "data", "runs": root / "runs"}


@pytest.fixture(scope="module")
def results(directories):
    # optax raises a weakly typed float to an integer power: strict promotion is not for it.
    with jax.numpy_dtype_promotion("standard"):
        return [
            runner.run(darcy.EXPERIMENT, configs.get_config(text), **directories)
            for text in ("tiny", "tiny,consistency=sub+super,symmetries=rotation+reflection")
        ]


def test_a_row_has_errors_at_every_scale(results):
    assert [result["row"] for result in results] == ["FNO", "FNO+scale+rotation+reflection"]
    for result in results:
        errors = outcome.errors_by_scale(result)
        assert sorted(errors) == [2, 4]
        assert all(0 < error < 2 for error in errors.values())
        assert result["trained_scales"] == [4]


def test_a_finished_row_is_read_and_not_run_again(results, directories, monkeypatch):
    monkeypatch.setattr(runner.train, "fit", None)
    again = runner.run(darcy.EXPERIMENT, configs.get_config("tiny"), **directories)
    assert again == results[0]


def test_a_result_of_another_config_is_not_overwritten(results, directories):
    config = configs.get_config("tiny")
    config.epochs = 3  # a preset that was changed since
    with pytest.raises(ValueError, match="is the result of another config"):
        runner.run(darcy.EXPERIMENT, config, **directories)


def test_a_row_says_what_it_changes():
    config = configs.get_config("tiny,epochs=3,model=uno,score=val,batch_size=2,data=tiny;seed=5")
    assert naming.label(config) == "UNO (batch_size=2, data=tiny;seed=5, epochs=3)"
    assert config.data == "tiny,seed=5"
    assert naming.directory(config, pathlib.Path("runs")).parts[:3] == ("runs", "darcy", "tiny-val")
    again = configs.get_config(naming.config_text(config))
    assert again.to_json() == config.to_json()


def test_the_table_has_our_errors_above_the_papers(results):
    reference = tables.PAPER["darcy"][0]
    lines = tables.markdown(results, reference).splitlines()
    assert lines[0].startswith("| model | seeds | scale 2 | scale 3 | scale 4 (trained) |")
    ours = outcome.errors_by_scale(results[0])
    assert lines[2].startswith(f"| FNO | 1 | {100 * ours[2]:.2f} | – | {100 * ours[4]:.2f} |")
    assert lines[3].startswith("| *FNO, paper* | | 3.921 |")


def test_reduction_is_the_relative_difference_of_the_means():
    def result(row, error):
        return {"row": row, "seed": 0, "errors": {"test-4": {"relative_l2": error}}}

    runs = [result("A", 0.10), result("A", 0.30), result("B", 0.05)]
    np.testing.assert_allclose(tables.reduction(runs, baseline="A", improved="B")[4], 75.0)


def test_figures_are_drawn(results, directories, tmp_path):
    config = configs.get_config("tiny")
    workdir = naming.directory(config, directories["runs"])
    paths = [
        figures.error_against_scale(results, tmp_path / "errors.png", trained=(4,)),
        figures.training_curves({"FNO": workdir}, tmp_path / "curves.png"),
        figures.predictions(workdir, tmp_path / "predictions.png"),
    ]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_the_errors_in_figures_are_those_of_the_table(results, directories):
    trained = operator.load(naming.directory(configs.get_config("tiny"), directories["runs"]))
    for dataset in figures.test_data(trained):
        errors = [figures.solve(trained, dataset, sample=i).error for i in range(len(dataset))]
        expected = outcome.errors_by_scale(results[0])[dataset.scale]
        np.testing.assert_allclose(np.mean(errors), expected, rtol=1e-5)


def test_runs_are_drawn_side_by_side(results, directories, tmp_path, capsys):
    places = sorted({path.parent for path in directories["runs"].rglob(outcome.RESULT)})
    command = ["--run", *map(str, places), "--write", f"--results={tmp_path}"]
    comparison.main([*command, "--scales=2"])
    drawn = [
        tmp_path / "darcy" / "tiny" / name for name in ("comparison.png", "training_curves.png")
    ]
    assert capsys.readouterr().out.split() == list(map(str, drawn))
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    with pytest.raises(ValueError, match=r"--scales must be among \[2.0, 4.0\], got \[3.0\]"):
        comparison.main([*command, "--scales", "2", "3"])


def test_super_domains_are_samples_of_the_larger_scale():
    """The prior on twice the grid is the data's own distribution at twice the scale."""
    config = configs.get_config("tiny")
    coefficient, boundary = darcy.prior(config)(jax.random.key(0), (65, 65), None)
    assert coefficient.shape == boundary.shape == (65, 65, 1)
    assert set(np.unique(coefficient)) == {2.0, 12.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tinny", "did you mean 'tiny'"),
        ("tiny,modle=fno", "did you mean 'model'"),
        ("tiny,epochs=many", "epochs takes a value like"),
    ],
)
def test_unknown_presets_and_fields_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        configs.get_config(text)


def test_unknown_consistency_is_refused():
    with pytest.raises(ValueError, match="consistency must be one of none.*got 'sup'"):
        training.loss_options(configs.get_config("tiny,consistency=sup"))


@pytest.fixture(scope="module")
def workdir(results, directories):
    """The directory of the first row's run; its first and last checkpoints are there."""
    return directories["runs"] / "darcy/tiny/fno/seed-0"


def arguments(directories, workdir, *more):
    results = directories["runs"].parent / "results"
    return ["--run", str(workdir), f"--data={directories['data']}", f"--results={results}", *more]


def recorded_error(workdir, scale):
    result = json.loads((workdir / outcome.RESULT).read_text())
    return outcome.errors_by_scale(result)[scale]


def test_all_checkpoints_are_kept_if_asked_for(directories, monkeypatch):
    class Stop(Exception):
        pass

    def fit(settings, workdir, **options):
        assert settings["checkpoint"]["every"] == 7
        assert settings["checkpoint"]["keep"] > 10**6
        raise Stop

    monkeypatch.setattr(runner.train, "fit", fit)
    with pytest.raises(Stop):
        runner.run(darcy.EXPERIMENT, configs.get_config("tiny,seed=9"), **directories, keep_every=7)


def test_decomposition_starts_from_the_evaluated_error(directories, workdir, capsys):
    text = "tiny,size_ratio=1,overlaps=9,levels=1+2"
    decomposition.main(arguments(directories, workdir, f"--config={text}", "--write"))
    out = directories["runs"].parent / "results/decomposition/tiny"
    result = json.loads((out / "fno/seed-0.json").read_text())
    variants = result["variants"]
    assert set(variants) == {
        "paper layout", "from zeros", "levels 1, 2", "overlap 9", "training-size patches",
        "training-size patches, accelerated", "paper layout, solver",
        "training-size patches, solver",
    }  # fmt: skip
    start = variants["paper layout"]["errors"][0]
    assert start == pytest.approx(recorded_error(workdir, 4.0), rel=1e-4)
    assert variants["from zeros"]["errors"][0] == 1.0
    assert variants["levels 1, 2"]["patches"] == [1, 2]
    assert all(len(entry["errors"]) == 3 for entry in variants.values())
    # One patch of the whole domain is the global prediction with the right boundary values.
    whole = variants["training-size patches"]["errors"]
    assert whole[1] == pytest.approx(whole[2], rel=1e-4)
    # There the solver is right, up to the single precision of the data.
    assert variants["training-size patches, solver"]["errors"][1] < 1e-4
    table = (out / "table.md").read_text()
    assert f"| 0 | {100 * start:.2f} | 0.00 | 5.32 | 0.00 |" in table
    assert table in capsys.readouterr().out
    for name in ("fields", "iterations"):
        assert (out / f"fno/seed-0-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_larger_data_has_the_spacing_of_the_training_data():
    config, name = decomposition.large_data("darcy", "tiny", 4)
    assert name == "test-16"
    assert config.points == ((16, 129),)
    assert config.name == "darcy-tiny-large"
    own, name = decomposition.large_data("darcy", "small", 4)
    assert (own.name, name) == ("darcy-small", "test-16")
    own, name = decomposition.large_data("helmholtz", "small", 2)
    assert (own.name, name) == ("helmholtz-small", "test-50")


def test_patches_of_training_size_cover_the_paper_s_domain():
    chosen = decomposition.variants(decomposition_configs.get_config("small"), 65, 257)
    (layout,) = set(chosen["training-size patches"].layouts)
    assert layout == decomposition.Layout(7, 32, 8)
    assert [x.patches for x in chosen["levels 2, 4"].layouts] == [2, 2, 4, 4, 4]


@pytest.mark.slow
def test_diagnostics_measure_every_checkpoint_and_calibrate(directories, workdir, capsys):
    diagnostics.main(arguments(directories, workdir, "--keep_calibration", "--config=tiny,draws=1"))
    out = workdir / "diagnostics"
    result = json.loads((out / "fno/seed-0.json").read_text())
    assert list(result["terms"]) == ["smooth", "two-phase"]
    for curve in result["terms"].values():
        assert [entry["step"] for entry in curve] == [0, 4]
        for entry in curve:
            assert set(entry["supremum"]) == set(diagnostics.TERMS)
            assert all(entry["mean"][t] <= entry["supremum"][t] for t in diagnostics.TERMS)
        assert curve[0]["supremum"] != curve[1]["supremum"]
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


def test_runs_that_cannot_be_measured(directories, workdir, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        decomposition.main(arguments(directories, tmp_path / "nothing"))
    with pytest.raises(SystemExit, match="error: there is no preset 'tinny'"):
        decomposition.main(arguments(directories, workdir, "--config=tinny"))
    with pytest.raises(ValueError, match="ratio must divide the 32 cells"):
        diagnostics.main(arguments(directories, workdir, "--config=tiny,ratio=3"))


def test_a_published_operator_has_the_errors_of_its_run(
    results, directories, workdir, tmp_path, monkeypatch
):
    monkeypatch.setattr(publish.portable, "SMALLEST_HALVED", 1000)  # the kernels
    place = publish.publish(workdir, "darcy", data_root=directories["data"], out=tmp_path)
    made, original = operator.load(place), operator.load(workdir)
    assert made.meta["origin"]["command"] == results[0]["command"]
    change = publish._change(results[0]["errors"], made.meta["evaluation"])
    assert 0 < change < publish.LARGEST_CHANGE + publish.SAME
    inputs = np.linspace(1, 2, 17 * 17).reshape(17, 17, 1)
    predictions = [trained.solve(inputs, inputs, 4.0) for trained in (made, original)]
    np.testing.assert_allclose(*predictions, rtol=1e-2, atol=1e-3)
    with pytest.raises(publish.Unpublishable, match="exists: --replace replaces it"):
        publish.publish(workdir, "darcy", data_root=directories["data"], out=tmp_path)


def test_runs_that_must_not_be_published(directories, workdir, tmp_path):
    def attempt(run, name="darcy", data=directories["data"]):
        publish.publish(run, name, data_root=data, out=tmp_path)

    with pytest.raises(publish.Unpublishable, match=r"has no result.json: only finished runs"):
        attempt(tmp_path)
    with pytest.raises(publish.Unpublishable, match="name must be darcy or begin with darcy-"):
        attempt(workdir, "burgers")
    changed = shutil.copytree(workdir, tmp_path / "changed")
    result = json.loads((changed / outcome.RESULT).read_text())
    result["errors"]["test-2"]["relative_l2"] /= 2
    (changed / outcome.RESULT).write_text(json.dumps(result))
    with pytest.raises(publish.Unpublishable, match="is not that of the newest checkpoint"):
        attempt(changed)
    other = shutil.copytree(directories["data"], tmp_path / "data")
    shutil.rmtree(other / "darcy-tiny/test-2")
    shutil.copytree(other / "darcy-tiny/test-4", other / "darcy-tiny/test-2")
    with pytest.raises(publish.Unpublishable, match="is not the data set that the run"):
        attempt(workdir, data=other)
    assert not (tmp_path / "darcy").exists()
