"""Keeps the numbers of pages those of the results: fills in tables of errors, in place.

    python -m experiments.pages                     README.md and docs/results.md
    python -m experiments.pages --check             whether they are up to date

A table that is filled in has a line above it that says which results it shows,

    <!-- errors darcy small -->

with a metric of `experiments.tables` as a third word if it is not that of the paper's table. Its
first column says the rows: the label of a row of ours, ``paper: FNO+scale`` for one of any of the
paper's tables of that experiment, or words of your own before the label in a comment, ``FNO with
crops <!-- FNO+sub -->``. All other cells are made anew: errors at all scales of the results, seeds,
and the mean time on one core. A table below ``<!-- reductions small -->`` has the error reductions
of `experiments.summary` for the main models.
"""

import argparse
import functools
import pathlib
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import outcome, summary, tables

PAGES = (pathlib.Path("README.md"), pathlib.Path("docs/results.md"))
ERRORS = re.compile(
    r"^(?P<mark><!-- errors (?P<experiment>\S+) (?P<preset>\S+)(?: (?P<metric>\S+))? -->\s*\n)"
    r"(?P<table>(?:\|.*\n)+)",
    re.MULTILINE,
)
REDUCTIONS = re.compile(
    r"^(?P<mark><!-- reductions (?P<preset>\S+) -->\s*\n)(?P<table>(?:\|.*\n)+)", re.MULTILINE
)
LABEL = re.compile(r"<!-- (.+) -->\s*$")
OF_PAPER = "paper: "


def refreshed(text: str, results: pathlib.Path) -> str:
    """A page whose marked tables show the results below a directory."""
    collect = functools.cache(lambda of: tables.collect(results / of))

    def filled(found: re.Match) -> str:
        known = collect(pathlib.Path(found["experiment"], found["preset"]))
        reference = tables.PAPER[found["experiment"]]
        rows = found["table"].splitlines()
        table = _filled(rows, known, reference, found["metric"] or reference[0].metric)
        return found["mark"] + "\n".join([*table, ""])

    def compared(found: re.Match) -> str:
        return found["mark"] + "\n".join([*_reductions(results, found["preset"]), ""])

    return REDUCTIONS.sub(compared, ERRORS.sub(filled, text))


def _reductions(results: pathlib.Path, preset: str) -> list[str]:
    """What the loss does for the main model of each equation, ours beside the paper's."""
    ours, papers = summary.main_pairs(results, preset)
    head = ["", "all scales", "unseen scales", "single seeds", "paper: all scales", "unseen scales"]
    made = [_row(head), "|" + "---|" * len(head)]
    for pair in ours:
        beside = [other for other in papers if other.experiment == pair.experiment]
        cells = [*summary.means([pair]), summary.spread([pair]), *summary.means(beside)]
        made.append(_row([f"{pair.experiment}: {pair.row}", *map(_percents, cells)]))
    # Over the same equations on both sides.
    beside = [pair for pair in papers if pair.experiment in {own.experiment for own in ours}]
    cells = [*summary.means(ours), summary.spread(ours), *summary.means(beside)]
    return [*made, _row(["mean of all cells", *map(_percents, cells)])]


def _percents(text: str) -> str:
    return f"{text} %" if text not in ("", "–") else text


def _filled(
    rows: Sequence[str],
    known: Sequence[Mapping[str, Any]],
    references: Sequence[tables.Reference],
    metric: str,
) -> list[str]:
    """The table with its first column as it was, and the other cells from the results."""
    reference = references[0]
    columns = sorted({scale for result in known for scale in outcome.errors_by_scale(result)})
    scales = [f"{column:g}" for column in columns]
    scales = [
        f"{text} (trained)" if column in reference.table.trained else text
        for column, text in zip(columns, scales, strict=True)
    ]
    head = ["", f"{reference.table.parameter} {scales[0]}", *scales[1:], "seeds", "core-minutes"]
    made = [_row(head), "|" + "---|" * len(head)]
    for row in rows[2:]:
        first = row.split("|")[1].strip()
        label = found.group(1) if (found := LABEL.search(first)) else first.strip("*")
        if label.startswith(OF_PAPER):
            published = _published(references, label.removeprefix(OF_PAPER))
            values, rest = [published.get(column) for column in columns], ["", ""]
        else:
            values, rest = _ours(known, label, columns, metric)
        made.append(_row([first, *map(_percent, values), *rest]))
    return made


def _published(references: Sequence[tables.Reference], row: str) -> dict[float, float]:
    """The paper's errors by scale, from the first of its tables of an experiment with the row."""
    found = [reference.table for reference in references if row in reference.table.rows]
    if not found:
        rows = dict.fromkeys(row for reference in references for row in reference.table.rows)
        raise ValueError(f"a table asks for the paper's row {row!r}; there are {', '.join(rows)}")
    return dict(zip(found[0].columns, found[0].rows[row], strict=True))


def _ours(
    results: Sequence[Mapping[str, Any]], label: str, columns: Sequence[float], metric: str
) -> tuple[list[float | None], list[str]]:
    """Mean errors of a row in percent by scale; its number of seeds and its mean core-minutes."""
    runs = [result for result in results if result["row"] == label]
    if not runs:
        rows = ", ".join(sorted({result["row"] for result in results}))
        raise ValueError(f"a table asks for the row {label!r}; there are {rows}")
    errors = tables.errors_by_row(runs, metric=metric)[label]
    means = [[100 * run[column] for run in errors if column in run] for column in columns]
    untrained = runs[0].get("untrained")
    seeds = "untrained" if untrained else str(len(runs))
    minutes = "" if untrained else f"{statistics.mean(run['core_minutes'] for run in runs):.1f}"
    return [statistics.mean(values) if values else None for values in means], [seeds, minutes]


def _percent(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=pathlib.Path, default=PAGES)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page would")
    arguments = parser.parse_args(argv)
    stale = []
    for page in arguments.pages:
        text = page.read_text(encoding="utf-8")
        try:
            new = refreshed(text, arguments.results)
        except ValueError as error:
            parser.exit(1, f"error: {page}: {error}\n")
        if new != text:
            stale.append(page)
            if not arguments.check:
                page.write_text(new, encoding="utf-8")
    if arguments.check and stale:
        sys.exit(f"error: {', '.join(map(str, stale))} differ from the results")


if __name__ == "__main__":
    main()
