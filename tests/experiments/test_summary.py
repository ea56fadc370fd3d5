"""The summary over tables: reductions by hand, and the paper's own."""

import numpy as np
import pytest

from experiments import paper, summary


def result(row, seed, errors):
    metrics = {f"test-{scale}": {"relative_l2": error} for scale, error in errors.items()}
    return {"row": row, "seed": seed, "errors": metrics, "trained_scales": [4.0]}


def test_reductions_are_means_over_scales_of_mean_errors_over_seeds():
    results = [
        result("FNO", 0, {2: 0.2, 4: 0.1}),
        result("FNO", 1, {2: 0.4, 4: 0.1}),
        result("FNO+sub", 0, {2: 0.1, 4: 0.1}),
        result("FNO+sub", 1, {2: 0.1, 4: 0.05}),
        result("UNet+sub", 0, {2: 0.1, 4: 0.1}),
    ]
    (pair,) = summary.pairs_of(results, "darcy")
    assert pair.row == "FNO+sub"
    np.testing.assert_allclose(pair.reductions, [100 * (1 - 0.1 / 0.3), 25.0])
    np.testing.assert_allclose(pair.unseen, [100 * (1 - 0.1 / 0.3)])
    np.testing.assert_allclose(pair.by_seed, [(50 + 0) / 2, (75 + 50) / 2])


@pytest.mark.parametrize(
    ("row", "plain"),
    [
        ("FNO+sub", "FNO"),
        ("SINO+sub+stretch", "SINO"),
        ("FNO+scale", "FNO"),
        ("FNO", None),
        ("FNO+rotation", None),
        ("FNO+sub+rotation+reflection (epochs=3)", "FNO+rotation+reflection (epochs=3)"),
        ("SINO (tensor kernel)+sub from 32", "SINO (tensor kernel)"),
        (
            "SINO (tensor kernel, scale no, frequency yes)+scale (super_method=relabel, epochs=9)",
            "SINO (tensor kernel, scale no, frequency yes) (epochs=9)",
        ),
        ("SINO (tensor kernel)+stretch (sub_weight=0.5)", "SINO (tensor kernel)"),
    ],
)
def test_the_row_without_the_loss(row, plain):
    assert summary.without_loss(row) == plain


def test_the_papers_darcy_table_halves_the_error_of_its_fno():
    pair = summary.compared_in_paper(paper.DARCY, "darcy", "FNO", "FNO+scale")
    assert pair.reductions[0] == pytest.approx(100 * (1 - 1.990 / 3.921))
    assert len(pair.unseen) == 4
