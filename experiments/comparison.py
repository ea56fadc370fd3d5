"""What several runs make of the same problems: predictions and errors side by side, and training.

    python -m experiments.comparison --run RUN RUN+SUB RUN-ON-A-BASE+SUB --scales 2 4 16 --write

draws for one test problem of each scale what is given, the solution and the error of every run, on
one range of colours, and in a second figure the parts of the runs' losses over their training. With
--write they go to ``results/<experiment>/<preset>/``, else to the first run's directory. All runs
are of one experiment and its data.
"""

import pathlib
import textwrap
from collections.abc import Sequence

from experiments import figures, naming, trained_run
from experiments.trained_run import TrainedRun
from sino_jax import runtime

PREDICTIONS, CURVES = "comparison.png", "training_curves.png"


def draw_predictions(
    runs: Sequence[TrainedRun], path: pathlib.Path, *, scales: Sequence[float], sample: int
) -> pathlib.Path:
    """Rows are scales; columns are what is given, the truth, and the error of each run."""
    found = {dataset.scale: dataset for dataset in figures.test_data(runs[0].operator)}
    if missing := sorted(set(scales) - set(found)):
        raise ValueError(f"--scales must be among {sorted(found)}, got {missing}")
    chosen = [found[scale] for scale in scales or found]
    columns = 2 + len(runs)
    size = (2.4 * columns, 2.4 * len(chosen))
    figure, axes = figures.subplots(len(chosen), columns, size=size)
    for row, dataset in zip(axes, chosen, strict=True):
        solved = [figures.solve(run.operator, dataset, sample=sample) for run in runs]
        limits = figures.signed(*(one.difference for one in solved))
        panels = [(*solved[0].given, {}), (solved[0].truth, "solution", {})]
        panels += [
            (one.difference, f"{_lines(run.row)}\n{100 * one.error:.1f} %", limits)
            for run, one in zip(runs, solved, strict=True)
        ]
        figures.draw_panels(figure, row, panels, dataset)
    return figures.save(figure, path)


def _lines(label: str) -> str:
    """A label in lines as wide as a panel; it may also be cut before its parts."""
    return textwrap.fill(label.replace("+", " +"), 24)


def main(argv: Sequence[str] | None = None) -> None:
    parser = trained_run.argument_parser(__doc__)
    parser.add_argument("--scales", type=float, nargs="+", default=[], help="all by default")
    parser.add_argument("--sample", type=int, default=0, help="number of the test problem")
    arguments = parser.parse_args(argv)
    figures.require()
    runs = [trained_run.open_run(workdir) for workdir in arguments.run]
    kinds = {(naming.experiment_name(run.config), run.config.data) for run in runs}
    if len(kinds) > 1:
        raise ValueError(f"--run must be runs of one experiment and its data, got {sorted(kinds)}")
    first = runs[0]
    place = first.workdir
    if arguments.write:
        place = arguments.results / naming.experiment_name(first.config) / first.config.preset
    scales, sample = arguments.scales, arguments.sample
    paths = [
        draw_predictions(runs, place / PREDICTIONS, scales=scales, sample=sample),
        figures.training_curves({run.row: run.workdir for run in runs}, place / CURVES),
    ]
    print("\n".join(map(str, paths)))


if __name__ == "__main__":
    runtime.use_compilation_cache()
    with trained_run.errors_in_one_line():
        main()
