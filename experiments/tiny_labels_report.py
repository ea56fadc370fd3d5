"""Table and figure of `experiments.tiny_labels`, the base alone beside the trained rows.

    python -m experiments.tiny_labels_report --preset=small            # from runs/
    python -m experiments.tiny_labels_report --preset=small --write    # to results/, too

``--write`` copies the results of finished rows to ``results/tiny_labels/<preset>/`` and makes
``table.md`` and ``error_against_scale.png`` there from all that are kept.
"""

import argparse
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import baselines, classical, figures, naming, outcome, tables, tiny_labels
from experiments.configs import tiny_labels as configs
from sino_jax import data, equations, runtime
from solvers import generate

BASE = "Harmonic solution"


def base_alone(preset: str, data_root: pathlib.Path) -> dict[str, Any]:
    """The base solution on the test data, as a result."""
    config, equation = configs.get_config(preset), equations.get("darcy")
    data_config = tiny_labels.EXPERIMENT.data_config(config.data)
    names = [f"test-{scale:g}" for scale in data_config.test_scales]
    paths = generate.generate_all(data_config, data_root, only=names, log=print)
    row = baselines.Row(BASE, {}, {})
    for dataset in map(data.load, paths.values()):
        row.metrics[dataset.scale], row.seconds[dataset.scale] = baselines.evaluate_on_inputs(
            classical.base_solution(equation, "harmonic"),
            equation,
            dataset,
            rollout_frames=1,
            samples=len(dataset),
        )
    result = baselines.result(row, config, trained=data_config.train_scales, samples=0)
    return {**result, "experiment": naming.experiment_name(config)}


def markdown(results: Sequence[Mapping[str, Any]]) -> str:
    """Errors in percent by scale, mean over seeds, and what the judge knows."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        rows.setdefault(result["row"], []).append(result)
    scales = sorted(outcome.errors_by_scale(results[0]))
    head = ["model", "labels of scale", "seeds", *(f"{scale:g}" for scale in scales)]
    head += ["patches of solutions", "Schwarz", "core-minutes"]
    lines = [
        "Relative L2 error in percent at every scale, test data. *Patches of solutions*: error on",
        "parts of true solutions that have the size of the labelled problems, relative to the",
        "variation there. *Schwarz*: error of the iteration on such patches, at its end.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row, runs in rows.items():
        errors = [outcome.errors_by_scale(run) for run in runs]
        cells = [f"{100 * statistics.mean(run[scale] for run in errors):.2f}" for scale in scales]
        trained = not runs[0].get("untrained")
        labels = ", ".join(f"{scale:g}" for scale in runs[0]["trained_scales"])
        cells = [row, labels if trained else "–", str(len(runs)) if trained else "–", *cells]
        cells += [_measured(runs, name) for name in ("patches", "schwarz")]
        minutes = statistics.mean(run.get("core_minutes", 0) for run in runs)
        lines.append("| " + " | ".join([*cells, f"{minutes:.1f}" if trained else "–"]) + " |")
    return "\n".join(lines) + "\n"


def _measured(runs: Sequence[Mapping[str, Any]], name: str) -> str:
    """Means over seeds, as ``2: 4.1, 4: 9.8``."""
    found = [run["measures"][name] for run in runs if "measures" in run]
    scales = sorted(found[0], key=float) if found else []
    if not scales:
        return "–"
    means = (100 * statistics.mean(entry[scale] for entry in found) for scale in scales)
    return ", ".join(f"{scale}: {mean:.1f}" for scale, mean in zip(scales, means, strict=True))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="small")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep the results in the repository")
    arguments = parser.parse_args(argv)
    figures.require()
    place = pathlib.Path("tiny_labels") / arguments.preset
    results = [base_alone(arguments.preset, arguments.data)]
    results += tables.collect(arguments.runs / place)
    if arguments.write:
        tables.keep(results, arguments.results / place)
        results = tables.collect(arguments.results / place)
    table = markdown(results)
    out = (arguments.results if arguments.write else arguments.runs) / place
    out.mkdir(parents=True, exist_ok=True)
    (out / "table.md").write_text(table, encoding="utf-8")
    trained = sorted({scale for result in results for scale in result["trained_scales"]})
    drawn = figures.error_against_scale(results, out / "error_against_scale.png", trained=trained)
    print(f"{table}\nfigure: {drawn}")


if __name__ == "__main__":
    runtime.prepare()
    main()
