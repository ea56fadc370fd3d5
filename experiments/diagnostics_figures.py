"""Figures of the diagnostics: both sides of the theorem's bound, estimated against true errors."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import save, subplots

RIGHT = {
    "near_constant": "error on D_δ",
    "boundary": "boundary",
    "self_consistency": "self-consistency",
}


def terms_over_training(results: Sequence[Mapping[str, Any]], path: pathlib.Path) -> pathlib.Path:
    """One panel for each family of media and run: the left side, the right side and its terms."""
    families = list(results[0]["terms"])
    figure, axes = subplots(
        len(families), len(results), size=(4.2 * len(results), 3.2 * len(families))
    )
    for row, family in zip(axes, families, strict=True):
        largest = 0.0
        for panel, result in zip(row, results, strict=True):
            curve = result["terms"][family]
            steps = [entry["step"] for entry in curve]
            terms = {
                name: np.array([entry["supremum"][name] for entry in curve])
                for name in (*RIGHT, "out_of_distribution")
            }
            total = sum(terms[name] for name in RIGHT)
            panel.plot(
                steps, terms["out_of_distribution"], "k-o", markersize=3, label="left: error on D_M"
            )
            panel.plot(steps, total, "C3-s", markersize=3, label="right: sum (without C)")
            for name, label in RIGHT.items():
                panel.plot(steps, terms[name], "--", linewidth=1, label=label)
            panel.set_title(f"{result['row']}, {family} media", fontsize=9)
            panel.set(xlabel="step", yscale="log")
            largest = max(largest, *total, *terms["out_of_distribution"])
        smallest = min(panel.get_ylim()[0] for panel in row)
        for panel in row:
            panel.set_ylim(smallest, 1.3 * largest)
        row[0].set_ylabel("supremum over samples")
    axes[0, -1].legend(fontsize=7, framealpha=0.5)
    return save(figure, path)


def calibration(results: Sequence[Mapping[str, Any]], path: pathlib.Path) -> pathlib.Path:
    """True error against the indicator, one panel for each run, one colour for each scale."""
    from matplotlib import ticker

    figure, axes = subplots(1, len(results), size=(4.4 * len(results), 4.0))
    for panel, result in zip(axes[0], results, strict=True):
        estimates = result["estimates"]
        everything = []
        for scale, entry in estimates["scales"].items():
            indicator, error = (100 * np.array(entry[name]) for name in ("indicator", "error"))
            correlation = entry["summary"]["rank_correlation"]
            label = f"scale {scale} (rank correlation {correlation:.2f})"
            panel.scatter(indicator, error, s=8, alpha=0.7, label=label)
            everything.append(indicator)
        ends = np.array([np.min(np.concatenate(everything)), np.max(np.concatenate(everything))])
        factors = estimates["calibration"]
        lines = {"factor": "calibrated", "upper_factor": "calibrated, 95 %"}
        for (name, label), style in zip(lines.items(), ("-", "--"), strict=True):
            label = f"{label}: {factors[name]:.3g}"
            panel.plot(ends, factors[name] * ends, "k", linestyle=style, linewidth=1, label=label)
        panel.set(
            xscale="log",
            yscale="log",
            xlabel="indicator from the residual (%)",
            ylabel="true relative L2 error (%)",
        )
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(ticker.NullFormatter())
        panel.set_title(f"{result['row']}, seed {result['seed']}", fontsize=9)
        panel.legend(fontsize=7)
    return save(figure, path)
