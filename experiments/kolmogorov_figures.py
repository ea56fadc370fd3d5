"""Figures of `experiments.kolmogorov_report`: errors by cost and resolution, spectra, rollouts.

A row here is a `kolmogorov_report.Row`.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments import models
from experiments.figures import percent_ticks, save, subplots

# Field of a row's cost, its unit in those of the field, and the words for it.
COSTS = {
    "parameters": (1, "parameters"),
    "step_seconds": (1e-3, "training step (ms)"),
    "bytes": (2**20, "training memory (MiB)"),
}
COLOURS = {model: f"C{number}" for number, model in enumerate(models.LABELS)}


def draw_all(
    rows: Sequence[Any], lines: Mapping[str, Sequence[Any]], place: pathlib.Path, flow: str
) -> list[pathlib.Path]:
    """All figures of one flow that there are rows for."""
    comparable = [row for row in rows if row.comparable]
    paths = []
    if comparable:
        paths += [
            error_against_cost(comparable, place / f"{flow}_cost.png"),
            spectra(most_accurate(comparable), place / f"{flow}_spectra.png"),
            rollouts(most_accurate(comparable), place / f"{flow}_rollouts.png"),
        ]
    if lines:
        paths.append(error_against_resolution(lines, place / f"{flow}_resolution.png"))
    return paths


def most_accurate(rows: Sequence[Any]) -> list[Any]:
    """Of each model the row with the lowest error."""
    chosen = {}
    for row in sorted(rows, key=lambda row: -row.error):
        chosen[row.model] = row
    return [chosen[model] for model in COLOURS if model in chosen]


def error_against_cost(rows: Sequence[Any], path: pathlib.Path) -> pathlib.Path:
    """One line a model, one point a width, the range over seeds as a bar; all axes logarithmic."""
    figure, axes = subplots(1, len(COSTS), size=(12.5, 4.0))
    for panel, (field, (unit, words)) in zip(axes[0], COSTS.items(), strict=True):
        for model, colour in COLOURS.items():
            own = sorted((row for row in rows if row.model == model), key=lambda r: r.cost(field))
            if own:
                errors = np.array([(row.error, min(row.errors), max(row.errors)) for row in own])
                bars = np.abs(errors[:, 1:] - errors[:, :1]).T
                costs = [row.cost(field) / unit for row in own]
                style = {"marker": "o", "color": colour, "label": models.LABELS[model]}
                panel.errorbar(costs, errors[:, 0], yerr=bars, capsize=2, **style)
        panel.set(xscale="log", yscale="log", xlabel=words, ylabel="one-step relative L2 error")
        percent_ticks(panel)
        panel.grid(visible=True, which="both", alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    return save(figure, path)


def error_against_resolution(
    lines: Mapping[str, Sequence[Any]], path: pathlib.Path
) -> pathlib.Path:
    """Dashed lines keep their modes fixed, the others have as many as the grid holds."""
    figure, axes = subplots(1, 1, size=(6.5, 4.5))
    panel = axes[0, 0]
    for name, line in lines.items():
        style = "-" if all(row.full_band for row in line) or line[0].model == "unet" else "--"
        sizes, errors = zip(*((row.seen, row.error) for row in line), strict=True)
        colour = COLOURS[line[0].model]
        panel.plot(sizes, errors, linestyle=style, marker="o", color=colour, label=name)
    ticks = sorted({row.seen for line in lines.values() for row in line})
    panel.set(xscale="log", yscale="log", xlabel="training resolution (points a side)")
    panel.set_ylabel("one-step relative L2 error")
    percent_ticks(panel)
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.set_xticks([], minor=True)
    panel.grid(visible=True, which="both", alpha=0.3)
    panel.legend(fontsize=8)
    return save(figure, path)


def spectra(rows: Sequence[Any], path: pathlib.Path) -> pathlib.Path:
    """Energy by wave number, mean over seeds: after one step, and at the end of the rollouts."""
    figure, axes = subplots(1, 2, size=(10.5, 4.0))
    parts = (("one step", "truth"), ("rollout, end", "truth, end"))
    for panel, (part, truth) in zip(axes[0], parts, strict=True):
        energy = np.array(rows[0].measures[0]["spectra"][truth])
        panel.loglog(range(1, len(energy)), energy[1:], color="black", linewidth=2, label="truth")
        for row in rows:
            mean = np.mean([measures["spectra"][part] for measures in row.measures], axis=0)
            colour = COLOURS[row.model]
            panel.loglog(range(1, len(mean)), mean[1:], color=colour, label=row.label)
        # A rollout that blows up would hide the others.
        panel.set_ylim(energy[1:].min() / 100, energy.max() * 100)
        panel.set(xlabel="wave number", ylabel="energy", title=part)
        panel.grid(visible=True, which="both", alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    return save(figure, path)


def rollouts(rows: Sequence[Any], path: pathlib.Path) -> pathlib.Path:
    """Error and correlation against time, mean over seeds and starts; divergence times marked."""
    figure, axes = subplots(1, 2, size=(10.5, 4.0))
    for row in rows:
        colour, measures = COLOURS[row.model], row.measures
        steps = len(measures[0]["errors"])
        times = measures[0]["horizon"] / steps * np.arange(1, steps + 1)
        errors, correlations = (
            np.mean([m[name] for m in measures], axis=0) for name in ("errors", "correlations")
        )
        axes[0, 0].semilogy(times, 100 * errors, color=colour, label=row.label)
        axes[0, 1].plot(times, correlations, color=colour)
        axes[0, 1].axvline(row.divergence_time(), color=colour, linestyle=":")
    axes[0, 0].set(xlabel="time", ylabel="relative L2 error (%)")
    axes[0, 1].set(xlabel="time", ylabel="correlation with the truth", ylim=(-0.1, 1.05))
    axes[0, 0].legend(fontsize=8)
    return save(figure, path)
