"""What experiments on trained models share: command line, a run's operator, name, checkpoints."""

import argparse
import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from experiments import configs, naming
from sino_jax import checkpoint, operator
from sino_jax.operator import Operator, portable
from solvers.configs import argument


class TrainedRun(NamedTuple):
    """A run of ``python -m experiments.<name>``.

    Attributes:
      workdir: its directory.
      operator: of its newest checkpoint.
      config: of the experiment, see `experiments.configs`.
      row: its label, as in the tables.
    """

    workdir: pathlib.Path
    operator: Operator
    config: ConfigDict
    row: str

    @property
    def name(self) -> str:
        """Row and seed as a path below a directory of results."""
        return f"{naming.file_name(self.row)}/seed-{self.config.seed}"


def argument_parser(description: str) -> argparse.ArgumentParser:
    """The command line that experiments on trained models have in common."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--config", help=f"{argument.HELP}; the run's own preset by default")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep the results in the repository")
    return parser


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """What is wrong with an argument ends a program with one line."""
    try:
        yield
    except (ValueError, OSError, checkpoint.CheckpointError, portable.PortableError) as error:
        sys.exit(f"error: {error}")


def open_run(workdir: pathlib.Path, *, equation: str | None = None) -> TrainedRun:
    """The run in a directory; a ValueError if it is of another equation or of no experiment."""
    trained = operator.load(workdir, equation=equation)
    fields = trained.meta["config"]["experiment"]
    if "model" not in fields or "data" not in fields:
        name = trained.equation.name
        raise ValueError(f"{workdir} was not made by python -m experiments.{name}")
    # Runs of older versions lack the fields that came later.
    config = ConfigDict({**configs.COMMON, **fields})
    return TrainedRun(pathlib.Path(workdir), trained, config, naming.label(config))


def load_config(value: str, name: str) -> ConfigDict:
    """The config that ``--config=value`` asks for in the experiment `name`."""
    try:
        return argument.load(value, pathlib.Path(configs.__file__).parent, own=name)
    except ValueError as error:
        sys.exit(f"error: {error}")


def checkpoints(workdir: pathlib.Path) -> list[int]:
    """Steps of all checkpoints that a run has kept."""
    directory = pathlib.Path(workdir) / checkpoint.DIRECTORY
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdecimal())


def preset_of(run: TrainedRun, presets: Mapping[str, Any]) -> str:
    """The run's own preset if an experiment on trained models has it, too."""
    return run.config.preset if run.config.preset in presets else "small"


def write_json(path: pathlib.Path, result: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
