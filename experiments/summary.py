"""By how much scale-consistency lowers errors, over all tables: the paper's summary line.

    python -m experiments.summary
    python -m experiments.summary --preset=long

A pair is a row and the same row with a scale-consistency loss. Its reduction is the mean over
scales of 1 - (error with) / (error without), errors being means over seeds; once over all scales
and once over those that the training data does not have. The spread is that of single seeds. Means
over pairs leave out variants of a recipe, whose labels have changes in brackets. The
paper's own tables are summed up in the same way. The paper's summary, 34 % below "baseline FNO
models", compares the main model of each equation, with the loss, with the FNO without: the second
table.
"""

import argparse
import pathlib
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments import outcome, paper, tables

# A scale-consistency loss in the label of a row, before symmetries and changes in brackets.
LOSS = re.compile(r"\+(scale|sub|super)?\+?(stretch)?( from \d+)?(?=$|\+r| \()")
# "(tensor kernel)" is a part of the name.
CHANGES = re.compile(r"(?P<name>.*?)(?: \((?P<changes>[^()]*=[^()]*)\))?")
# Changes that are options of the loss, which the row without it does not have.
OPTIONS = re.compile(r"(sub|super|stretched|smallest)_\w+|detach|crop_region")
BASELINE = "FNO"
# The model of each equation that the paper's summary is about: its label there, and that of our
# recipe, with the loss.
MAIN = {
    "darcy": ("FNO+scale", "FNO+sub"),
    "burgers": ("SINO+scale", "SINO (tensor kernel)+sub+stretch (scale_embedding=octaves)"),
    "helmholtz": ("SINO-U+scale", "SINO-U+sub"),
    "navier_stokes": ("SINO-U+scale", "SINO-U+sub"),
}


class Pair(NamedTuple):
    """A row with the loss beside the one without.

    Attributes:
      experiment, row: the label is that with the loss.
      reductions: by scale, in percent.
      unseen: those at scales that the training data does not have.
      by_seed: the mean over all scales of every seed that both rows have.
    """

    experiment: str
    row: str
    reductions: Sequence[float]
    unseen: Sequence[float]
    by_seed: Sequence[float]


class Pairs(NamedTuple):
    """Our pairs and those of the paper's tables."""

    ours: list[Pair]
    papers: list[Pair]


def without_loss(row: str) -> str | None:
    """The label of a row without its scale-consistency loss; None if it has none."""
    plain, losses = LOSS.subn("", row, count=1)
    if not losses:
        return None
    name, changes = CHANGES.fullmatch(plain).group("name", "changes")
    kept = [
        change
        for change in (changes or "").split(", ")
        if change and not OPTIONS.fullmatch(change.partition("=")[0])
    ]
    return f"{name} ({', '.join(kept)})" if kept else name


def pairs_of(results: Iterable[Mapping[str, Any]], experiment: str) -> list[Pair]:
    """All pairs among the results of one experiment."""
    results = list(results)
    rows = {result["row"] for result in results}
    labels = sorted(row for row in rows if without_loss(row) in rows)
    return [compared(results, experiment, without_loss(row), row) for row in labels]


def compared(
    results: Sequence[Mapping[str, Any]], experiment: str, before: str, after: str
) -> Pair:
    """Two rows of one experiment, by the metric of the paper's table."""
    metric = tables.PAPER[experiment][0].metric
    trained = {scale for result in results for scale in result.get("trained_scales", ())}
    errors = {
        row: {
            result["seed"]: outcome.errors_by_scale(result, metric=metric)
            for result in results
            if result["row"] == row
        }
        for row in (before, after)
    }
    reductions = _reductions(*(_mean_over(errors[row].values()) for row in (before, after)))
    by_seed = [
        statistics.mean(_reductions(errors[before][seed], errors[after][seed]).values())
        for seed in sorted(errors[before].keys() & errors[after].keys())
    ]
    return _pair(experiment, after, reductions, trained, by_seed)


def pairs_of_paper(table: paper.Table, experiment: str) -> list[Pair]:
    """All pairs of a table of the paper."""
    rows = [(without_loss(row), row) for row in table.rows]
    return [
        compared_in_paper(table, experiment, plain, row)
        for plain, row in rows
        if plain in table.rows
    ]


def compared_in_paper(table: paper.Table, experiment: str, before: str, after: str) -> Pair:
    errors = [dict(zip(table.columns, table.rows[row], strict=True)) for row in (before, after)]
    return _pair(experiment, after, _reductions(*errors), set(table.trained), ())


