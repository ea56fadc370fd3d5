"""Trains on data sets of your own, without an experiment file:

    sino-jax train data/mine --config=small,model=fno --workdir=runs/mine
    sino-jax train data/a/train-4 data/b/train-8 --test data/a/test-4 --config=small,epochs=20

A directory of data sets, as `sino_jax.data.from_arrays` and ``sino-jax import`` make them, gives
its training sets, its validation sets, by which the best checkpoint is chosen
(``evaluation.every=100``), and its test sets, which are evaluated at the end. After an interruption
the same command resumes the run. A finished run is trained further from its weights, in another
directory and with a schedule of its own:
``--config=small,start_from=runs/mine --workdir=runs/longer``.

`sino_jax.train.recipe` chooses all sizes from the preset (tiny, small, large), `model`,
`consistency` and `seed`; any other field of `sino_jax.train.config.defaults` can be changed, as in
``--config=small,optimizer.learning_rate=1e-3,loss.sub_sizes=17+25``. ``--show`` prints the config
that results. ``--model=fno --preset=small --set epochs=20`` is the same in separate arguments.
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

import argparse
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from absl import logging

from sino_jax import checkpoint, data, models, train
from sino_jax.data.dataset import META
from sino_jax.train import config as configs
from sino_jax.train import logging as logs
from sino_jax.train import overrides, recipe
from sino_jax.train.loop import NonFiniteError
from sino_jax.train.workdir import InUseError

# Arguments of `recipe.recipe`, with their defaults here.
CHOICES = {"model": "fno", "preset": "small", "consistency": "sub", "seed": 0}


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
    parser.add_argument("--config", help="preset,field=value,...")
    parser.add_argument("--model", help=f"{', '.join(models.MODELS)}; fno by default")
    parser.add_argument("--preset", help=f"{', '.join(recipe.PRESETS)}; small by default")
    parser.add_argument("--consistency", help=f"{', '.join(recipe.CONSISTENCY)}; sub by default")
    parser.add_argument("--seed", type=int, help="0 by default")
    parser.add_argument("--workdir", type=pathlib.Path, help="runs/<equation>-<model>-<preset>")
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=VALUE", action="extend")
    parser.add_argument("--show", action="store_true", help="print the config and stop")
    arguments = parser.parse_args(argv)
    logging.set_verbosity(logging.WARNING)  # Orbax narrates every file at level INFO
    try:
        choices, changes = _choices(arguments)
        found = find_datasets(arguments.data)
        further = itertools.chain(*find_datasets(arguments.test).values())
        config = recipe.recipe(
            found.get("train", []),
            [*found.get("test", []), *further],
            val=found.get("val", []),
            equation=arguments.equation,
            **choices,
        )
        config = overrides.apply(config, changes)
        if config.get("steps"):
            config.pop("epochs", None)
        if arguments.show:
            sys.stdout.write(configs.to_json(config))
            return
        name = "{equation}-{model}-{preset}".format(equation=config["equation"], **choices)
        workdir = arguments.workdir or pathlib.Path("runs") / name
        config.setdefault("logging", {})["show_errors"] = False  # they go to stdout, below
        train.fit(config, workdir)
    except (ValueError, OSError, checkpoint.CheckpointError, InUseError, NonFiniteError) as error:
        sys.exit(f"error: {error}")
    _finish(workdir)


def _choices(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Options of `recipe.recipe`, and changes of its config, from either form of the arguments."""
    given = {name: getattr(arguments, name) for name in CHOICES}
    given = {name: value for name, value in given.items() if value is not None}
    changes = list(arguments.set)
    if arguments.config is not None:
        if given or changes:
            raise ValueError("--config replaces --model, --preset, --consistency, --seed and --set")
        given["preset"], *changes = arguments.config.split(",")
        for change in [change for change in changes if change.partition("=")[0] in CHOICES]:
            name, _, value = change.partition("=")
            if name in given:
                raise ValueError(f"{name} is given twice; give it once")
            given[name] = value
            changes.remove(change)
    if not str(given.get("seed", 0)).isdecimal():
        raise ValueError(f"seed must be a whole number, got {given['seed']!r}")
    given["seed"] = int(given.get("seed", 0))
    return {**CHOICES, **given}, changes


def _finish(workdir: pathlib.Path) -> None:
    meta = checkpoint.read_meta(workdir, checkpoint.newest(workdir))
    if meta.get("evaluation"):
        sys.stdout.write(f"{logs.error_table(meta['evaluation'])}\n")
    sys.stdout.write(f"operator: {workdir}  (sino_jax.operator.load, sino-jax predict)\n")


if __name__ == "__main__":
    runtime.prepare()
    main()
