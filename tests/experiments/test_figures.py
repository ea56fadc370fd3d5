"""What will fail for want of matplotlib fails before the work."""

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