def _pair(
    experiment: str,
    row: str,
    reductions: Mapping[float, float],
    trained: set[float],
    by_seed: Sequence[float],
) -> Pair:
    unseen = [value for scale, value in reductions.items() if scale not in trained]
    return Pair(experiment, row, list(reductions.values()), unseen, by_seed)


def _mean_over(runs: Iterable[Mapping[float, float]]) -> dict[float, float]:
    runs = list(runs)
    return {scale: statistics.mean(run[scale] for run in runs) for scale in runs[0]}


def _reductions(before: Mapping[float, float], after: Mapping[float, float]) -> dict[float, float]:
    return {scale: 100 * (1 - after[scale] / before[scale]) for scale in before}


def every_pair(results: pathlib.Path, preset: str) -> Pairs:
    """All rows with the loss beside the same rows without."""
    found = Pairs([], [])
    for experiment, references in tables.PAPER.items():
        found.ours.extend(pairs_of(tables.collect(results / experiment / preset), experiment))
        found.papers.extend(pairs_of_paper(references[0].table, experiment))
    return found


def main_pairs(results: pathlib.Path, preset: str) -> Pairs:
    """The main model of each equation with the loss beside the FNO without."""
    found = Pairs([], [])
    for experiment, (published, own) in MAIN.items():
        table = tables.PAPER[experiment][0].table
        found.papers.append(compared_in_paper(table, experiment, BASELINE, published))
        known = tables.collect(results / experiment / preset)
        if {BASELINE, own} <= {result["row"] for result in known}:
            found.ours.append(compared(known, experiment, BASELINE, own))
    return found


def means(pairs: Sequence[Pair]) -> tuple[str, str]:
    """Mean reductions over all cells of some pairs, and over those at unseen scales."""
    every = [value for pair in pairs for value in pair.reductions]
    unseen = [value for pair in pairs for value in pair.unseen]
    return _mean(every), _mean(unseen)


def document(ours: Sequence[Pair], papers: Sequence[Pair], *, variants: bool = False) -> str:
    """The table of all pairs, means over the cells of each experiment, and over all of them.

    Means leave out variants, rows with changes in brackets, unless `variants` is true.
    """
    lines = [
        "| experiment | row | seeds | all scales | unseen scales | single seeds |",
        "|---|---|---|---|---|---|",
    ]
    for experiment in dict.fromkeys(pair.experiment for pair in ours):
        own = [pair for pair in ours if pair.experiment == experiment]
        for pair in own:
            lines.append(
                f"| {experiment} | {pair.row} | {len(pair.by_seed)} | "
                f"{' | '.join(means([pair]))} | {spread([pair])} |"
            )
        counted = [pair for pair in own if variants or not _is_variant(pair)]
        lines.append(_average(f"**{experiment}**", "mean of all cells", counted))
        if published := [pair for pair in papers if pair.experiment == experiment]:
            lines.append(_average(experiment, "*mean of all cells, paper*", published))
    counted = [pair for pair in ours if variants or not _is_variant(pair)]
    lines.append(_average("**all**", "mean of all cells", counted))
    lines.append(_average("all", "*mean of all cells, paper*", papers))
    return "\n".join(lines) + "\n"


def spread(pairs: Sequence[Pair]) -> str:
    """Mean reductions over all cells, of single seeds that all pairs have, as a range."""
    cells = [len(pair.reductions) for pair in pairs]
    seeds = zip(*(pair.by_seed for pair in pairs), strict=False)
    found = [np.average(reductions, weights=cells) for reductions in seeds]
    return f"{min(found):.0f} to {max(found):.0f}" if found else "–"


def _average(experiment: str, what: str, pairs: Sequence[Pair]) -> str:
    return f"| {experiment} | {what} | | {' | '.join(means(pairs))} | |"


def _is_variant(pair: Pair) -> bool:
    return CHANGES.fullmatch(pair.row).group("changes") is not None


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.0f}" if values else "–"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="small")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep it as summary-<preset>.md")
    arguments = parser.parse_args()
    every = every_pair(arguments.results, arguments.preset)
    if not every.ours:
        parser.exit(1, f"there are no pairs of rows below {arguments.results}\n")
    text = (
        "Error reduction by scale-consistency, in percent. Means leave out rows with changes in "
        f"brackets.\n\n{document(*every)}"
    )
    text += f"\nThe main models with the loss against {BASELINE} without, in percent.\n\n"
    text += document(*main_pairs(arguments.results, arguments.preset), variants=True)
    if arguments.write:
        (arguments.results / f"summary-{arguments.preset}.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
