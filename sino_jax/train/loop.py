"""The loop of a run: feeds steps, watches them, logs, evaluates, saves, and survives failures."""

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Mapping

import jax
import numpy as np

from sino_jax.checkpoint import CheckpointError
from sino_jax.data.prefetch import prefetch
from sino_jax.train import config as configs
from sino_jax.train import interruption, parallel, provenance
from sino_jax.train import logging as logs
from sino_jax.train import task as tasks
from sino_jax.train import workdir as workdirs
from sino_jax.train.ahead import Ahead
from sino_jax.train.plan import Plan, Program
from sino_jax.train.step import NONFINITE, STOP, Control, TrainState
from sino_jax.train.store import Store, start_from

# Steps that may be under way on the device while the host prepares the next ones.
STEPS_IN_FLIGHT = 2
# Steps that the compiler looks ahead. Most programs of a run are needed by one of them.
STEPS_AHEAD = 64
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


@dataclasses.dataclass
class Progress:
    """Where a run stands: all that changes while it trains.

    Attributes:
      state: after the last step that was started.
      results: of the evaluation of this state, empty if there was none.
      metrics: of the steps since the last line of the log.
    """

    state: TrainState
    results: tasks.Results
    metrics: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Loop:
    """The verbs of a run. They take and change its `Progress`.

    Attributes:
      plan: what does not change.
      logger: of what happens.
      store: of checkpoints.
      request: whether a signal asked to stop.
      compiled: programs of the plan that are compiled.
    """

    plan: Plan
    logger: logs.Logger
    store: Store
    request: interruption.Request
    compiled: set[Program] = dataclasses.field(default_factory=set)

    def finish(self) -> TrainState:
        """Trains from where the directory's checkpoints are to the end."""
        start = time.monotonic()
        progress = self.resume()
        remaining = range(int(progress.state.step) if progress else 0, self.plan.total_steps)
        with Ahead(self.compile, remaining, depth=STEPS_AHEAD) as programs:
            progress = progress or self.begin()
            while int(progress.state.step) < self.plan.total_steps:
                try:
                    self.advance(progress, programs)
                except NonFiniteError as error:
                    progress = self.rescue(progress, error)
        self.store.wait()
        self.summarise(progress, seconds=time.monotonic() - start)
        return progress.state

    def begin(self) -> Progress:
        """The state before the first step, saved."""
        # A run has a checkpoint before it has a line of metrics: here they were lost.
        if done := [entry["step"] for entry in logs.read(self.store.workdir, "train")]:
            raise CheckpointError(
                f"{self.store.workdir} has metrics up to step {max(done)}, but no checkpoint: "
                "restore its checkpoints, or delete the directory to begin anew"
            )
        state = self.plan.new_state()
        if source := self.plan.config.start_from:
            state = start_from(source, state)
            self.logger.message(f"starting from the weights of {source}")
        progress = Progress(parallel.replicate(state, self.plan.mesh), {})
        self.logger.rewind(0)
        self.save(progress)
        self.store.wait()
        return progress

    def resume(self) -> Progress | None:
        """The newest good state, None if there is none."""
        plan = self.plan
        restored = self.store.restore(jax.eval_shape(plan.new_state))
        if restored is None:
            return None
        step = int(restored.state.step)
        workdirs.check_same(
            restored.meta["config"],
            plan.config,
            of=f"the checkpoint of step {step} in {self.store.workdir} is",
        )
        _check_data(restored.meta["datasets"], plan.task.meta["datasets"])
        self.logger.rewind(step)
        if step < plan.total_steps:
            self.logger.message(f"resuming at step {step} of {plan.total_steps}")
        return Progress(parallel.replicate(restored.state, plan.mesh), restored.meta["evaluation"])

    def advance(self, progress: Progress, programs: Ahead) -> None:
        """Steps to the end of the run. The host looks at a step only when later ones are queued."""
        plan = self.plan
        flags = {flag: parallel.per_device(flag, plan.mesh) for flag in (False, True)}
        stop_flags = parallel.split(flags, plan.mesh)
        in_flight: deque[tuple[int, dict[str, jax.Array]]] = deque()
        stream = prefetch(plan.prepare, range(int(progress.state.step), plan.total_steps))
        try:
            for number, (step, batch, numbers) in stream:
                control = Control(numbers, stop_flags[bool(self.request)])
                with self.compiling(number, programs):
                    programs.wait_for(number)
                    progress.state, metrics = step(progress.state, batch, control)
                # Freeing arrays releases Python's lock. Nobody waits for it here; the stream's
                # thread, once woken for another batch, would take it and keep it for long.
                del batch, numbers, control
                in_flight.append((number, metrics))
                due = plan.due(number + 1)
                stop = False
                while len(in_flight) > (0 if due else STEPS_IN_FLIGHT):
                    stop |= self.inspect(progress, *in_flight.popleft())
                if due:
                    self.pause(progress, due)
                if stop:
                    while in_flight:
                        self.inspect(progress, *in_flight.popleft())
                    self.leave(progress, saved="save" in due)
        finally:
            stream.close()

    def compile(self, number: int) -> None:
        """Compiles what a step needs, unless an earlier one did."""
        program = self.plan.program_at(number)
        if program not in self.compiled:
            self.plan.compile(number)
            self.compiled.add(program)

    def compiling(self, number: int, programs: Ahead) -> contextlib.AbstractContextManager:
        """Around a step that may have to wait for its program."""
        if programs.is_done(number):
            return contextlib.nullcontext()
        return self.logger.compiling(1 + len(self.compiled))

    def inspect(self, progress: Progress, number: int, metrics: dict[str, jax.Array]) -> bool:
        """Raises if step `number` failed; returns whether a process wants to stop."""
        # Unlike `jax.device_get` or `int`, this is quick.
        values = {name: np.asarray(value) for name, value in metrics.items()}
        status = int(values.pop("status"))
        if status & NONFINITE:
            chosen, ids = self.plan.order.draw(number)
            self.store.wait()
            raise NonFiniteError(
                number,
                f"the loss or its gradient is not finite at step {number} (counted from 0), on "
                f"samples {ids.tolist()} of {self.plan.task.train[chosen].path}; the last good "
                f"checkpoint is of step {self.store.steps()[-1]} in {self.store.workdir}",
            )
        progress.metrics.append(values)
        return bool(status & STOP)

    def pause(self, progress: Progress, due: set[str]) -> None:
        """Logs, evaluates and saves, as far as that is due."""
        step = int(progress.state.step)
        if "log" in due:
            self.logger.train(step, _mean(progress.metrics))
            progress.metrics = []
        progress.results = {}
        if "evaluate" in due:
            with self.logger.uncounted("evaluating ..."):
                progress.results = self.plan.task.evaluate(
                    progress.state.evaluated, self.plan.mesh, last=step == self.plan.total_steps
                )
            if progress.results:
                self.logger.evaluation(step, _flat(progress.results))
        if "save" in due:
            self.save(progress)

    def save(self, progress: Progress) -> None:
        """Starts to write a checkpoint."""
        meta = {
            "config": configs.to_dict(self.plan.config),
            **self.plan.task.meta,
            **provenance.describe(),
            "evaluation": progress.results,
        }
        self.store.save(progress.state, meta)

    def leave(self, progress: Progress, *, saved: bool) -> None:
        """Ends the run as a signal asked for; always raises."""
        if not saved:
            progress.results = {}
            self.save(progress)
        self.store.wait()
        step = int(progress.state.step)
        self.logger.message(f"asked to stop: saved at step {step} of {self.plan.total_steps}")
        raise interruption.Interrupted(step)

    def rescue(self, progress: Progress, error: NonFiniteError) -> Progress:
        """The last good state with half the learning rate; raises `error` if that is not wanted."""
        # Not the rate of the checkpoint, which may be halved for the second time.
        rate = float(progress.state.rate) / 2
        if self.plan.config.on_nonfinite == "stop" or rate < SMALLEST_RATE:
            raise error
        self.logger.message(f"{error}; going back to it with {rate:g} of the learning rate")
        rescued = self.resume()
        new_rate = parallel.replicate(np.float32(rate), self.plan.mesh)
        rescued.state = rescued.state._replace(rate=new_rate)
        return rescued

    def summarise(self, progress: Progress, *, seconds: float) -> None:
        """The closing lines, written once however often a finished run is started again."""
        if not self.logger.show_summary():
            total = self.plan.total_steps
            values = {"steps": total, "seconds": seconds, **_flat(progress.results)}
            self.logger.summary(total, {**values, "workdir": str(self.store.workdir)})


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
