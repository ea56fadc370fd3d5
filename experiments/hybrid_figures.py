"""Figure of `experiments.hybrid`."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import save, subplots


def residual_by_seconds(results: Sequence[Mapping[str, Any]], path: pathlib.Path) -> pathlib.Path:
    """The largest scale of each equation: what is compared with the tolerance, against seconds.

    The first problem, to the smallest tolerance; every iteration is given the same time.
    """
    largest = {result["equation"]: result for result in results}
    figure, axes = subplots(1, len(largest), size=(5.5 * len(largest), 5.2))
    for panel, result in zip(axes[0], largest.values(), strict=True):
        for row in result["rows"]:
            entry = list(row["tolerances"].values())[-1]
            history = np.asarray(entry["history"], float)
            history = history[np.isfinite(history)]
            times = np.linspace(0, entry["seconds"][0], len(history))
            # A run's label may list all its settings; the table has them.
            label = f"{row['start'].split(' (')[0]}, {row['preconditioner']}"
            panel.semilogy(times, history, marker=".", label=label)
        for (name, taken), style in zip(result["seconds"].items(), ("--", ":"), strict=False):
            panel.axvline(taken, color="black", linestyle=style, label=f"{name} solver")
        what = "guaranteed bound" if result["equation"] == "darcy" else "‖M r‖ / ‖u‖"
        nodes = f"{result['grid'][0]}² nodes"
        panel.set(xlabel="seconds on one core", ylabel=what)
        panel.set_title(f"{result['equation']}, scale {result['scale']:g}, {nodes}", fontsize=10)
        # Below the curves, which there may be many of.
        panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    return save(figure, path)
