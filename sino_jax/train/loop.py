"""The loop of a run: feeds steps, watches them, logs, evaluates, saves, and survives failures."""

import functools
import pathlib
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from ml_collections import FrozenConfigDict

from sino_jax.data import batches
from sino_jax.data.prefetch import prefetch
from sino_jax.train import config as configs
from sino_jax.train import evaluate, interruption, parallel, provenance
from sino_jax.train import logging as logs
from sino_jax.train import optimizer as optimizers
from sino_jax.train import task as tasks
from sino_jax.train.step import NONFINITE, STOP, Control, Step, TrainState, init_state, make_step
from sino_jax.train.store import Store

# Steps that may be under way on the device while the host prepares the next ones.
STEPS_IN_FLIGHT = 2
# A run that still diverges with this fraction of its learning rate has another problem.
SMALLEST_RATE = 2**-10


class NonFiniteError(FloatingPointError):
    """The loss or its gradient was NaN or infinite; the message names the samples.

    Attributes:
      step: number of the step, counted from 0.
    """

    def __init__(self, step: int, message: str):
        super().__init__(message)
        self.step = step


class Run:
    """One run in progress; see `sino_jax.train`.

    Args:
      task: what is learnt.
      config: a completed config.
      workdir: the run's directory.
      request: whether a signal asked to stop.
    """

    def __init__(
        self,
        task: tasks.Task,
        config: FrozenConfigDict,
        workdir: pathlib.Path,
        request: interruption.Request,
    ):
        self._task, self._config, self._workdir, self._request = task, config, workdir, request
        self._order = tasks.batch_order(config)
        self._total = config.steps or config.epochs * batches.steps_per_epoch(
            task.train, config.data.batch_size, keep_remainder=True
        )
        self._mesh = parallel.data_mesh()
        self._batch_size = config.data.batch_size
        self._parts = self._mesh.size * config.accumulate
        self._periods = {
            "log": config.logging.every,
            "evaluate": config.evaluation.every,
            "save": config.checkpoint.every,
        }
        self._optimizer = optimizers.build(config.optimizer, self._total)

        @functools.cache
        def step_fn(loss_fn):
            return make_step(
                loss_fn,
                self._optimizer,
                self._mesh,
                total_steps=self._total,
                accumulate=config.accumulate,
                ema_decay=config.ema_decay,
            )

        self._step_fn = step_fn
        flags = {flag: self._per_device(flag) for flag in (False, True)}
        self._stop = parallel.split(flags, self._mesh)
        self._metrics: list[dict[str, np.ndarray]] = []
        self._results: tasks.Results = {}  # of the evaluation at the present step, if there was one
        self._provenance = provenance.describe()
        self._rate = 1.0

    def finish(self) -> TrainState:
        """Trains from where the directory's checkpoints are to the end."""
        chief = jax.process_index() == 0
        self._workdir.mkdir(parents=True, exist_ok=True)
        sinks = _sinks(self._config, self._workdir) if chief else ()
        logger = logs.Logger(self._workdir, total_steps=self._total, active=chief, sinks=sinks)
        store = Store(self._workdir, keep=self._config.checkpoint.keep, report=logger.message)
        with logger as self._logger, store as self._store:
            start = time.monotonic()
            state = self._resumed() or self._begun()
            while int(state.step) < self._total:
                try:
                    state = self._advance(state)
                except NonFiniteError as error:
                    state = self._rescued(error)
            self._store.wait()
            self._summarise(seconds=time.monotonic() - start)
            return state

    def _new_state(self) -> TrainState:
        key = jax.random.key(self._config.seed)
        params = self._task.init(jax.random.fold_in(key, 0))
        averaged = self._config.ema_decay > 0
        return init_state(params, self._optimizer, jax.random.fold_in(key, 1), averaged=averaged)

    def _begun(self) -> TrainState:
        state = parallel.replicate(self._new_state(), self._mesh)
        self._logger.rewind(0)
        self._save(state)
        return state

    def _resumed(self) -> TrainState | None:
        """The newest good state, None if there is none."""
        restored = self._store.restore(jax.eval_shape(self._new_state))
        if restored is None:
            return None
        _check_data(restored.meta["datasets"], self._task.meta["datasets"])
        self._results = restored.meta["evaluation"]
        self._rate = float(restored.state.rate)
        step = int(restored.state.step)
        self._logger.rewind(step)
        if step < self._total:
            self._logger.message(f"resuming at step {step} of {self._total}")
        return parallel.replicate(restored.state, self._mesh)

    def _advance(self, state: TrainState) -> TrainState:
        """Steps to the end of the run. The host looks at a step only when later ones are queued."""
        in_flight: deque[tuple[int, dict[str, jax.Array]]] = deque()
        self._metrics = []
        stream = prefetch(self._prepare, range(int(state.step), self._total))
        try:
            for number, (step, batch, numbers) in stream:
                control = Control(numbers, self._stop[bool(self._request)])
                state, metrics = step(state, batch, control)
                # Freeing arrays releases Python's lock. Nobody waits for it here; the stream's
                # thread, once woken for another batch, would take it and keep it for long.
                del batch, numbers, control
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

    def _prepare(self, number: int) -> tuple[Step, Any, jax.Array]:
        """Function, batch (with its weights) and number of a step, as the loop needs them."""
        chosen, ids = batches.draw(self._task.train, number, **self._order)
        padded = parallel.own_part(parallel.pad(ids, self._batch_size, self._parts))
        batch = (self._task.train[chosen].examples(padded.ids), padded.weight)
        placed = parallel.split((batch, self._per_device(number)), self._mesh)
        return self._step_fn(self._task.loss_at(number, self._total)), *placed

    def _inspect(self, number: int, metrics: dict[str, jax.Array]) -> bool:
        """Raises if step `number` failed; returns whether a process wants to stop."""
        # Unlike `jax.device_get` or `int`, this is quick.
        values = {name: np.asarray(value) for name, value in metrics.items()}
        status = int(values.pop("status"))
        if status & NONFINITE:
            chosen, ids = batches.draw(self._task.train, number, **self._order)
            self._store.wait()
            raise NonFiniteError(
                number,
                f"the loss or its gradient is not finite at step {number} (counted from 0), on "
                f"samples {ids.tolist()} of {self._task.train[chosen].path}; the last good "
                f"checkpoint is of step {self._store.steps()[-1]} in {self._workdir}",
            )
        self._metrics.append(values)
        return bool(status & STOP)

    def _due(self, done: int) -> set[str]:
        """What has to happen after `done` steps: any of log, evaluate, save."""
        last = done == self._total
        due = {n for n, every in self._periods.items() if last or (every and done % every == 0)}
        # An evaluated state is saved, or the best one might be lost.
        return due | {"save"} if "evaluate" in due else due

    def _milestone(self, state: TrainState, due: set[str]) -> None:
        if "log" in due:
            self._logger.train(int(state.step), _mean(self._metrics))
            self._metrics = []
        self._results = self._evaluate(state) if "evaluate" in due else {}
        if "save" in due:
            self._save(state)

    def _evaluate(self, state: TrainState) -> tasks.Results:
        results = self._task.evaluate(state.evaluated, self._mesh)
        if results:
            self._logger.evaluation(int(state.step), _flat(results))
        return results

    def _save(self, state: TrainState) -> None:
        meta = {
            "config": configs.to_dict(self._config),
            **self._task.meta,
            **self._provenance,
            "evaluation": self._results,
        }
        error = evaluate.mean_error(self._results) if self._results else None
        self._store.save(state, meta, error=error)

    def _leave(self, state: TrainState, *, saved: bool) -> None:
        if not saved:
            self._results = {}
            self._save(state)
        self._store.wait()
        step = int(state.step)
        self._logger.message(f"asked to stop: saved at step {step} of {self._total}")
        raise interruption.Interrupted(step)

    def _rescued(self, error: NonFiniteError) -> TrainState:
        """The last good state with half the learning rate; raises `error` if that is not wanted."""
        # Not the rate of the checkpoint, which may be halved for the second time.
        rate = self._rate / 2
        if self._config.on_nonfinite == "stop" or rate < SMALLEST_RATE:
            raise error
        self._logger.message(f"{error}; going back to it with {rate:g} of the learning rate")
        state = self._resumed()
        self._rate = rate
        return state._replace(rate=parallel.replicate(np.float32(rate), self._mesh))

    def _summarise(self, *, seconds: float) -> None:
        if not self._logger.show_summary():
            values = {"steps": self._total, "seconds": seconds, **_flat(self._results)}
            self._logger.summary(self._total, {**values, "workdir": str(self._workdir)})

    def _per_device(self, value: int) -> np.ndarray:
        return np.full(self._mesh.size // jax.process_count(), value, np.int32)


def _sinks(config: FrozenConfigDict, workdir: pathlib.Path) -> tuple[logs.Sink, ...]:
    sinks = []
    if config.logging.tensorboard:
        sinks.append(logs.TensorBoard(workdir))
    if project := config.logging.wandb_project:
        sinks.append(logs.WeightsAndBiases(workdir, project, configs.to_dict(config)))
    return tuple(sinks)


def _check_data(recorded: Mapping[str, str], present: Mapping[str, str]) -> None:
    changed = sorted(path for path in recorded if recorded[path] != present.get(path))
    if changed:
        raise ValueError(
            f"the data sets {changed} have changed since this run began: restore them, or begin "
            "anew in another workdir"
        )


def _mean(metrics: list[dict[str, np.ndarray]]) -> dict[str, float]:
    """Mean of every metric over the steps that report it."""
    names = {name: None for step in metrics for name in step}
    return {
        name: float(np.mean([step[name] for step in metrics if name in step])) for name in names
    }


def _flat(results: tasks.Results) -> dict[str, float]:
    return {
        f"{dataset}/{metric}": value
        for dataset, metrics in results.items()
        for metric, value in metrics.items()
    }
