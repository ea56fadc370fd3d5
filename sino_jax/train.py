"""Training: one `fit(config, workdir)` that a laptop and a cluster run unchanged.

A run is a pure function of its config: batches depend on (seed, step), random numbers on (key,
step), and a checkpoint holds all of the rest. Interrupted at any moment and started again, it goes
on from the last checkpoint and ends with the same weights.
"""

import os
import pathlib
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict, FrozenConfigDict

from sino_jax import batches, evaluate, interruption, parallel, provenance, tasks
from sino_jax import config as configs
from sino_jax import logging as logs
from sino_jax import optimizer as optimizers
from sino_jax.checkpoint import CheckpointError, Store
from sino_jax.interruption import Interrupted
from sino_jax.prefetch import prefetch
from sino_jax.step import NONFINITE, STOP, Control, TrainState, init_state, make_step

CONFIG_FILE = "config.json"
# Steps that may be under way on the device while the host prepares the next ones.
STEPS_IN_FLIGHT = 2
# A run that still diverges with this fraction of its learning rate has another problem.
SMALLEST_RATE = 2**-10


class NonFiniteError(FloatingPointError):
    """The loss or its gradient was NaN or infinite.

    Attributes:
      step: number of the step, counted from 0.
    """

    def __init__(self, step: int, message: str):
        super().__init__(message)
        self.step = step


def fit(
    config: Mapping | ConfigDict | FrozenConfigDict,
    workdir: str | os.PathLike,
    *,
    loss: tasks.Loss | None = None,
) -> TrainState:
    """Trains the model of `config` and returns the final state; resumes what `workdir` holds.

    Args:
      config: see `sino_jax.config.defaults` for all fields.
      workdir: directory for the config, metrics and checkpoints of this run. A directory of another
        config is refused.
      loss: replaces `sino_jax.loss.training_loss`, see `sino_jax.tasks.build`. Weights trained with
        another loss cannot be told apart by the config: record the choice in
        ``config.experiment``.

    Raises:
      ValueError: the config, the data or the directory do not fit together.
      NonFiniteError: NaN or infinity, unless the config says to go on with half the rate.
      CheckpointError: no checkpoint could be written or read.
      Interrupted: SIGINT or SIGTERM; the state is saved. Uncaught, the exit code is 75.
    """
    config = configs.complete(config)
    parallel.initialize(config.distributed)
    claim(workdir, config)
    return run(tasks.build(config, loss=loss), config, workdir)


def claim(workdir: str | os.PathLike, config: FrozenConfigDict) -> None:
    """Writes the config into a new directory; refuses the directory of a different config."""
    path = pathlib.Path(workdir) / CONFIG_FILE
    if path.exists():
        there = configs.from_json(path.read_text())
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


def run(task: tasks.Task, config: FrozenConfigDict, workdir: str | os.PathLike) -> TrainState:
    """Trains a task in a claimed directory: `fit` with the task given."""
    with interruption.listen() as request:
        return _Run(task, config, pathlib.Path(workdir), request).finish()


