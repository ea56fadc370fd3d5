"""How long will a campaign take? Times a few training steps of each row, without data.

    python -m experiments.estimate experiments/campaigns/kolmogorov.txt

compiles the step of every row (seeds are counted, not compiled again), runs it on constant arrays
and multiplies by the number of steps. Times are those of cores, so that other work on the machine
counts little; what is compiled, evaluated and generated comes on top. Rows without
scale-consistency are estimated exactly; crops are taken at their largest.
"""

import argparse
import importlib
import math
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from experiments import memory, naming, queue, training
from sino_jax import runtime
from solvers import generate, recipes

# Steps that are timed after one that is not.
TIMED = 3


class Estimate(NamedTuple):
    """One row, all of its seeds.

    Attributes:
      row: its label.
      steps: of one training.
      seconds: of a core for a step.
      seeds: trainings.
    """

    row: str
    steps: int
    seconds: float
    seeds: int

    @property
    def hours(self) -> float:
        return self.steps * self.seconds * self.seeds / 3600


def training_steps(experiment: training.Experiment, config: ConfigDict) -> int:
    """Steps of a whole training."""
    per_epoch = 0
    for name, settings in generate.data_sets(experiment.data_config(config.data)).items():
        if not name.startswith("train"):
            continue
        examples = settings["samples"]
        if window := recipes.get(settings).window:
            stride = config.stride or window["stride"]
            free = settings["frames"] - window["history"] - window["horizon"]
            examples *= free // stride + 1
        per_epoch += math.ceil(examples / config.batch_size)
    return config.epochs * per_epoch


def step_seconds(experiment: training.Experiment, config: ConfigDict) -> float:
    """Seconds of a core for one training step: the fastest of a few."""
    traced = memory.trace(experiment, config)
    (state, *others), _ = jax.tree.map(_constant, traced.args_info)
    step = traced.lower().compile()
    times = []
    for _ in range(1 + TIMED):
        # The state's memory is reused for the next one, so that each step needs its own.
        begin = time.process_time()
        state, metrics = step(state, *others)
        jax.block_until_ready((state, metrics))
        times.append(time.process_time() - begin)
    return min(times[1:])


def _constant(info: Any) -> jax.Array:
    if jnp.issubdtype(info.dtype, jax.dtypes.prng_key):
        return jax.random.key(0)
    return jnp.full(info.shape, 0 if jnp.issubdtype(info.dtype, jnp.integer) else 0.1, info.dtype)


def estimates(rows: Sequence[queue.Row]) -> list[Estimate]:
    """All rows that differ in more than their seed."""
    groups: dict[str, list[queue.Row]] = {}
    for row in rows:
        name = f"{row.experiment} {row.config.preset}: {naming.label(row.config)}"
        groups.setdefault(name, []).append(row)
    result = []
    for name, same in groups.items():
        config = same[0].config
        experiment = importlib.import_module(f"experiments.{same[0].experiment}").EXPERIMENT
        steps, seconds = training_steps(experiment, config), step_seconds(experiment, config)
        result.append(Estimate(name, steps, seconds, len(same)))
        print(f"{name}: {steps} steps of {1000 * seconds:.0f} ms, {len(same)} seeds", flush=True)
        jax.clear_caches()
    return result


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args(argv)
    places = argparse.Namespace(runs=pathlib.Path("runs"), results=pathlib.Path("results"))
    try:
        rows = queue.read(arguments.file, places)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    found = estimates(rows)
    print(f"training steps of {arguments.file}: {sum(e.hours for e in found):.2f} core-hours")


if __name__ == "__main__":
    runtime.prepare()
    main()
