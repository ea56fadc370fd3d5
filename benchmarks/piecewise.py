"""Training steps with bounded memory (`points_at_once`) against those that differentiate at once.

    taskset -c 0 python -m benchmarks piecewise

The configs are those of the presets `paper` with smaller grids, batches and widths, so that both
steps fit into 8 GB, and with as many pieces as at full size. Steps run in turns on the same
arrays; times are those of the process on its cores, so that other work on the machine counts
little. Ratios are medians over pairs of turns.
"""

import importlib
import json
import pathlib
import statistics
import time

import jax

from benchmarks import narrow_steps
from experiments import memory
from sino_jax import runtime

# Experiment, config, and the points at once that make as many pieces as the preset does.
ROWS = (
    ("darcy", "paper,data=small,hidden_channels=32,batch_size=4,consistency=sub+super", 75_000),
    (
        "helmholtz",
        "paper,data=small,sino_modes=16+16,sino_channels=32,consistency=sub+super",
        100_000,
    ),
    ("burgers", "paper,data=small,batch_size=8,consistency=sub+super", 260_000),
    ("navier_stokes_spacetime", "paper,data=small,consistency=sub", 600_000),
)
PAIRS = 5
RESULT = pathlib.Path("results/benchmarks/piecewise.json")


def measure(name: str, text: str, points: int) -> dict:
    """The row of one config."""
    at_once, piecewise = (_Step(name, text, bound) for bound in (0, points))
    for step in (at_once, piecewise):
        step.seconds()
    pairs = [(at_once.seconds(), piecewise.seconds()) for _ in range(PAIRS)]
    return {
        "case": f"{name} {text}",
        "points_at_once": points,
        "gibibytes": [at_once.gibibytes, piecewise.gibibytes],
        "compile_s": [at_once.compilation, piecewise.compilation],
        "step_s": [statistics.median(times) for times in zip(*pairs, strict=True)],
        "ratio": statistics.median(late / early for early, late in pairs),
        "ratios": [late / early for early, late in pairs],
    }


class _Step:
    """A compiled training step on random arrays."""

    def __init__(self, name: str, text: str, points: int):
        experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
        configs = importlib.import_module(f"experiments.configs.{name}")
        config = configs.get_config(f"{text},train.points_at_once={points}")
        traced = memory.trace(experiment, config)
        begin = time.process_time()
        self._step = traced.lower().compile()
        self.compilation = time.process_time() - begin
        self.gibibytes = self._step.memory_analysis().temp_size_in_bytes / 2**30
        self._state, *self._others = narrow_steps.random_arguments(traced)

    def seconds(self) -> float:
        """Time of the process for a step."""
        begin = time.process_time()
        self._state, metrics = self._step(self._state, *self._others)
        jax.block_until_ready(metrics)
        return time.process_time() - begin


def main() -> None:
    runtime.use_synchronous_dispatch()
    rows = []
    print("| case | points at once | GiB | seconds a step | ratio | seconds to compile |")
    print("|---|---|---|---|---|---|")
    for name, text, points in ROWS:
        row = measure(name, text, points)
        rows.append(row)
        memories, times, compilations = (
            " -> ".join(f"{value:.2f}" for value in row[field])
            for field in ("gibibytes", "step_s", "compile_s")
        )
        print(
            f"| {row['case']} | {points:,} | {memories} | {times} | {row['ratio']:.2f} "
            f"| {compilations} |",
            flush=True,
        )
        jax.clear_caches()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
