"""`fit`: from a config and a directory to trained weights.

A run is a pure function of its config: batches depend on (seed, step), random numbers on (key,
step), and a checkpoint holds all of the rest. Interrupted at any moment and started again, it goes
on from the last checkpoint and ends with the same weights.
"""

import os
import pathlib

import jax
from ml_collections import FrozenConfigDict

from sino_jax import superdomain
from sino_jax.train import config as configs
from sino_jax.train import interruption, parallel
from sino_jax.train import task as tasks
from sino_jax.train.loop import Run
from sino_jax.train.step import TrainState

CONFIG_FILE = "config.json"


def fit(
    config: configs.ConfigLike,
    workdir: str | os.PathLike,
    *,
    loss: tasks.Loss | None = None,
    super_prior: superdomain.Prior | None = None,
) -> TrainState:
    """Trains the model of `config` and returns the final state; resumes what `workdir` holds.

    Args:
      config: see `sino_jax.train.config.defaults` for all fields.
      workdir: directory for the config, metrics and checkpoints of this run. A directory of another
        config is refused.
      loss: replaces `sino_jax.loss.training_loss`, see `sino_jax.train.task.build`. The directory
        cannot tell losses apart that were passed this way: record the choice in
        ``config.experiment``.
      super_prior: distribution of inputs of a larger scale, see `sino_jax.superdomain`; to be
        recorded likewise.

    Raises:
      ValueError: the config, the data or the directory do not fit together.
      sino_jax.train.loop.NonFiniteError: NaN or infinity, unless the config says to halve the rate.
      sino_jax.checkpoint.CheckpointError: no checkpoint could be written or read.
      sino_jax.train.interruption.Interrupted: SIGINT or SIGTERM; the state is saved. Uncaught,
        it ends the process with exit code 75.
    """
    config = configs.complete(config)
    return run(tasks.build(config, loss=loss, super_prior=super_prior), config, workdir)


def run(
    task: tasks.Task,
    config: configs.ConfigLike,
    workdir: str | os.PathLike,
) -> TrainState:
    """`fit` for a given task; of the config, the fields about the training itself are read."""
    config = configs.complete(config)
    parallel.initialize(config.distributed)
    claim(workdir, config)
    with interruption.listen() as request:
        return Run(task, config, pathlib.Path(workdir), request).finish()


def claim(workdir: str | os.PathLike, config: FrozenConfigDict) -> None:
    """Writes the config into a new directory; refuses the directory of a different config."""
    path = pathlib.Path(workdir) / CONFIG_FILE
    if path.exists():
        # A run of an older version had the defaults of fields that came later.
        there = configs.complete(configs.from_json(path.read_text()))
        changed = configs.differences(there, config, ignore=configs.RUNTIME_SECTIONS)
        if changed:
            listed = "\n  ".join(changed)
            raise ValueError(
                f"{workdir} belongs to a run of a different config (there -> here):\n  {listed}\n"
                "Choose another workdir, or delete this one."
            )
    elif jax.process_index() == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(configs.to_json(config))
        temporary.replace(path)
