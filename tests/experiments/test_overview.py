"""The figure of all equations."""

import importlib

import pytest

from experiments import figures, naming, overview, paper

CONFIGS = {
    "darcy": ("small", "small,consistency=sub", "small,base=harmonic,consistency=sub"),
    "helmholtz": ("small", "small,consistency=sub", "small,base=helmholtz,consistency=sub"),
    "burgers": (
        "small,model=fno",
        "small,consistency=sub+stretch,scale_embedding=octaves",
        "small,consistency=sub+super",
        "small,base=heat,consistency=sub",
    ),
    "navier_stokes": (
        "small,model=fno",
        "small,model=fno,consistency=sub",
        "small,base=last_frame,consistency=sub",
    ),
    "navier_stokes_spacetime": (
        "small,kernel=tensor",
        "small,kernel=tensor,consistency=sub,smallest_crop=32",
        "small,kernel=tensor,base=extrapolation,consistency=sub",
    ),
}


@pytest.mark.parametrize("name", overview.PANELS)
def test_curves_are_rows_that_configs_make(name):
    get_config = importlib.import_module(f"experiments.configs.{name}").get_config
    labels = {naming.label(get_config(text)) for text in CONFIGS[name]}
    *trained, _ = overview.PANELS[name].rows
    assert {row for row in trained if row} == labels


def test_a_curve_is_the_mean_over_seeds():
    results = [
        {"row": row, "seed": seed, "errors": {"test-2": {"e": error}, "test-4": {"e": 2 * error}}}
        for row, seed, error in (("FNO", 0, 0.1), ("FNO", 1, 0.3), ("FNO+sub", 0, 0.05))
    ]
    _, axes = figures.subplots(1, 1, size=(3.0, 3.0))
    overview.draw_panel(axes[0, 0], results, overview.PANELS["darcy"], paper.DARCY, metric="e")
    first, second, trained = axes[0, 0].get_lines()
    assert list(first.get_xdata()) == [2, 4]
    assert list(first.get_ydata()) == pytest.approx([20, 40])
    assert list(second.get_ydata()) == pytest.approx([5, 10])
    assert list(trained.get_xdata()) == [4, 4]
