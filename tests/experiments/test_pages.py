"""Pages show what is in the results."""

import json
import pathlib

import pytest

from experiments import pages

ROOT = pathlib.Path(__file__).parents[2]
PAGE = """# A page

<!-- errors darcy small -->

| anything | at all |
|---|---|
| FNO | 99.9 |
| with crops <!-- FNO+sub --> | |
| *paper: FNO* | |
| *paper: Rot.* | |
| Harmonic solution |

| FNO | another table, which stays as it is |
"""
EXPECTED = """# A page

<!-- errors darcy small -->

|  | scale 2 | 4 (trained) | 5 | seeds | core-minutes |
|---|---|---|---|---|---|
| FNO | 20.0 | 120 | – | 2 | 3.0 |
| with crops <!-- FNO+sub --> | 0.50 | – | 7.0 | 1 | 5.0 |
| *paper: FNO* | 3.9 | 3.7 | – |  |  |
| *paper: Rot.* | 3.1 | 3.0 | – |  |  |
| Harmonic solution | 18.0 | – | – | untrained |  |

| FNO | another table, which stays as it is |
"""


def keep(root, row, seed, errors, **rest):
    metrics = {f"test-{scale}": {"relative_l2": error} for scale, error in errors.items()}
    path = root / "darcy" / "small" / row.replace(" ", "-") / f"seed-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"row": row, "seed": seed, "errors": metrics, **rest}))


@pytest.fixture
def results(tmp_path):
    keep(tmp_path, "FNO", 0, {2: 0.1, 4: 1.1}, core_minutes=2.0)
    keep(tmp_path, "FNO", 1, {2: 0.3, 4: 1.3}, core_minutes=4.0)
    keep(tmp_path, "FNO+sub", 0, {2: 0.005, 5: 0.07}, core_minutes=5.0)
    keep(tmp_path, "Harmonic solution", 0, {2: 0.18}, untrained=True)
    return tmp_path


def test_marked_tables_are_filled_in_and_others_kept(results):
    assert pages.refreshed(PAGE, results) == EXPECTED
    assert pages.refreshed(EXPECTED, results) == EXPECTED


def test_reductions_stand_beside_those_of_the_paper(results):
    keep(results, "FNO+sub", 0, {2: 0.1, 4: 0.6}, core_minutes=5.0, trained_scales=[4.0])
    page = pages.refreshed("<!-- reductions small -->\n\n| old |\n", results)
    # 0.2 -> 0.1 and 1.2 -> 0.6 in the means over seeds; 0.1 -> 0.1 and 1.1 -> 0.6 for seed 0
    assert "| darcy: FNO+sub | 50 % | 50 % | 23 to 23 % | 42 % | 41 % |" in page
    assert "| mean of all cells | 50 % | 50 % | 23 to 23 % | 42 % | 41 % |" in page
    assert "old" not in page


def test_a_row_without_results_is_named(results):
    with pytest.raises(ValueError, match="asks for the row 'UNO'; there are FNO, FNO\\+sub"):
        pages.refreshed(PAGE.replace("| FNO | 99.9 |", "| UNO | |"), results)


def test_a_row_that_the_paper_does_not_have_is_named(results):
    with pytest.raises(
        ValueError, match="asks for the paper's row 'GNO'; there are FNO, FNO\\+sca"
    ):
        pages.refreshed(PAGE.replace("paper: Rot.", "paper: GNO"), results)


@pytest.mark.parametrize("page", pages.PAGES)
def test_the_pages_of_the_repository_are_up_to_date(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert pages.ERRORS.search(text)
    assert pages.refreshed(text, ROOT / "results") == text
