"""Cost of scale-consistency: a training step with two sub-domain losses against the plain step.

    python -m benchmarks consistency_loss

The crops' share of grid points says what they should cost; the paper reports "double runtime".
Compared are one program that chooses among six sizes (`jax.lax.switch`) and one program for each
size, chosen by the host (`sino_jax.loss.draw_crops`), which is what the trainer does.
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

POINTS, BATCH = 129, 8
SIZES = (33, 49, 65, 81, 97, 113)
MODEL = {
    "name": "fno",
    "n_modes": (12, 12),
    "hidden_channels": 32,
    "n_layers": 4,
    "out_channels": 1,
    "boundary_channels": 4,
    "padding": 0.25,
}
WARM_UP, ROUNDS = 3, 12
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


def measure(steps, model, optimizer, instance) -> tuple[float, float]:
    """Mean seconds of a step over rounds through all `steps`, and seconds to compile them."""
    inputs = problem.inputs(equations.get("darcy"), instance)
    variables = model.init(jax.random.key(0), inputs, instance.scale)
    state = optimizer.init(variables)
    keys = jax.random.split(jax.random.key(1), ROUNDS)
    start = time.perf_counter()
    for step in steps:
        variables, state, value = step(variables, state, instance, keys[0])
    value.block_until_ready()
    compile_seconds = time.perf_counter() - start
    for step in steps * WARM_UP:
        variables, state, value = step(variables, state, instance, keys[0])
    value.block_until_ready()
    times = []
    for key in keys:
        for step in steps:
            start = time.perf_counter()
            variables, state, value = step(variables, state, instance, key)
            value.block_until_ready()
            times.append(time.perf_counter() - start)
    return statistics.mean(times), compile_seconds


def main() -> None:
    model, optimizer = models.build(MODEL), optax.adam(1e-3)
    instance = make_instance(jax.random.key(2))
    plain = [make_step(model, optimizer)]
    switched = [make_step(model, optimizer, sub_sizes=SIZES)]
    single = [make_step(model, optimizer, sub_sizes=(size,)) for size in SIZES]
    rows = {
        name: measure(steps, model, optimizer, instance)
        for name, steps in {
            "plain step": plain,
            "two sub-domain losses, one program": switched,
            "two sub-domain losses, a program a size": single,
        }.items()
    }
    base = rows["plain step"][0]
    share = 1 + 2 * statistics.mean((size / POINTS) ** 2 for size in SIZES)
    print(f"FNO, batch {BATCH}, {POINTS}² nodes, width 32, 12 modes; crops of {SIZES} points")
    print("| | ms a step | times the plain step | compilation, s |\n|---|---|---|---|")
    for name, (seconds, compilation) in rows.items():
        print(f"| {name} | {1000 * seconds:.0f} | {seconds / base:.2f} | {compilation:.1f} |")
    print(f"| share of grid points | | {share:.2f} | |")
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "rows": {
            name: {"seconds": s, "compile": c, "ratio": s / base} for name, (s, c) in rows.items()
        },
        "share_of_points": share,
    }
    RESULT.write_text(json.dumps(report, indent=2) + "\n")