class _Run:
    """One run in progress: what its steps share."""

    def __init__(
        self,
        task: tasks.Task,
        config: FrozenConfigDict,
        workdir: pathlib.Path,
        request: interruption.Request,
    ):
        self._task, self._config, self._workdir, self._request = task, config, workdir, request
        self._sampling = {
            "seed": config.seed,
            "batch_size": config.data.batch_size,
            "keep_remainder": True,
        }
        self._total = config.steps or config.epochs * batches.steps_per_epoch(
            task.train, config.data.batch_size, keep_remainder=True
        )
        self._mesh = parallel.data_mesh()
        self._optimizer = optimizers.build(config.optimizer, self._total)
        self._step_fn = make_step(
            task.loss_fn,
            self._optimizer,
            self._mesh,
            total_steps=self._total,
            accumulate=config.accumulate,
            ema_decay=config.ema_decay,
        )
        self._stop = {flag: self._per_device(flag) for flag in (False, True)}
        self._rate = 1.0
        self._metrics: list[dict[str, jax.Array]] = []

    def finish(self) -> TrainState:
        """Trains from where the directory's checkpoints are to the end."""
        config = self._config
        chief = jax.process_index() == 0
        sinks = _sinks(config, self._workdir) if chief else ()
        with (
            logs.Logger(
                self._workdir, total_steps=self._total, active=chief, sinks=sinks
            ) as self._logger,
            Store(
                self._workdir, keep=config.checkpoint.keep, report=self._logger.message
            ) as self._store,
        ):
            state = self._resumed_or_new()
            if int(state.step) == self._total and logs.read(self._workdir, "summary"):
                self._logger.repeat_summary()
                return state
            while int(state.step) < self._total:
                try:
                    state = self._advance(state)
                except NonFiniteError as error:
                    state = self._rescued(error)
            self._store.wait()
            self._summarise(state)
            return state

    def _resumed_or_new(self) -> TrainState:
        key = jax.random.key(self._config.seed)
        new = init_state(
            self._task.init(jax.random.fold_in(key, 0)),
            self._optimizer,
            jax.random.fold_in(key, 1),
            averaged=self._config.ema_decay > 0,
        )
        restored = self._store.restore(new)
        if restored is None:
            state = parallel.replicate(new, self._mesh)
            self._logger.rewind(0)
            self._save(state)
            return state
        _check_data(restored.meta["datasets"], self._task.meta["datasets"])
        step = int(restored.state.step)
        self._rate = float(restored.state.rate)
        self._logger.rewind(step)
        if step < self._total:
            self._logger.message(f"resuming at step {step} of {self._total}")
        return parallel.replicate(restored.state, self._mesh)

    def _advance(self, state: TrainState) -> TrainState:
        """Steps to the end of the run. The host looks at a step only when later ones are queued."""
        first = int(state.step)
        in_flight: deque[tuple[int, dict[str, jax.Array]]] = deque()
        self._metrics = []
        stream = prefetch(self._load, range(first, self._total))
        try:
            for number, (batch, numbers) in stream:
                control = Control(numbers, self._stop[bool(self._request)])
                state, metrics = self._step_fn(state, batch, control)
                in_flight.append((number, metrics))
                due = self._due(number + 1)
                stop = False
                while len(in_flight) > (0 if due else STEPS_IN_FLIGHT):
                    stop |= self._inspect(*in_flight.popleft())
                if due:
                    self._milestone(state, due)
                if stop:
                    while in_flight:
                        self._inspect(*in_flight.popleft())
                    self._leave(state, saved="save" in due)
        finally:
            stream.close()
        return state

    def _load(self, step: int) -> tuple[Any, jax.Array]:
        """The batch of a step with its weights, and the step's number, on the devices."""
        chosen, ids = batches.draw(self._task.train, step, **self._sampling)
        parts = self._mesh.size * self._config.accumulate
        padded = parallel.own_part(parallel.pad(ids, self._config.data.batch_size, parts))
        batch = (self._task.train[chosen].examples(padded.ids), padded.weight)
        return parallel.split(batch, self._mesh), self._per_device(step)

    def _inspect(self, number: int, metrics: dict[str, jax.Array]) -> bool:
        """Raises if step `number` failed; returns whether a process wants to stop."""
        status = int(metrics["status"])
        if status & NONFINITE:
            chosen, ids = batches.draw(self._task.train, number, **self._sampling)
            self._store.wait()
            raise NonFiniteError(
                number,
                f"the loss or its gradient is not finite at step {number} (counted from 0), on "
                f"samples {ids.tolist()} of {self._task.train[chosen].path}; the last good "
                f"checkpoint is of step {self._store.steps()[-1]} in {self._workdir}",
            )
        self._metrics.append(metrics)
        return bool(status & STOP)

    def _due(self, done: int) -> set[str]:
        """What has to happen after `done` steps: any of log, evaluate, save."""
        config, last = self._config, done == self._total
        periods = {
            "log": config.logging.every,
            "evaluate": config.evaluation.every,
            "save": config.checkpoint.every,
        }
        due = {name for name, every in periods.items() if last or (every and done % every == 0)}
        # An evaluated state is saved, or the best one might be lost.
        return due | {"save"} if "evaluate" in due else due

    def _milestone(self, state: TrainState, due: set[str]) -> None:
        step = int(state.step)
        if "log" in due:
            self._logger.train(step, _mean(self._metrics))
            self._metrics = []
        results = self._evaluate(state) if "evaluate" in due else {}
        if "save" in due:
            self._save(state, results)

    def _evaluate(self, state: TrainState) -> tasks.Results:
        results = self._task.evaluate(state.evaluated, self._mesh)
        if results:
            self._logger.evaluation(int(state.step), _flat(results))
        return results

    def _save(self, state: TrainState, results: tasks.Results | None = None) -> None:
        meta = {
            "config": configs.to_dict(self._config),
            **self._task.meta,
            **provenance.describe(),
            "evaluation": results or {},
        }
        self._store.save(state, meta, error=evaluate.mean_error(results) if results else None)

    def _leave(self, state: TrainState, *, saved: bool) -> None:
        if not saved:
            self._save(state)
        self._store.wait()
        step = int(state.step)
        self._logger.message(f"asked to stop: saved at step {step} of {self._total}")
        raise Interrupted(step)

    def _rescued(self, error: NonFiniteError) -> TrainState:
        """The last good state with half the learning rate; raises `error` if that is not wanted."""
        self._rate /= 2
        if self._config.on_nonfinite == "stop" or self._rate < SMALLEST_RATE:
            raise error
        state = self._resumed_or_new()
        raise NotImplementedError

    def _summarise(self, state: TrainState) -> None:
        step = int(state.step)
        evaluations = logs.read(self._workdir, "evaluation")
        raise NotImplementedError

    def _per_device(self, value: int) -> jax.Array:
        local = self._mesh.size // jax.process_count()
        return parallel.split(np.full(local, value, np.int32), self._mesh)
