"""Figures of the domain decomposition: patches and error fields, errors by iteration."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from experiments import paper
from experiments.figures import save, subplots
from sino_jax.loss import relative_l2
from sino_jax.partition import Patches
from sino_jax.types import Instance


def error_fields(
    instance: Instance,
    estimates: Sequence[jax.Array],
    layout: Patches,
    path: pathlib.Path,
    *,
    title: str,
) -> pathlib.Path:
    """Medium with the patches, solution, and the error of one problem after each iteration.

    Of complex fields the real part is drawn.
    """
    columns = max(2, -(-(len(estimates) + 2) // 2))
    figure, axes = subplots(2, columns, size=(2.6 * columns, 5.2))
    panels = axes.flatten()
    truth = np.real(instance.solution)[0, ..., 0]
    errors = [np.real(field)[0, ..., 0] - truth for field in estimates]
    largest = max(float(np.abs(error).max()) for error in errors)
    # Pale, so that the edges of the patches can be seen on it.
    medium = np.asarray(instance.coefficient)[0, ..., 0].T
    panels[0].imshow(medium, origin="lower", cmap="Greys", vmin=0, vmax=4 * medium.max())
    starts = list(itertools.product(*layout.starts))
    for start in starts:
        panels[0].add_patch(_rectangle(start, layout.size, edgecolor="C0", fill=False))
    middle = starts[len(starts) // 2 - 1]
    panels[0].add_patch(_rectangle(middle, layout.size, facecolor="C1", alpha=0.4))
    size = " x ".join(map(str, layout.size))
    panels[0].set_title(f"medium, patches of {size}", fontsize=9)
    image = panels[1].imshow(truth.T, origin="lower")
    panels[1].set_title("solution", fontsize=9)
    figure.colorbar(image, ax=panels[1], shrink=0.8)
    for number, (panel, error, field) in enumerate(
        zip(panels[2:], errors, estimates, strict=False)
    ):
        image = panel.imshow(error.T, origin="lower", cmap="RdBu_r", vmin=-largest, vmax=largest)
        relative = 100 * float(relative_l2(field, instance.solution)[0])
        panel.set_title(f"error at iteration {number} ({relative:.1f} %)", fontsize=9)
    figure.colorbar(image, ax=panels[len(estimates) + 1], shrink=0.8)
    for panel in panels:
        panel.set_xticks([])
        panel.set_yticks([])
    for panel in panels[len(estimates) + 2 :]:
        panel.set_axis_off()
    figure.suptitle(title)
    return save(figure, path)


def error_by_iteration(result: Mapping[str, Any], path: pathlib.Path) -> pathlib.Path:
    """Left: variants and the paper's curve. Right: the error that each overlap ends with."""
    figure, axes = subplots(1, 2, size=(9.0, 3.6))
    curves, sweep = axes[0]
    for name, entry in result["variants"].items():
        if not name.startswith("overlap"):
            # A start from zeros is off by 100 %, which would flatten everything else.
            first = int(entry["start"] == "zeros")
            errors = 100 * np.asarray(entry["errors"])[first:]
            curves.plot(range(first, first + len(errors)), errors, marker="o", label=name)
    if result["equation"] == "darcy":
        theirs = {"color": "black", "linestyle": ":", "marker": ".", "label": "paper"}
        curves.plot(paper.DECOMPOSITION.columns, paper.DECOMPOSITION.rows["error"], **theirs)
    overlaps = [entry for name, entry in result["variants"].items() if name.startswith("overlap")]
    start = 100 * overlaps[0]["errors"][0]
    # What grows without bounds leaves the panel.
    top = min(curves.get_ylim()[1], 3 * start)
    curves.set(xlabel="iteration", ylabel="relative L2 error (%)", ylim=(0, top))
    curves.legend(fontsize=8)
    shares = [100 * entry["overlap"] / entry["patch_points"] for entry in overlaps]
    for number in sorted({1, len(overlaps[0]["errors"]) - 1}):
        errors = [100 * entry["errors"][number] for entry in overlaps]
        sweep.plot(shares, errors, marker="o", label=f"iteration {number}")
    sweep.axhline(start, color="gray", linestyle=":", label="global prediction")
    sweep.set(xlabel="overlap (% of the patch)", ylabel="relative L2 error (%)", ylim=(0, None))
    sweep.legend(fontsize=8)
    figure.suptitle(f"{result['row']}, scale {result['scale']:g}, {result['samples']} problems")
    return save(figure, path)


def _rectangle(start: tuple[int, ...], size: tuple[int, ...], **style):
    from matplotlib.patches import Rectangle

    return Rectangle(start, size[0] - 1, size[1] - 1, **style)
