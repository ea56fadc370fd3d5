"""Training steps of the paper's models at the paper's sizes, against a plain implementation.

    taskset -c 0 python -m benchmarks paper_steps

There is no PyTorch peer of these models. The reference is `benchmarks.peers`: the same
models with the same weights as one would write them in JAX, with real FFTs and complex einsums,
compiled with the same options; that both give the same output is checked first. A step is the
relative L2 loss on random arrays, its gradient and Adam. Both sides take turns, times are those of
the process on its cores, and ratios are medians over pairs of turns. Operations are the compiler's
counts, which for transforms are those of matrix products on our side and of FFTs on the other;
shares of the peak are of our counts and the peak of a large matrix product on the same cores.
"""

import dataclasses
import json
import operator
import pathlib
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks import peers
from benchmarks.narrow_steps import peak_gflops
from sino_jax import equations, models, runtime
from sino_jax.models import network
from sino_jax.train import parallel

WARM_UP, TURNS = 1, 3
RESULT = pathlib.Path("results/benchmarks/paper_steps.json")
SINO = {"padding": 0.25, "scale_informed": True, "frequency_embedding": True}


@dataclasses.dataclass(frozen=True)
class Case:
    """A model of an equation, and the batch it is trained on."""

    name: str
    equation: str
    shape: tuple[int, ...]  # batch and grid
    model: dict


CASES = (
    Case(
        "SINO, tensor kernel",
        "burgers",
        (16, 100, 256),
        {**SINO, "name": "fno", "n_modes": (16, 64), "hidden_channels": 32, "log_scale": True},
    ),
    Case(
        "SINO, shared kernel, all modes",
        "helmholtz",
        (2, 257, 257),
        {**SINO, "name": "sino", "n_modes": (32, 32), "hidden_channels": 64, "truncated": False},
    ),
    Case(
        "SINO-U, all modes",
        "navier_stokes",
        (10, 128, 128),
        {**SINO, "name": "sino_u", "n_modes": (40, 40), "hidden_channels": 40, "n_layers": 4},
    ),
)


def main() -> None:
    runtime.use_synchronous_dispatch()
    peak = peak_gflops()
    print(f"matrix-product peak {peak:.0f} GFLOP/s")
    print("| model | batch x grid | ms | plain ms | ratio | GFLOP | plain | of peak |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for case in CASES:
        row = measure(case)
        row["of_peak"] = row["gflop"] / (row["ms"] / 1e3) / peak
        rows.append(row)
        print(
            f"| {case.equation}: {case.name} | {' x '.join(map(str, case.shape))} "
            f"| {row['ms']:.0f} | {row['plain_ms']:.0f} | **{row['ratio']:.2f}** "
            f"| {row['gflop']:.1f} | {row['plain_gflop']:.1f} | {row['of_peak']:.0%} |",
            flush=True,
        )
        jax.clear_caches()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"peak_gflops": peak, "rows": rows}, indent=1) + "\n")


def measure(case: Case) -> dict:
    """The row of one case."""
    equation = equations.get(case.equation)
    model = models.build({**equation.model_fields(), **case.model})
    rng = np.random.default_rng(0)
    inputs = jnp.asarray(rng.normal(size=(*case.shape, equation.input_channels)), jnp.float32)
    target = jnp.asarray(rng.normal(size=(*case.shape, equation.output_channels)), jnp.float32)
    scale = jnp.full(case.shape[0], 5.0)
    variables = network.init(model, equation, case.shape[1:], jax.random.key(0))

    def plain(variables, inputs, scale):
        return peers.apply(model, variables, inputs, scale)

    sides = {"": model.apply, "plain_": plain}
    outputs = [jax.jit(side)(variables, inputs, scale) for side in sides.values()]
    difference = jnp.linalg.norm(outputs[0] - outputs[1]) / jnp.linalg.norm(outputs[0])
    if not difference < 1e-4:
        raise RuntimeError(f"{case.name}: the two implementations differ by {difference:.1e}")
    steps, row = {}, dict(case=case.name, equation=case.equation, shape=case.shape)
    for name, side in sides.items():
        steps[name], row[f"{name}gflop"] = _step(side, variables, inputs, scale, target)
    times = {name: [] for name in sides}
    for _ in range(WARM_UP + TURNS):
        for name, step in steps.items():
            begin = time.process_time()
            step()
            times[name].append(1e3 * (time.process_time() - begin))
    for name, values in times.items():
        row[f"{name}ms"] = statistics.median(values[WARM_UP:])
    pairs = map(operator.truediv, times["plain_"][WARM_UP:], times[""][WARM_UP:])
    return {**row, "ratio": statistics.median(pairs)}


def _step(apply, variables, inputs, scale, target) -> tuple[Callable[[], None], float]:
    """A function that takes a training step, and its count of operations in units of 10⁹."""
    optimiser = optax.adam(1e-3)

    def loss(variables):
        difference = apply(variables, inputs, scale) - target
        norms = [jnp.linalg.norm(a.reshape(len(a), -1), axis=1) for a in (difference, target)]
        return jnp.mean(norms[0] / norms[1])

    def update(variables, state):
        value, gradient = jax.value_and_grad(loss)(variables)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(variables, updates), state, value

    options = parallel.compiler_options(parallel.data_mesh())
    carry = [jax.tree.map(jnp.copy, variables), optimiser.init(variables)]
    compiled = jax.jit(update, donate_argnums=(0, 1), compiler_options=options)
    compiled = compiled.lower(*carry).compile()

    def step() -> None:
        *carry[:], value = compiled(*carry)
        value.block_until_ready()

    return step, compiled.cost_analysis()["flops"] / 1e9
