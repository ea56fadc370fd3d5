"""Collects results into Markdown tables, the paper's value beside each of ours.

    python -m experiments.tables darcy                     # results in runs/, preset small
    python -m experiments.tables darcy --preset=paper --write

The first table of an experiment has all rows that were run; further ones are the paper's ablations
with their own rows, and all rows by other measures of the error, which the paper does not have.

`--write` keeps the results in the repository: ``results/<experiment>/<preset>/`` gets the JSON file
of every run and ``table.md``.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments import models, naming, outcome, paper
from sino_jax import files

METRICS = {
    "relative_l2": "Relative L2 error",
    "relative_l2_central_half": "Relative L2 error on the central half of the domain",
    "relative_l2_first": "Relative L2 error of one step",
    "relative_l2_first_central_half": "Relative L2 error of one step, central half of the domain",
}


class Reference(NamedTuple):
    """A table of the paper, and what of ours stands beside it.

    Attributes:
      table: the paper's.
      metric: that of our results which the paper's numbers measure; one of `METRICS`.
      rows: our label -> the paper's; None if they are the same.
      all_rows: whether to show rows of ours that the paper does not have.
      title: what the table is about.
    """

    table: paper.Table
    metric: str = "relative_l2"
    rows: Mapping[str, str] | None = None
    all_rows: bool = True
    title: str = "all models"

    def of_paper(self, row: str) -> tuple[str, tuple[float, ...]] | None:
        """Label and values of the paper's counterpart of one of our rows."""
        label = row if self.rows is None else self.rows.get(row)
        return (label, self.table.rows[label]) if label in self.table.rows else None


def _with_crops(table: paper.Table, *, sino_kernel: str = "shared") -> dict[str, str]:
    """The paper's "+scale" without a prior of larger domains: sub-domains, with or without more."""
    sino = models.family_label(sino_kernel, scale_informed="yes", frequency_embedding="yes")
    same = {re.sub(r"^SINO\b(?!-)", sino, row): row for row in table.rows}
    crops = {ours.replace("+scale", "+sub"): row for ours, row in same.items() if "+scale" in ours}
    return same | crops


def _flags(row: str) -> dict[str, str]:
    """The flags of a paper's row "Yes & No ..."."""
    scale, frequency, *_ = row.lower().split(" & ")
    return {"scale_informed": scale, "frequency_embedding": frequency}


def _embedding(table: paper.Table, kernel: str, *, metric: str) -> Reference:
    """The ablation of scale and frequency features, with scale-consistency."""
    rows = {
        models.family_label(kernel, **_flags(row)) + consistency: row
        for row in table.rows
        for consistency in ("+scale", "+sub")
    }
    title = f"features of scale and frequency, {kernel} kernel"
    return Reference(table, metric, rows, all_rows=False, title=title)


def _spacetime(table: paper.Table) -> Reference:
    """The paper's "FNO MLP" has the shared kernel; its errors are fractions."""
    rows = {}
    for row in table.rows:
        name, flags = row.split(", ")
        *_, crops, smallest = flags.split(" & ")
        kernel = {"FNO": "tensor", "FNO MLP": "shared"}[name]
        label = models.family_label(kernel, **_flags(flags))
        rows[label + (f"+sub from {smallest}" if crops == "ON" else "")] = row
    percent = {row: tuple(100 * v for v in values) for row, values in table.rows.items()}
    return Reference(dataclasses.replace(table, rows=percent), rows=rows)


def _unpublished(reference: Reference, metric: str, *, title: str = "all models") -> Reference:
    """All rows of ours by a measure that the paper does not report."""
    return Reference(reference.table, metric, rows={}, title=title)


_ROLLOUT = "all models, mean over the frames of a rollout"
_BURGERS = Reference(
    paper.BURGERS,
    "relative_l2_central_half",
    _with_crops(paper.BURGERS, sino_kernel="tensor"),
)
_NAVIER_STOKES = Reference(
    paper.NAVIER_STOKES, "relative_l2_first_central_half", _with_crops(paper.NAVIER_STOKES)
)
# For each experiment the table of all its models, and then others.
PAPER = {
    "darcy": (
        Reference(paper.DARCY, rows=_with_crops(paper.DARCY)),
        Reference(
            paper.DARCY_SYMMETRY,
            rows={
                "FNO": "No aug.",
                "FNO+rotation": "Rot.",
                "FNO+reflection": "Ref.",
                "FNO+rotation+reflection": "Rot.+Ref.",
                "FNO+scale": "Scale (ours)",
                "FNO+sub": "Scale (ours)",
                "FNO+scale+rotation+reflection": "All (ours)",
                "FNO+sub+rotation+reflection": "All (ours)",
            },
            all_rows=False,
            title="symmetries",
        ),
    ),
    "helmholtz": (
        Reference(paper.HELMHOLTZ, rows=_with_crops(paper.HELMHOLTZ)),
        _embedding(paper.HELMHOLTZ_EMBEDDING, "shared", metric="relative_l2"),
    ),
    "burgers": (
        _BURGERS,
        _embedding(paper.BURGERS_EMBEDDING, "tensor", metric=_BURGERS.metric),
        _unpublished(_BURGERS, "relative_l2"),
    ),
    "navier_stokes": (
        _NAVIER_STOKES,
        _unpublished(_NAVIER_STOKES, "relative_l2_first"),
        _unpublished(_NAVIER_STOKES, "relative_l2_central_half", title=_ROLLOUT),
        _unpublished(_NAVIER_STOKES, "relative_l2", title=_ROLLOUT),
    ),
    "navier_stokes_spacetime": (_spacetime(paper.NAVIER_STOKES_SPACETIME),),
}


