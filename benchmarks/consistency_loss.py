"""Cost of scale-consistency: a training step with two sub-domain losses against the plain step.

    python -m benchmarks consistency_loss

The crops' share of grid points says what they should cost; the paper reports "double runtime".
Compared are one program that chooses among the sizes of the preset (`jax.lax.switch`) and one
program for each size, chosen by the host (`sino_jax.loss.draw_crops`), which is what the trainer
does; the latter for sizes of a third to two thirds of the side, too. All take turns; times are
those of the process on its cores.
"""

import functools
import json
import pathlib
import statistics
import time

import jax
import jax.numpy as jnp
import optax

from sino_jax import equations, loss, models, problem
from sino_jax.types import Instance

POINTS, BATCH, WIDTH = 65, 8, 24  # of Darcy's preset `small`
SIZES = (17, 25, 33, 49)
MIDDLE_SIZES = (25, 33, 41)  # a third to two thirds of the side
MODEL = {
    "name": "fno",
    "n_modes": (12, 12),
    "hidden_channels": WIDTH,
    "n_layers": 4,
    "out_channels": 1,
    "boundary_channels": 4,
    "padding": 0.25,
}
WARM_UP, ROUNDS = 1, 8
RESULT = pathlib.Path("results/benchmarks/consistency_loss.json")


def make_instance(key: jax.Array) -> Instance:
    fields = jax.random.normal(key, (2, BATCH, POINTS, POINTS, 1))
    return Instance(jnp.exp(fields[0]), None, jnp.full(BATCH, 4.0), fields[1])


def make_step(model, optimizer, **options):
    """A full training step: loss, gradient, Adam."""

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(variables, state, instance, key):
        def loss_fn(variables):
            values, _ = loss.training_loss(
                model.apply,
                variables,
                instance,
                equation="darcy",
                key=key,
                progress=0.5,
                **options,
            )
            return values.mean()

        value, gradient = jax.value_and_grad(loss_fn)(variables)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(variables, updates), state, value

    return step


class Timed:
    """Steps that are taken one after the other, and the time of the process for each."""

    def __init__(self, steps, model, optimizer, instance):
        inputs = problem.inputs(equations.get("darcy"), instance)
        self._steps, self._instance = steps, instance
        self._variables = jax.jit(model.init)(jax.random.key(0), inputs, instance.scale)
        self._state = optimizer.init(self._variables)

    def turn(self, key: jax.Array) -> list[float]:
        """Seconds of each step, taken once."""
        times = []
        for step in self._steps:
            begin = time.process_time()
            self._variables, self._state, value = step(
                self._variables, self._state, self._instance, key
            )
            value.block_until_ready()
            times.append(time.process_time() - begin)
        return times


def main() -> None:
    model, optimizer = models.build(MODEL), optax.adam(1e-3)
    instance = make_instance(jax.random.key(2))
    single = {
        size: make_step(model, optimizer, sub_sizes=(size,)) for size in {*SIZES, *MIDDLE_SIZES}
    }
    rows = {
        "plain step": ((), [make_step(model, optimizer)]),
        "one program": (SIZES, [make_step(model, optimizer, sub_sizes=SIZES)]),
        "a program a size": (SIZES, [single[size] for size in SIZES]),
        "a program a size, third to two thirds": (
            MIDDLE_SIZES,
            [single[size] for size in MIDDLE_SIZES],
        ),
    }
    timed = {name: Timed(steps, model, optimizer, instance) for name, (_, steps) in rows.items()}
    keys = jax.random.split(jax.random.key(1), WARM_UP + ROUNDS)
    turns = [
        {name: statistics.mean(side.turn(key)) for name, side in timed.items()} for key in keys
    ]
    turns = turns[WARM_UP:]
    print(f"FNO, batch {BATCH}, {POINTS}² nodes, width {WIDTH}, 12 modes; crops of {SIZES} points")
    print("| two sub-domain losses | ms a step | times the plain step | share of points |")
    print("|---|---|---|---|")
    report = {}
    for name, (sizes, _) in rows.items():
        share = 1 + 2 * statistics.mean([(size / POINTS) ** 2 for size in sizes] or [0])
        seconds = statistics.median(turn[name] for turn in turns)
        ratio = statistics.median(turn[name] / turn["plain step"] for turn in turns)
        print(f"| {name} | {1000 * seconds:.0f} | {ratio:.2f} | {share:.2f} |")
        report[name] = {
            "seconds": seconds,
            "ratio": ratio,
            "share_of_points": share,
        }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"rows": report}, indent=2) + "\n")
