"""One figure of all equations: what scale-consistency does to the errors, at every scale.

    python -m experiments.overview                  results/overview-small.png
    python -m experiments.overview --preset=long

Drawn from the results in the repository: the model without the loss, with it, and with it on a base
solution, means over seeds with their range as a band, beside a method that needs no training.
"""

import argparse
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments import figures, paper, tables

# Colours that can be told apart by all (Okabe and Ito), and by their markers.
STYLES = {
    "without scale-consistency": {"color": "#000000", "marker": "o"},
    "with scale-consistency": {"color": "#0072B2", "marker": "s"},
    "… and super-domains": {"color": "#CC79A7", "marker": "D"},
    "… on a base solution": {"color": "#E69F00", "marker": "^"},
    "no training": {"color": "#666666", "linestyle": "--", "linewidth": 1.0},
}
# Percent: below it a method is exact by construction, as the solution at the trained Re is there.
EXACT = 0.1


class Panel(NamedTuple):
    """One equation: its title, and for each style the row of its table; empty for none."""

    title: str
    rows: tuple[str, ...]


PANELS = {
    "darcy": Panel(
        "Darcy, FNO",
        ("FNO", "FNO+sub", "", "FNO on harmonic base+sub", "Harmonic solution"),
    ),
    "helmholtz": Panel(
        "Helmholtz, SINO-U",
        (
            "SINO-U",
            "SINO-U+sub",
            "",
            "SINO-U on helmholtz base+sub",
            "Solution for the mean coefficient",
        ),
    ),
    "burgers": Panel(
        "Burgers, FNO without and SINO with",
        (
            "FNO",
            "SINO (tensor kernel)+sub+stretch (scale_embedding=octaves)",
            "SINO (tensor kernel)+scale",
            "SINO (tensor kernel) on heat base+sub",
            "Solution at Re = 400",
        ),
    ),
    "navier_stokes": Panel(
        "Navier-Stokes, one step, FNO (base: SINO-U)",
        ("FNO", "FNO+sub", "", "SINO-U on last frame base+sub", "Persistence"),
    ),
    "navier_stokes_spacetime": Panel(
        "Navier-Stokes in space-time, SINO",
        (
            "SINO (tensor kernel)",
            "SINO (tensor kernel)+sub from 32",
            "",
            "SINO (tensor kernel) on extrapolation base+sub",
            "Extrapolation of order 1",
        ),
    ),
}


def draw_panel(
    axes: Any,
    results: Sequence[Mapping[str, Any]],
    panel: Panel,
    table: paper.Table,
    *,
    metric: str,
) -> None:
    """Errors in percent against the scale; trained scales are marked below."""
    rows = tables.errors_by_row(results, metric=metric)
    for (label, style), row in zip(STYLES.items(), panel.rows, strict=True):
        if not (runs := rows.get(row)):
            continue
        scales = sorted(runs[0])
        errors = 100 * np.array([[run[scale] for scale in scales] for run in runs])
        errors[errors < EXACT] = np.nan
        axes.plot(scales, errors.mean(axis=0), label=label, markersize=5, **style)
        band = {"alpha": 0.2, "linewidth": 0, "color": style["color"]}
        axes.fill_between(scales, errors.min(axis=0), errors.max(axis=0), **band)
    for scale in table.trained:
        axes.axvline(scale, color="#009E73", linestyle=":", linewidth=1.5)
    axes.set(xscale="log", yscale="log", title=panel.title, xlabel=table.parameter)
    figures.percent_ticks(axes)
    shown = sorted({scale for runs in rows.values() for run in runs for scale in run})
    axes.set_xticks(shown, [f"{scale:g}" for scale in shown], fontsize=8)
    axes.set_xticks([], minor=True)
    axes.grid(visible=True, alpha=0.25)


def draw(results: pathlib.Path, preset: str, path: pathlib.Path) -> pathlib.Path:
    """The figure of all equations that have results."""
    found = {name: tables.collect(results / name / preset) for name in PANELS}
    found = {name: results_of for name, results_of in found.items() if results_of}
    if not found:
        raise ValueError(f"there are no results of the preset {preset} below {results}")
    rows = (len(found) + 1) // 2
    figure, axes = figures.subplots(rows, 2, size=(9.0, 3.6 * rows))
    for place, (name, results_of) in zip(axes.flat, found.items(), strict=False):
        reference = tables.PAPER[name][0]
        draw_panel(place, results_of, PANELS[name], reference.table, metric=reference.metric)
    handles = {
        label: handle
        for place in axes.flat
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    ordered = [label for label in STYLES if label in handles]
    legend = [handles[label] for label in ordered], ordered
    if len(found) % 2:  # the last place is free
        axes[-1, -1].axis("off")
        axes[-1, -1].legend(*legend, loc="center")
    else:
        figure.legend(*legend, loc="outside lower center", ncols=3)
    figure.supylabel("relative L2 error")
    return figures.save(figure, path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="small")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    arguments = parser.parse_args(argv)
    figures.require()
    path = arguments.results / f"overview-{arguments.preset}.png"
    try:
        print(draw(arguments.results, arguments.preset, path))
    except ValueError as error:
        parser.exit(1, f"error: {error}\n")


if __name__ == "__main__":
    main()
