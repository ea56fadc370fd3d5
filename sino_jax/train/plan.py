"""What does not change while a run trains: its length, its batches and its compiled steps."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import optax
from jax.sharding import Mesh
from ml_collections import FrozenConfigDict

from sino_jax.data import batches
from sino_jax.train import optimizer as optimizers
from sino_jax.train import parallel
from sino_jax.train import task as tasks
from sino_jax.train.step import Control, LossFn, Step, TrainState, init_state, make_step
from sino_jax.train.store import start_from


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """A run as a pure function of its config; `of` makes it.

    Attributes:
      task: what is learnt.
      config: a completed config.
      mesh: all devices.
      order: which examples each step sees.
      total_steps: length of the run.
      optimizer: of the weights.
      step_fn: the compiled step for a loss function.
    """

    task: tasks.Task
    config: FrozenConfigDict
    mesh: Mesh
    order: batches.Order
    total_steps: int
    optimizer: optax.GradientTransformation
    step_fn: Callable[[LossFn], Step]

    @classmethod
    def of(cls, task: tasks.Task, config: FrozenConfigDict) -> "Plan":
        """The plan of a completed config."""
        mesh = parallel.data_mesh()
        order = batches.Order.of(
            task.train, seed=config.seed, batch_size=config.data.batch_size, keep_remainder=True
        )
        total_steps = config.steps or config.epochs * order.steps_per_epoch
        optimizer = optimizers.build(config.optimizer, total_steps)
        step_fn = functools.partial(
            make_step,
            optimizer=optimizer,
            mesh=mesh,
            total_steps=total_steps,
            accumulate=config.accumulate,
            ema_decay=config.ema_decay,
        )
        return cls(task, config, mesh, order, total_steps, optimizer, functools.cache(step_fn))

    def new_state(self) -> TrainState:
        """The state before the first step."""
        key = jax.random.key(self.config.seed)
        params = self.task.init(jax.random.fold_in(key, 0))
        averaged = self.config.ema_decay > 0
        return init_state(params, self.optimizer, jax.random.fold_in(key, 1), averaged=averaged)

    def prepare(self, number: int) -> tuple[Step, Any, jax.Array]:
        """Function, batch (with its weights) and number of a step, in place on the devices."""
        chosen, ids = self.order.draw(number)
        padded = parallel.own_part(parallel.pad(ids, self.order.batch_size, self._parts))
        batch = (self.task.train[chosen].examples(padded.ids), padded.weight)
        placed = parallel.split((batch, parallel.per_device(number, self.mesh)), self.mesh)
        return self.step_fn(self.task.loss_at(chosen, number, self.total_steps)), *placed

    def rehearse(self) -> None:
        """Traces the first step without computing it: a config that cannot work fails here."""
        step, batch, numbers = self.prepare(0)
        state = jax.eval_shape(self.new_state)
        if self.config.start_from:
            start_from(self.config.start_from, state)
        state = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=parallel.same(self.mesh)),
            state,
        )
        step.eval_shape(state, batch, Control(numbers, numbers))

    def due(self, done: int) -> set[str]:
        """What has to happen after `done` steps: any of log, evaluate, save."""
        last = done == self.total_steps
        due = {n for n, every in self._periods.items() if last or (every and done % every == 0)}
        # An evaluated state is saved, or the best one might be lost.
        return due | {"save"} if "evaluate" in due else due

    @functools.cached_property
    def _parts(self) -> int:
        return self.mesh.size * self.config.accumulate

    # Asked for in every step, where looking into a config takes longer than the rest.
    @functools.cached_property
    def _periods(self) -> dict[str, int]:
        return {
            "log": self.config.logging.every,
            "evaluate": self.config.evaluation.every,
            "save": self.config.checkpoint.every,
        }
