"""Axes that can be read; what will fail for want of matplotlib fails before the work."""

import importlib.util

import pytest

from experiments import decomposition, demo, diagnostics, figures, hybrid


@pytest.mark.parametrize(
    "main",
    [
        demo.main,
        *(
            lambda module=module: module.main(["--run", "no such run"])
            for module in (decomposition, diagnostics, hybrid)
        ),
    ],
)
def test_programs_that_draw_ask_for_matplotlib_first(main, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        figures.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "matplotlib" else find_spec(name, *rest),
    )
    with pytest.raises(SystemExit, match="need matplotlib"):
        main()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("limits", "labels"),
    [
        ((1.6, 60), ["2 %", "5 %", "10 %", "20 %", "50 %"]),
        ((0.03, 0.7), ["0.05 %", "0.1 %", "0.2 %", "0.5 %"]),
        ((31, 48), ["32 %", "36 %", "40 %", "44 %", "48 %"]),
    ],
)
def test_axes_of_percent_have_a_few_plain_numbers(limits, labels, tmp_path):
    figure, axes = figures.subplots(1, 1, size=(3.0, 2.0))
    axes = axes[0, 0]
    axes.plot([1, 2], limits)
    axes.set(yscale="log", ylim=limits)
    figures.percent_ticks(axes)
    low, high = axes.get_ylim()
    shown = [
        text.get_text()
        for tick, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
        if low <= tick <= high
    ]
    assert shown == labels
    assert not axes.get_yticks(minor=True).size
    figures.save(figure, tmp_path / "axes.png")
