"""Collects results into Markdown tables, the paper's value beside each of ours.

    python -m experiments.tables darcy                     # results in runs/, preset small
    python -m experiments.tables darcy --preset=paper --write

`--write` keeps the results in the repository: ``results/<experiment>/<preset>/`` gets the JSON file
of every run and ``table.md``.
"""

import argparse
import json
import pathlib
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from experiments import paper, runner

PAPER = {"darcy": paper.DARCY}


def collect(directory: pathlib.Path) -> list[dict[str, Any]]:
    """All results below a directory, by row and seed."""
    results = [
        json.loads(path.read_text()) for path in directory.rglob("*.json") if is_result(path)
    ]
    return sorted(results, key=lambda result: (result["row"], result["seed"]))


def is_result(path: pathlib.Path) -> bool:
    return path.name == runner.RESULT or path.name.startswith("seed-")


def markdown(results: Iterable[Mapping[str, Any]], reference: paper.Table) -> str:
    """One line for each row: mean ± spread (half the range) over seeds, in percent; paper below."""
    head = [
        f"{reference.parameter} {column:g}{' (trained)' if column in reference.trained else ''}"
        for column in reference.columns
    ]
    lines = [
        "| model | seeds | " + " | ".join(head) + " |",
        "|---|---|" + "---|" * len(head),
    ]
    for row, runs in errors_by_row(results).items():
        cells = [_cell([100 * run[c] for run in runs if c in run]) for c in reference.columns]
        lines.append(f"| {row} | {len(runs)} | " + " | ".join(cells) + " |")
        if row in reference.rows:
            values = [f"{value:.3f}" for value in reference.rows[row]]
            lines.append(f"| *{row}, paper* | | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def errors_by_row(results: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[float, float]]]:
    """For each row, the errors by scale of all its seeds."""
    rows: dict[str, list[dict[float, float]]] = {}
    for result in results:
        rows.setdefault(result["row"], []).append(runner.errors_by_scale(result))
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
        results = collect(arguments.runs / place)
    if not results:
        parser.exit(1, f"there are no results below {arguments.runs / place}\n")
    table = markdown(results, PAPER[arguments.experiment])
    if arguments.write:
        (arguments.results / place / "table.md").write_text(table)
    print(table)


def keep(results: Iterable[Mapping[str, Any]], directory: pathlib.Path) -> None:
    """Writes each result to a file of its own, named by row and seed."""
    for result in results:
        path = directory / result["row"].replace(" ", "-").lower() / f"seed-{result['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
