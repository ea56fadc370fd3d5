"""Training steps of the presets `small` on one core: narrow models on small grids.

    taskset -c 0 python -m benchmarks narrow_steps

compiles the step of each config as its experiment runs it (loss with its largest sub-domains,
gradient, Adam) and times it on random arrays of the right shapes; no data is generated. Times are
those of the process on its cores, so that other work on the machine counts little. The compiler's
counts of operations and of bytes that its programs read and write say what a step is bound by: the
bytes as passes over one hidden field of the model, the operations as a share of the peak of a large
matrix product on the same core.
"""

import importlib
import json
import math
import pathlib
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from experiments import memory, models
from sino_jax import runtime

ROWS = (
    ("burgers", "small,model=fno"),
    ("burgers", "small,consistency=sub"),
    ("helmholtz", "small"),
    ("helmholtz", "small,consistency=sub"),
    ("navier_stokes", "small,model=fno"),
    ("navier_stokes", "small"),
    ("darcy", "small"),
    ("darcy", "small,consistency=sub"),
)
WARM_UP, TURNS = 3, 15
PEAK_SIZE = 2048
RESULT = pathlib.Path("results/benchmarks/narrow_steps.json")


def milliseconds(function: Callable[[], object]) -> float:
    """Median time of the process for a call."""
    times = []
    for _ in range(WARM_UP + TURNS):
        begin = time.process_time()
        jax.block_until_ready(function())
        times.append(time.process_time() - begin)
    return 1e3 * statistics.median(times[WARM_UP:])


def measure(name: str, text: str, peak: float) -> dict:
    """The row of one config."""
    experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    config = importlib.import_module(f"experiments.configs.{name}").get_config(text)
    traced = memory.trace(experiment, config)
    begin = time.process_time()
    step = traced.lower().compile()
    compilation = time.process_time() - begin
    state, *others = random_arguments(traced)
    states = [state]

    def run():
        state, metrics = step(states.pop(), *others)
        states.append(state)
        return metrics

    grid = memory.largest_grid(experiment, config)
    width = models.fields(config)["hidden_channels"]
    field = 4 * config.batch_size * math.prod(grid) * width
    costs, elapsed = step.cost_analysis(), milliseconds(run)
    return {
        "case": f"{name} {text}",
        "grid": grid,
        "batch": config.batch_size,
        "width": width,
        "step_ms": elapsed,
        "compile_s": compilation,
        "gflop": costs["flops"] / 1e9,
        "of_peak": costs["flops"] / 1e6 / elapsed / peak,
        "gigabytes": costs["bytes accessed"] / 1e9,
        "passes": costs["bytes accessed"] / field,
    }


def random_arguments(traced: Traced) -> tuple:
    """Arrays of the shapes that a step was traced for."""
    arguments, _ = jax.tree.map(_random, traced.args_info)
    return arguments


def _random(info) -> jax.Array:
    if jnp.issubdtype(info.dtype, jax.dtypes.prng_key):
        return jax.random.key(0)
    if jnp.issubdtype(info.dtype, jnp.integer) or not info.shape:
        return jnp.asarray(np.zeros(info.shape, info.dtype))
    # Positive: coefficients and scales are, and second moments of Adam.
    values = np.abs(np.random.default_rng(math.prod(info.shape)).normal(size=info.shape))
    return jnp.asarray(0.1 + 0.1 * values, info.dtype)


def peak_gflops() -> float:
    """Of a large matrix product, on the cores that the process may use."""
    matrix = jax.random.normal(jax.random.key(0), (PEAK_SIZE, PEAK_SIZE))
    product = jax.jit(jnp.matmul)
    return 2 * PEAK_SIZE**3 / 1e6 / milliseconds(lambda: product(matrix, matrix))


def main() -> None:
    runtime.use_synchronous_dispatch()
    peak = peak_gflops()
    rows = []
    print(f"matrix-product peak {peak:.0f} GFLOP/s")
    print("| case | batch x grid, width | ms | GFLOP | of peak | GB | passes |")
    print("|---|---|---|---|---|---|---|")
    for name, text in ROWS:
        row = measure(name, text, peak)
        rows.append(row)
        shape = " x ".join(map(str, (row["batch"], *row["grid"])))
        print(
            f"| {row['case']} | {shape}, {row['width']} | {row['step_ms']:.1f} "
            f"| {row['gflop']:.2f} | {row['of_peak']:.0%} | {row['gigabytes']:.2f} "
            f"| {row['passes']:.0f} |",
            flush=True,
        )
        jax.clear_caches()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"peak_gflops": peak, "rows": rows}, indent=1) + "\n")
