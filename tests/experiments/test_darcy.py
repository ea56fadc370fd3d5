"""One row of the Darcy table in the tiny preset, from seed to table and figures."""

import jax
import numpy as np
import pytest

from experiments import darcy, figures, runner, tables
from experiments.configs import darcy as configs


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
        errors = runner.errors_by_scale(result)
        assert sorted(errors) == [2, 4]
        assert all(0 < error < 2 for error in errors.values())
        assert result["trained_scales"] == [4]


def test_a_finished_row_is_read_and_not_run_again(results, directories, monkeypatch):
    monkeypatch.setattr(runner.train, "fit", None)
    again = runner.run(darcy.EXPERIMENT, configs.get_config("tiny"), **directories)
    assert again == results[0]


def test_a_result_of_another_config_is_not_overwritten(results, directories):
    with pytest.raises(ValueError, match="is the result of another config"):
        runner.run(darcy.EXPERIMENT, configs.get_config("tiny,epochs=3"), **directories)


def test_the_table_has_our_errors_above_the_papers(results):
    reference = tables.PAPER["darcy"][0]
    lines = tables.markdown(results, reference).splitlines()
    assert lines[0].startswith("| model | seeds | scale 2 | scale 3 | scale 4 (trained) |")
    ours = runner.errors_by_scale(results[0])
    assert lines[2].startswith(f"| FNO | 1 | {100 * ours[2]:.2f} | – | {100 * ours[4]:.2f} |")
    assert lines[3].startswith("| *FNO, paper* | | 3.921 |")


def test_reduction_is_the_relative_difference_of_the_means():
    def result(row, error):
        return {"row": row, "seed": 0, "errors": {"test-4": {"relative_l2": error}}}

    runs = [result("A", 0.10), result("A", 0.30), result("B", 0.05)]
    np.testing.assert_allclose(tables.reduction(runs, baseline="A", improved="B")[4], 75.0)


def test_figures_are_drawn(results, directories, tmp_path):
    config = configs.get_config("tiny")
    workdir = runner.directory(config, directories["runs"])
    paths = [
        figures.error_against_scale(results, tmp_path / "errors.png", trained=(4,)),
        figures.training_curves({"FNO": workdir}, tmp_path / "curves.png"),
        figures.predictions(workdir, tmp_path / "predictions.png"),
    ]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")


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
    with pytest.raises(ValueError, match="made of sub and super, got \\['sup'\\]"):
        runner.loss_options(configs.get_config("tiny,consistency=sup"))
