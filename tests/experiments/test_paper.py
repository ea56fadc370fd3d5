"""The paper's numbers as data: complete, and checked by a checker that can fail."""

import dataclasses

import pytest

from experiments import paper


def source_of(tables):
    """A LaTeX source in the paper's layout with the rows of `tables`."""
    lines = []
    for table in tables:
        if table is paper.DECOMPOSITION:
            lines += [
                f"{i} (FNO) & {error:.4f} & {'N/A' if i == 0 else gain} \\\\"
                for i, (error, gain) in enumerate(zip(*table.rows.values(), strict=True))
            ]
            continue
        for name, values in table.rows.items():
            cells = [f"{value:.5f}" for value in values]
            cells[0] = f"\\textbf{{{cells[0]}}}"
            lines.append(" & ".join([name.split(", ")[-1], *cells]) + " \\\\")
    return "\n" + "\n".join(lines)


def test_every_row_has_a_value_for_each_column():
    for table in paper.TABLES:
        assert set(table.trained) <= set(table.columns)
        for name, values in table.rows.items():
            assert len(values) == len(table.columns), f"{table.label}, {name}"


def test_the_check_finds_nothing_in_a_faithful_source():
    assert paper.check(source_of(paper.TABLES)) == []


@pytest.mark.parametrize("row", ["FNO", "CNO+scale"])
def test_the_check_names_a_row_that_differs(row):
    changed = dict(paper.DARCY.rows)
    changed[row] = (*changed[row][:-1], 9.99)
    tables = [dataclasses.replace(paper.DARCY, rows=changed), *paper.TABLES[1:]]
    (message,) = paper.check(source_of(tables))
    assert message.startswith(f"table:darcy_burgers, {row}:")
