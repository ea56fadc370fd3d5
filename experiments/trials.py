"""What was tried and what it gave: rows that are scored on validation data, beside one another.

    python -m experiments.campaign experiments/campaigns/trials.txt
    python -m experiments.trials darcy                     # results/darcy/small-val

A trial is a row with ``score=val``; what it changes stands in its label. Choices are made by these
numbers and never by those of the test data.
"""

import argparse
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import outcome, tables


def markdown(results: Sequence[Mapping[str, Any]], *, metric: str) -> str:
    """One line for each row: mean errors over seeds in percent by scale, and its core-minutes."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        rows.setdefault(result["row"], []).append(result)
    scales = sorted({s for result in results for s in outcome.errors_by_scale(result)})
    trained = {scale for result in results for scale in result["trained_scales"]}
    head = [f"{scale:g}{' (trained)' if scale in trained else ''}" for scale in scales]
    lines = [
        "| model | seeds | " + " | ".join(head) + " | core-minutes |",
        "|---|---|" + "---|" * (len(head) + 1),
    ]
    for row, runs in rows.items():
        errors = [outcome.errors_by_scale(run, metric=metric) for run in runs]
        means = [100 * statistics.mean(run[scale] for run in errors) for scale in scales]
        minutes = statistics.mean(run["core_minutes"] for run in runs)
        cells = " | ".join(f"{mean:.2f}" for mean in means)
        lines.append(f"| {row} | {len(runs)} | {cells} | {minutes:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=sorted(tables.PAPER))
    parser.add_argument("--preset", default="small")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    arguments = parser.parse_args()
    place = arguments.results / arguments.experiment / f"{arguments.preset}-val"
    results = tables.collect(place)
    if not results:
        parser.exit(1, f"there are no results below {place}\n")
    metric = tables.PAPER[arguments.experiment][0].metric
    print(f"{tables.METRICS[metric]} in percent, validation data\n")
    print(markdown(results, metric=metric))


if __name__ == "__main__":
    main()