def collect(directory: pathlib.Path) -> list[dict[str, Any]]:
    """All results below a directory, by row and seed."""
    results = [read(path) for path in directory.rglob("*.json") if is_result(path)]
    return sorted(results, key=lambda result: (result["row"], result["seed"]))


def read(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def is_result(path: pathlib.Path) -> bool:
    return path.name == outcome.RESULT or path.name.startswith("seed-")


def document(results: Sequence[Mapping[str, Any]], experiment: str) -> str:
    """All tables of an experiment that have a row, each under its title."""
    parts = []
    for reference in PAPER[experiment]:
        rows = {result["row"] for result in results}
        if reference.all_rows or rows & set(reference.rows):
            title = f"{METRICS[reference.metric]} in percent: {reference.title}"
            parts.append(f"## {title}\n\n{markdown(results, reference)}")
    return "\n".join(parts)


def markdown(results: Iterable[Mapping[str, Any]], reference: Reference) -> str:
    """One line for each row: mean ± spread (half the range) over seeds, in percent; paper below.

    Rows that need no training come last.
    """
    table, results = reference.table, list(results)
    untrained = {result["row"] for result in results if result.get("untrained")}
    head = [
        f"{table.parameter} {column:g}{' (trained)' if column in table.trained else ''}"
        for column in table.columns
    ]
    lines = [
        "| model | seeds | " + " | ".join(head) + " |",
        "|---|---|" + "---|" * len(head),
    ]
    rows = errors_by_row(results, metric=reference.metric)
    for row in sorted(rows, key=untrained.__contains__):
        runs = rows[row]
        published = reference.of_paper(row)
        if not (published or reference.all_rows):
            continue
        cells = [_cell([100 * run[c] for run in runs if c in run]) for c in table.columns]
        seeds = "untrained" if row in untrained else len(runs)
        lines.append(f"| {row} | {seeds} | " + " | ".join(cells) + " |")
        if published:
            values = [f"{value:.3f}" for value in published[1]]
            lines.append(f"| *{published[0]}, paper* | | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def errors_by_row(
    results: Iterable[Mapping[str, Any]], *, metric: str = "relative_l2"
) -> dict[str, list[dict[float, float]]]:
    """For each row, the errors by scale of all its seeds."""
    rows: dict[str, list[dict[float, float]]] = {}
    for result in results:
        rows.setdefault(result["row"], []).append(outcome.errors_by_scale(result, metric=metric))
    return rows


def _cell(values: list[float]) -> str:
    if not values:
        return "–"
    spread = (max(values) - min(values)) / 2
    return f"{statistics.mean(values):.2f}" + (f" ± {spread:.2f}" if len(values) > 1 else "")


def reduction(
    results: Iterable[Mapping[str, Any]], *, baseline: str, improved: str
) -> dict[float, float]:
    """By how many percent the mean error of one row is below that of another, by scale."""
    rows = errors_by_row(results)

    def mean(row: str, scale: float) -> float:
        return statistics.mean(run[scale] for run in rows[row])

    return {
        scale: 100 * (1 - mean(improved, scale) / mean(baseline, scale))
        for scale in rows[baseline][0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=sorted(PAPER))
    parser.add_argument("--preset", default="small")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep the results in the repository")
    arguments = parser.parse_args()
    place = pathlib.Path(arguments.experiment) / arguments.preset
    if arguments.write:
        keep(collect(arguments.runs / place), arguments.results / place)
        results = collect(arguments.results / place)
    else:
        # In a fresh clone, those that come with it.
        results = collect(arguments.runs / place) or collect(arguments.results / place)
    if not results:
        places = f"{arguments.runs / place} or {arguments.results / place}"
        parser.exit(1, f"there are no results below {places}\n")
    table = document(results, arguments.experiment)
    if arguments.write:
        (arguments.results / place / "table.md").write_text(table, encoding="utf-8")
    print(table)


def keep(results: Iterable[Mapping[str, Any]], directory: pathlib.Path) -> None:
    """Writes each result to a file of its own, named by row and seed."""
    for result in results:
        write(result, directory / naming.file_name(result["row"]) / f"seed-{result['seed']}.json")


def write(result: Mapping[str, Any], path: pathlib.Path) -> None:
    """Keeps a result; a campaign that is killed meanwhile leaves none that is torn."""
    files.write_text(path, json.dumps(result, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
