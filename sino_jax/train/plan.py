"""What does not change while a run trains: its length, its batches and its compiled steps."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax
from jax.sharding import Mesh
from ml_collections import FrozenConfigDict

from sino_jax.data import batches
from sino_jax.train import optimizer as optimizers
from sino_jax.train import parallel
from sino_jax.train import task as tasks
from sino_jax.train.gradient import LossFn, Params
from sino_jax.train.step import Control, Step, TrainState, init_state, make_step
from sino_jax.train.store import start_from
from sino_jax.types import Key


class Program(NamedTuple):
    """What is compiled at once: the function of a step, for batches on one grid."""

    step: Step
    grid: tuple[int, ...]


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
      step_fn: the step for a loss function, compiled when it is first called or `compile` is.
    """

    task: tasks.Task
    config: FrozenConfigDict
    mesh: Mesh
    order: batches.Order
    total_steps: int
    optimizer: optax.GradientTransformation
    step_fn: Callable[[LossFn], Step]
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

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
            points_at_once=config.points_at_once,
            ema_decay=config.ema_decay,
        )
        return cls(task, config, mesh, order, total_steps, optimizer, functools.cache(step_fn))

    def new_state(self) -> TrainState:
        """The state before the first step."""
        keys = _keys(self.config.seed)
        return self._state_of(self.task.init(keys[0]), keys[1])

    @functools.cached_property
    def _state_of(self) -> Callable[[Params, Key], TrainState]:
        # One program: one by one, zeros of every shape would be compiled.
        averaged = self.config.ema_decay > 0
        return jax.jit(lambda p, k: init_state(p, self.optimizer, k, averaged=averaged))

    def program_at(self, number: int) -> Program:
        """The program that a step needs; few different ones."""
        chosen, _ = self.order.draw(number)
        with self._lock:  # two threads that ask for a new function get the same
            step = self.step_fn(self.task.loss_at(chosen, number, self.total_steps))
        return Program(step, self.task.train[chosen].grid)

    def prepare(self, number: int) -> tuple[Step, Any, jax.Array]:
        """Function, batch (with its weights) and number of a step, in place on the devices."""
        chosen, ids = self.order.draw(number)
        padded = parallel.own_part(parallel.pad(ids, self.order.batch_size, self._parts))
        batch = (self.task.train[chosen].examples(padded.ids), padded.weight)
        placed = parallel.split((batch, parallel.per_device(number, self.mesh)), self.mesh)
        return self.program_at(number).step, *placed

    def compile(self, number: int) -> None:
        """Compiles the function of a step; its calls find the program."""
        step, batch, numbers = self.prepare(number)
        step.lower(self._abstract_state, batch, Control(numbers, numbers)).compile()

    def rehearse(self) -> None:
        """Traces the first step without computing it: a config that cannot work fails here."""
        step, batch, numbers = self.prepare(0)
        if self.config.start_from:
            start_from(self.config.start_from, jax.eval_shape(self.new_state))
        step.eval_shape(self._abstract_state, batch, Control(numbers, numbers))

    @property
    def _abstract_state(self) -> TrainState:
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=parallel.same(self.mesh)),
            jax.eval_shape(self.new_state),
        )

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


@functools.partial(jax.jit, static_argnums=0)
def _keys(seed: int) -> tuple[Key, Key]:
    """The keys of a run's first weights and of its steps."""
    key = jax.random.key(seed)
    return jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
