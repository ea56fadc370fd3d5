"""Figures of an experiment: errors against scale, training curves, predictions beside the truth.

    python -m experiments.figures darcy --preset=small

draws all of them from finished runs: ``predictions.png`` and ``training_curves.png`` into every
run's directory, ``error_against_scale.png`` and ``training_curves.png`` of all rows, first seeds
only for the latter, into ``runs/<experiment>/<preset>/``. With ``--runs=results`` it draws the
errors of the results in the repository.

Matplotlib is imported when a figure is drawn, so that training does not need it.
"""

import argparse
import importlib.util
import pathlib
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from experiments import outcome, tables
from sino_jax import channels, data, loss, operator, runtime, scale_range
from sino_jax.equations import Equation
from sino_jax.train import logging as logs

# Parts of the training loss and how their curves are drawn.
LOSS_PARTS = {"supervised": "-", "sub_domain": "--", "super_domain": ":"}
# Those of Okabe and Ito without yellow, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
# A legend of more rows stands beside the curves, not among them.
MOST_ROWS_WITHIN = 4


def error_against_scale(
    results: Iterable[Mapping[str, Any]],
    path: pathlib.Path,
    *,
    trained: Sequence[float],
    metric: str = "relative_l2",
) -> pathlib.Path:
    """One curve for each row, mean over seeds with the range as a band; training scales marked."""
    rows = tables.errors_by_row(results, metric=metric)
    many = len(rows) > MOST_ROWS_WITHIN
    figure, axes = subplots(1, 1, size=(8.5, 4.5) if many else (5.0, 3.5))
    axes = axes[0, 0]
    if many:
        axes.set_prop_cycle("color", figure_colours())
    for row, runs in rows.items():
        scales = sorted(runs[0])
        errors = 100 * np.array([[run[scale] for scale in scales] for run in runs])
        (line,) = axes.plot(scales, errors.mean(axis=0), marker="o", label=row)
        axes.fill_between(
            scales, errors.min(axis=0), errors.max(axis=0), alpha=0.2, color=line.get_color()
        )
    for scale in trained:
        axes.axvline(scale, color="gray", linestyle=":", label=f"trained at {scale:g}")
    words = tables.METRICS[metric].replace(", ", ",\n").replace(" on the", "\non the")
    axes.set(xscale="log", xlabel="scale", ylabel=f"{words} (%)")
    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
    axes.set_xticks(scales, [f"{scale:g}" for scale in scales])
    axes.minorticks_off()
    axes.legend(**({"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if many else {}))
    return save(figure, path)


def training_curves(workdirs: Mapping[str, pathlib.Path], path: pathlib.Path) -> pathlib.Path:
    """The parts of the loss against the step, from the metrics of runs; one colour for each run."""
    figure, axes = subplots(1, 1, size=(6.0, 4.0))
    axes = axes[0, 0]
    for number, (label, workdir) in enumerate(workdirs.items()):
        entries = logs.read(workdir, "train")
        if not entries:
            raise ValueError(f"{workdir} has no record of a training")
        for part, style in LOSS_PARTS.items():
            points = [(entry["step"], 100 * entry[part]) for entry in entries if part in entry]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    linestyle=style,
                    color=f"C{number}",
                    marker="o" if len(points) == 1 else None,
                    label=f"{label}, {part.replace('_', '-')}",
                )
    axes.set(yscale="log", xlabel="step", ylabel="part of the loss, relative L2")
    percent_ticks(axes)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    return save(figure, path)


def predictions(workdir: pathlib.Path, path: pathlib.Path, *, sample: int = 0) -> pathlib.Path:
    """What is given, truth, prediction and error of one sample of each of a run's test sets.

    Of complex fields the real part is drawn, of several channels the first, of space-time windows
    the last frame; of past frames the last.
    """
    trained = operator.load(workdir)
    datasets = test_data(trained)
    figure, axes = subplots(len(datasets), 4, size=(9.0, 2.2 * len(datasets)))
    for row, dataset in zip(axes, datasets, strict=True):
        solved = solve(trained, dataset, sample=sample)
        limits = {"vmin": solved.truth.min(), "vmax": solved.truth.max()}
        panels = [
            (*solved.given, {}),
            (solved.truth, "truth", limits),
            (solved.prediction, "prediction", limits),
            (solved.difference, f"error ({100 * solved.error:.1f} %)", signed(solved.difference)),
        ]
        draw_panels(figure, row, panels, dataset)
    return save(figure, path)


class Solved(NamedTuple):
    """One problem and its solution by an operator, as planes to be drawn.

    Attributes:
      given: what the operator is given, and its name.
      truth: the solution.
      prediction: the operator's.
      error: of the prediction, relative, in L2, of all frames and channels.
    """

    given: tuple[np.ndarray, str]
    truth: np.ndarray
    prediction: np.ndarray
    error: float

    @property
    def difference(self) -> np.ndarray:
        return self.prediction - self.truth


def test_data(trained: operator.Operator) -> list[data.Dataset]:
    """The test data of the run that an operator comes from, by scale."""
    paths = trained.meta["config"]["data"]["test"]
    return sorted(map(data.load, paths), key=lambda dataset: dataset.scale)


def solve(trained: operator.Operator, dataset: data.Dataset, *, sample: int) -> Solved:
    """A sample of a data set as an operator solves it."""
    instance = dataset.examples([sample])
    given = instance.solution if instance.boundary is None else instance.boundary
    # The report of the run says it.
    with warnings.catch_warnings(action="ignore", category=scale_range.ScaleWarning):
        prediction = trained.solve(instance.coefficient, given, instance.scale)
    real = (channels.to_channels(jnp.asarray(f)) for f in (prediction, instance.solution))
    error = float(loss.relative_l2(*real)[0])
    truth, guess = (_panel(np.asarray(f)[0], 0) for f in (instance.solution, prediction))
    return Solved(_given(trained.equation, instance.coefficient, given), truth, guess, error)


def signed(*differences: np.ndarray) -> dict[str, Any]:
    """White where a prediction is right, blue and red where it is too small and too large."""
    largest = max(np.abs(difference).max() for difference in differences)
    return {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}


def draw_panels(
    figure: Any,
    row: Sequence[Any],
    panels: Sequence[tuple[np.ndarray, str, Mapping[str, Any]]],
    dataset: data.Dataset,
) -> None:
    """Planes of one data set side by side, each with its title, options and colour bar."""
    horizontal, vertical = dataset.meta["grid"]["axes"][:2]
    row[0].set(xlabel=horizontal, ylabel=f"scale {dataset.scale:g}\n{vertical}")
    for panel, (values, title, options) in zip(row, panels, strict=True):
        image = panel.imshow(np.asarray(values).T, origin="lower", aspect="auto", **options)
        panel.set_box_aspect(1)
        panel.set_title(title, fontsize=9)
        panel.set_xticks([])
        panel.set_yticks([])
        figure.colorbar(image, ax=panel, shrink=0.8)


def _given(
    equation: Equation, coefficient: np.ndarray | None, field: np.ndarray
) -> tuple[np.ndarray, str]:
    """The panel of what a model is given for one sample, and its title."""
    if coefficient is None:  # the trace on the first side, repeated over the domain
        return _panel(equation.inputs(None, jnp.asarray(field[0])), 0), "initial condition"
    if equation.coefficient_kind == "scalar":
        return _panel(coefficient[0], 0), "coefficient"
    by_channel = not any(axis.anchored for axis in equation.axes)
    return _panel(coefficient[0], -1 if by_channel else 0), "last given frame"


def _panel(sample: np.ndarray, channel: int) -> np.ndarray:
    """A plane of a sample ``[x, y, channel]``, or of the last frame of ``[x, y, t, channel]``."""
    plane = np.real(np.asarray(sample)[..., channel])
    return plane[..., -1] if plane.ndim == 3 else plane


def require() -> None:
    """Ends a program that will draw if it cannot: before its work, and not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        sys.exit("error: the figures need matplotlib: pip install 'sino-jax[viz]'")


def subplots(rows: int, columns: int, *, size: tuple[float, float]):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=COLOURS)
    return pyplot.subplots(rows, columns, figsize=size, squeeze=False, constrained_layout=True)


def percent_ticks(axes) -> None:
    """Few plain numbers on a logarithmic axis of percent."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_ylim()
    if high < 10 * low:
        ticks = MaxNLocator(5).tick_values(low, high)
    else:
        ticks = [step * 10.0**power for power in range(-8, 5) for step in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g} %" for tick in ticks])
    axes.set_yticks([], minor=True)


def figure_colours() -> tuple:
    """Twenty colours, for more curves than the usual seven."""
    import matplotlib

    return matplotlib.colormaps["tab20"].colors


def save(figure, path: pathlib.Path) -> pathlib.Path:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    return path


def draw_all(place: pathlib.Path, *, metric: str) -> list[pathlib.Path]:
    """All figures of the results below a directory.

    Args:
      place: ``runs/<experiment>/<preset>``, or the same below ``results``, where there are errors
        to draw, but no runs with metrics and weights.
      metric: whose error is drawn against the scale.
    """
    results = tables.collect(place)
    if not results:
        raise FileNotFoundError(f"there are no results below {place}")
    trained = sorted({scale for result in results for scale in result["trained_scales"]})
    errors = place / "error_against_scale.png"
    paths = [error_against_scale(results, errors, trained=trained, metric=metric)]
    runs = {path.parent: tables.read(path)["row"] for path in sorted(place.rglob(outcome.RESULT))}
    runs = {workdir: row for workdir, row in runs.items() if (workdir / logs.FILE).exists()}
    first_seeds: dict[str, pathlib.Path] = {}
    for workdir, row in runs.items():
        first_seeds.setdefault(row, workdir)
        paths += [
            training_curves({row: workdir}, workdir / "training_curves.png"),
            predictions(workdir, workdir / "predictions.png"),
        ]
    if first_seeds:
        paths.append(training_curves(first_seeds, place / "training_curves.png"))
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=sorted(tables.PAPER))
    parser.add_argument("--preset", default="small")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    arguments = parser.parse_args()
    place = arguments.runs / arguments.experiment / arguments.preset
    try:
        paths = draw_all(place, metric=tables.PAPER[arguments.experiment][0].metric)
    except FileNotFoundError as error:
        parser.exit(1, f"{error}\n")
    print("\n".join(map(str, paths)))


if __name__ == "__main__":
    runtime.use_compilation_cache()
    main()
