"""Trains on data sets of your own, without an experiment file:

    sino-jax train data/mine --model=fno --preset=small --workdir=runs/mine
    sino-jax train data/a/train-4 data/b/train-8 --test data/a/test-4 --set epochs=20

A directory of data sets, as `sino_jax.data.from_arrays` and ``sino-jax import`` make them, gives
its training sets, its validation sets, by which the best checkpoint is chosen (``--set
evaluation.every=100``), and its test sets, which are evaluated at the end. The same command goes on
after an interruption. A finished run is trained further from its weights, in another directory and
with a schedule of its own: ``--set start_from=runs/mine --workdir=runs/longer``.

`sino_jax.train.recipe` chooses all sizes; ``--show`` prints the config that results, and ``--set
section.field=value`` changes it (see `sino_jax.train.config.defaults`).
"""

import argparse
import itertools
import pathlib
import sys
from collections.abc import Mapping, Sequence

from absl import logging

from sino_jax import checkpoint, data, models, runtime, train
from sino_jax.data.dataset import META
from sino_jax.train import config as configs
from sino_jax.train import overrides, recipe
from sino_jax.train.loop import NonFiniteError
from sino_jax.train.workdir import InUseError


def find_datasets(places: Sequence[pathlib.Path]) -> dict[str, list[data.Dataset]]:
    """The data sets at or directly below `places`, by split."""
    found: dict[str, list[data.Dataset]] = {}
    for place in places:
        inside = [place] if (place / META).is_file() else sorted(place.glob(f"*/{META}"))
        if not inside:
            raise ValueError(f"{place} is no data set, and no directory of data sets")
        for path in inside:
            dataset = data.load(path if path == place else path.parent)
            found.setdefault(dataset.split, []).append(dataset)
    return found


def report(results: Mapping[str, Mapping[str, float]]) -> str:
    """Errors in percent as a table: a line a data set, a column a metric."""
    metrics = list(next(iter(results.values())))
    width = max(map(len, results))
    head = "data set".ljust(width) + "".join(f"  {metric}" for metric in metrics)
    lines = [
        name.ljust(width)
        + "".join(f"  {100 * values[metric]:{len(metric)}.3f}" for metric in metrics)
        for name, values in results.items()
    ]
    return "\n".join([f"{head}   (percent)", *lines])


def main(argv: Sequence[str] | None = None) -> None:
    """The command line; errors are one line on stderr and exit code 1."""
    parser = argparse.ArgumentParser(
        prog="sino-jax train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=pathlib.Path, nargs="+", help="data sets, or directories")
    parser.add_argument("--test", type=pathlib.Path, nargs="+", default=[], help="further ones")
    parser.add_argument("--equation", help="refuse data of another equation")
    parser.add_argument("--model", default="fno", help=", ".join(models.MODELS))
    parser.add_argument("--preset", default="small", help=", ".join(recipe.PRESETS))
    parser.add_argument("--consistency", default="sub", help=", ".join(recipe.CONSISTENCY))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workdir", type=pathlib.Path, help="runs/<equation>-<model>-<preset>")
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=VALUE", action="extend")
    parser.add_argument("--show", action="store_true", help="print the config and stop")
    arguments = parser.parse_args(argv)
    logging.set_verbosity(logging.WARNING)  # Orbax narrates every file at level INFO
    try:
        found = find_datasets(arguments.data)
        further = itertools.chain(*find_datasets(arguments.test).values())
        config = recipe.recipe(
            found.get("train", []),
            [*found.get("test", []), *further],
            val=found.get("val", []),
            equation=arguments.equation,
            model=arguments.model,
            preset=arguments.preset,
            consistency=arguments.consistency,
            seed=arguments.seed,
        )
        config = overrides.apply(config, arguments.set)
        if config.get("steps"):
            config.pop("epochs", None)
        if arguments.show:
            sys.stdout.write(configs.to_json(config))
            return
        name = f"{config['equation']}-{arguments.model}-{arguments.preset}"
        workdir = arguments.workdir or pathlib.Path("runs") / name
        train.fit(config, workdir)
    except (ValueError, OSError, checkpoint.CheckpointError, InUseError, NonFiniteError) as error:
        sys.exit(f"error: {error}")
    _finish(workdir)


def _finish(workdir: pathlib.Path) -> None:
    meta = checkpoint.read_meta(workdir, checkpoint.newest(workdir))
    if meta.get("evaluation"):
        sys.stdout.write(f"{report(meta['evaluation'])}\n")
    sys.stdout.write(f"operator: {workdir}  (sino_jax.operator.load, sino-jax predict)\n")


if __name__ == "__main__":
    runtime.prepare()
    main()
