"""`fit`: from a config and a directory to trained weights.

A run is a pure function of its config: batches depend on (seed, step), random numbers on (key,
step), and a checkpoint holds everything else. A run that is interrupted at any moment and started
again resumes from the last checkpoint, and ends with the same weights.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator

import jax
from ml_collections import FrozenConfigDict

from sino_jax import runtime, superdomain
from sino_jax.equations import Equation
from sino_jax.train import config as configs
from sino_jax.train import interruption, parallel
from sino_jax.train import logging as logs
from sino_jax.train import task as tasks
from sino_jax.train import workdir as workdirs
from sino_jax.train.loop import Loop
from sino_jax.train.plan import Plan
from sino_jax.train.step import TrainState
from sino_jax.train.store import Store


def fit(
    config: configs.ConfigLike,
    workdir: str | os.PathLike,
    *,
    equation: Equation | None = None,
    loss: tasks.Loss | None = None,
    super_prior: superdomain.Prior | None = None,
) -> TrainState:
    """Trains the model of `config` and returns the final state; resumes what `workdir` holds.

    Args:
      config: see `sino_jax.train.config.defaults` for all fields.
      workdir: directory for the config, metrics and checkpoints of this run. A directory of another
        config is refused, and so is one in which another process trains.
      equation: one that is not in `sino_jax.equations`; the config records its name, which
        its data sets must have, too. `sino_jax.operator.load` then needs it as well.
      loss: replaces `sino_jax.loss.training_loss`, see `sino_jax.train.task.build`. The directory
        cannot tell losses apart that were passed this way: record the choice in
        ``config.experiment``.
      super_prior: distribution of inputs of a larger scale, see `sino_jax.superdomain`; to be
        recorded likewise.

    Raises:
      ValueError: the config, the data or the directory do not fit together.
      sino_jax.train.workdir.InUseError: another process trains in `workdir`.
      sino_jax.train.loop.NonFiniteError: NaN or infinity, unless the config says to halve the rate.
      sino_jax.checkpoint.CheckpointError: no checkpoint could be written or read.
      sino_jax.train.interruption.Interrupted: SIGINT or SIGTERM; the state is saved. Uncaught,
        it ends the process with exit code 75.
    """
    if equation is not None:
        config = {"equation": equation.name, **configs.to_dict(config)}
        if config["equation"] != equation.name:
            raise ValueError(
                f"config.equation must be {equation.name!r}, the name of the equation given to "
                f"fit, got {config['equation']!r}"
            )
    config = configs.complete(config)
    with _opened(workdir, config) as place:
        task = tasks.build(config, equation=equation, loss=loss, super_prior=super_prior)
        return _train(task, config, place)


def run(
    task: tasks.Task,
    config: configs.ConfigLike,
    workdir: str | os.PathLike,
) -> TrainState:
    """`fit` for a given task; of the config, the fields about the training itself are read."""
    config = configs.complete(config)
    with _opened(workdir, config) as place:
        return _train(task, config, place)


@contextlib.contextmanager
def _opened(directory: str | os.PathLike, config: FrozenConfigDict) -> Iterator[pathlib.Path]:
    """Connects the processes of a run; holds its directory, if that may be used."""
    runtime.reserve_standard_streams()
    parallel.initialize(config.distributed)
    parallel.data_mesh()  # names a platform without devices, before a directory is made
    place = pathlib.Path(directory)
    with workdirs.lock(place):
        workdirs.check(place, config)
        yield place


def _train(task: tasks.Task, config: FrozenConfigDict, place: pathlib.Path) -> TrainState:
    plan = Plan.of(task, config)
    if not (place / workdirs.CONFIG_FILE).exists():
        plan.rehearse()
    workdirs.claim(place, config)
    chief = jax.process_index() == 0
    sinks = _sinks(config, place) if chief else ()
    with (
        interruption.listen() as request,
        logs.Logger(
            place,
            total_steps=plan.total_steps,
            active=chief,
            sinks=sinks,
            show_errors=config.logging.show_errors,
        ) as logger,
        Store(place, keep=config.checkpoint.keep, report=logger.message) as store,
    ):
        return Loop(plan, logger, store, request).finish()


def _sinks(config: FrozenConfigDict, place: pathlib.Path) -> tuple[logs.Sink, ...]:
    sinks = []
    if config.logging.tensorboard:
        sinks.append(logs.TensorBoard(place))
    if project := config.logging.wandb_project:
        # Whatever may differ between starts of one run must not give it another identifier.
        lasting = configs.without(config, configs.RUNTIME_FIELDS)
        sinks.append(logs.WeightsAndBiases(place, project, lasting))
    return tuple(sinks)
