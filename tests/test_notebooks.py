"""The published notebooks are those of their scripts; `make notebooks` executes them."""

import ast
import json
import pathlib
import re

import pytest

from notebooks import build

HERE = pathlib.Path(__file__).parent.parent / "notebooks"
SCRIPTS = sorted(HERE.glob("[0-9][0-9]_*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_published_notebook_is_that_of_its_script(script):
    assert not build.stale(script), "make notebooks-write"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_executed_small_and_of_short_cells(script):
    path = script.with_suffix(".ipynb")
    cells = json.loads(path.read_text())["cells"]
    assert path.stat().st_size < build.LARGEST_FILE
    assert 15 <= len(cells) <= 40
    for cell in cells:
        assert len("".join(cell["source"]).splitlines()) <= 35
        for output in cell.get("outputs", ()):
            assert output["output_type"] != "error"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    assert sum("image/jpeg" in json.dumps(cell) for cell in code) >= 2
    assert not re.search(r"/(root|home|work)/", path.read_text())


def test_a_script_becomes_cells():
    text = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n# !ls\n# why\n"
    assert build.cells(text) == [
        ("markdown", "# Title\n\nText."),
        ("code", "x = 1\n!ls\n# why"),
    ]
    with pytest.raises(ValueError, match="a cell begins with"):
        build.cells("# %%time\nx = 1\n")


def test_the_address_of_the_repository_stands_in_one_place():
    for script in SCRIPTS:
        assert build.REPOSITORY not in script.read_text()
        ast.parse(script.read_text())


def test_texts_change_without_execution_and_code_does_not(tmp_path):
    script = tmp_path / "01_title.py"
    text = "# %% [markdown]\n# # Title\n\n# %%\nx = 1\n"
    script.write_text(text)
    executed = build.notebook(script)
    executed["cells"][-1] |= {"execution_count": 2, "outputs": ["one"]}
    script.with_suffix(".ipynb").write_text(json.dumps(executed))
    script.write_text(text.replace("Title", "Other"))
    made = json.loads(build.with_outputs(script))
    assert made["cells"][0]["source"][-1] == "# Other"
    assert made["cells"][-1]["outputs"] == ["one"]
    script.write_text(text.replace("x = 1", "x = 2"))
    with pytest.raises(ValueError, match="code of 01_title has changed"):
        build.with_outputs(script)
