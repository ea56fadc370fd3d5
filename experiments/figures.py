"""Figures of an experiment: error against scale, and predictions beside the truth.

Matplotlib is imported when a figure is drawn, so that training does not need it.
"""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments import tables
from sino_jax import boundary, data, loss, operator


def error_against_scale(
    results: Iterable[Mapping[str, Any]], path: pathlib.Path, *, trained: Sequence[float]
) -> pathlib.Path:
    """One curve for each row, mean over seeds with the range as a band; training scales marked."""
    figure, axes = _subplots(1, 1, size=(5.0, 3.5))
    axes = axes[0, 0]
    for row, runs in tables.errors_by_row(results).items():
        scales = sorted(runs[0])
        errors = 100 * np.array([[run[scale] for scale in scales] for run in runs])
        (line,) = axes.plot(scales, errors.mean(axis=0), marker="o", label=row)
        axes.fill_between(
            scales, errors.min(axis=0), errors.max(axis=0), alpha=0.2, color=line.get_color()
        )
    for scale in trained:
        axes.axvline(scale, color="gray", linestyle=":", label=f"trained at {scale:g}")
    axes.set(xscale="log", xlabel="scale", ylabel="relative L2 error (%)", ylim=(0, None))
    axes.set_xticks(scales, [f"{scale:g}" for scale in scales])
    axes.minorticks_off()
    axes.legend()
    return _save(figure, path)


def predictions(
    workdir: pathlib.Path,
    directories: Sequence[pathlib.Path],
    path: pathlib.Path,
    *,
    sample: int = 0,
) -> pathlib.Path:
    """Coefficient, truth, prediction and error of one sample of each data set, one row each."""
    trained = operator.load(workdir)
    figure, axes = _subplots(len(directories), 4, size=(9.0, 2.2 * len(directories)))
    for row, directory in zip(axes, directories, strict=True):
        dataset = data.load(directory)
        instance = dataset.examples([sample])
        given = instance.solution if instance.boundary is None else instance.boundary
        prediction = trained.solve(instance.coefficient, given, instance.scale)
        error = float(
            loss.relative_l2(
                boundary.to_channels(prediction),
                boundary.to_channels(jnp.asarray(instance.solution)),
            )[0]
        )
        truth, guess = (
            np.real(np.asarray(field)[0, ..., 0]) for field in (instance.solution, prediction)
        )
        limits = {"vmin": truth.min(), "vmax": truth.max()}
        panels = [
            (instance.coefficient[0, ..., 0], "coefficient", {}),
            (truth, "truth", limits),
            (guess, "prediction", limits),
            (guess - truth, f"error ({100 * error:.1f} %)", {}),
        ]
        row[0].set_ylabel(f"scale {dataset.scale:g}")
        for panel, (values, title, options) in zip(row, panels, strict=True):
            image = panel.imshow(np.asarray(values).T, origin="lower", **options)
            panel.set_title(title, fontsize=9)
            panel.set_xticks([])
            panel.set_yticks([])
            figure.colorbar(image, ax=panel, shrink=0.8)
    return _save(figure, path)


def _subplots(rows: int, columns: int, *, size: tuple[float, float]):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, squeeze=False, constrained_layout=True)


def _save(figure, path: pathlib.Path) -> pathlib.Path:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    return path
