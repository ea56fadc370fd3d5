"""What the trainer costs beyond the compiled step, and whether reading data ever holds it up.

    python -m benchmarks training

The bare step is one jitted function (loss, gradient, AdamW) on one batch that never leaves the
device. The trainer runs the same loss through `sino_jax.train.run`: batches from disk, weights for
uneven batches, checks for NaN, logging, checkpoints. Both are measured in turns, with the same
allocator settings. The data set is larger than the page budget of its reader: `Evicting` drops all
its pages from memory after every batch, so that each batch is read from disk again.
"""

import json
import mmap
import os
import pathlib
import resource
import statistics
import tempfile
import time

import jax
import numpy as np
import optax

from sino_jax import config as configs
from sino_jax import data, equations, network, runtime, tasks, train
from sino_jax import logging as logs
from sino_jax import optimizer as optimizers
from sino_jax.loss import training_loss
from solvers import storage

RESULT = pathlib.Path("results/benchmarks/training.json")
GRID, SAMPLES, BATCH = 65, 2048, 8
WARM_UP, STEPS, REPEATS = 20, 80, 3
MODEL = {
    "name": "fno",
    "n_modes": (12, 12),
    "hidden_channels": 24,
    "n_layers": 4,
    "out_channels": 1,
    "boundary_channels": 4,
}


class Evicting(data.Dataset):
    """A data set of which no page stays in memory once a batch has been copied from it."""

    def examples(self, ids):
        batch = super().examples(ids)
        for name, field in self.fields.items():
            field._mmap.madvise(mmap.MADV_DONTNEED)
            with (self.path / f"{name}.npy").open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return batch


def main() -> None:
    runtime.use_tuned_allocator()
    with tempfile.TemporaryDirectory() as place:
        runtime.use_compilation_cache(pathlib.Path(place) / "compiled")
        result = measure(pathlib.Path(place))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(table(result))


def measure(place: pathlib.Path) -> dict:
    path = write_data(place / "train-4")
    bare = bare_steps(path)
    task = task_of(path)
    bare_times, trainer_times = [], []
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for number in range(REPEATS):
        bare_times.append(bare())
        trainer_times.append(trained(task, place / f"run-{number}"))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
    dataset = task.train[0]
    loads = []
    for first in range(0, 40 * BATCH, BATCH):
        start = time.perf_counter()
        dataset.examples(np.arange(first, first + BATCH) * 5 % SAMPLES)
        loads.append(time.perf_counter() - start)
    size = sum(field.nbytes for field in dataset.fields.values())
    bare_ms, trainer_ms = (1e3 * statistics.median(t) for t in (bare_times, trainer_times))
    return {
        "grid": GRID,
        "batch": BATCH,
        "model": MODEL,
        "steps": STEPS,
        "repeats": REPEATS,
        "bare_ms": bare_ms,
        "trainer_ms": trainer_ms,
        "bare_ms_all": [1e3 * t for t in bare_times],
        "trainer_ms_all": [1e3 * t for t in trainer_times],
        "overhead_percent": 100 * (trainer_ms / bare_ms - 1),
        "load_ms": 1e3 * statistics.median(loads),
        "load_ms_worst": 1e3 * max(loads),
        "data_megabytes": size / 1e6,
        "page_budget_megabytes": size / SAMPLES * BATCH / 1e6,
        "major_faults_per_step": faults / REPEATS / (WARM_UP + STEPS),
        "device": jax.devices()[0].device_kind,
        "cores": len(os.sched_getaffinity(0)),
    }


def write_data(path: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    shape = (SAMPLES, GRID, GRID, 1)
    fields = {name: [rng.normal(size=shape).astype(np.float32)] for name in ("a", "u")}
    description = storage.describe(
        equation="darcy",
        split="train",
        scale=4.0,
        samples=SAMPLES,
        seed=0,
        grid={
            "axes": ["x", "y"],
            "shape": [GRID, GRID],
            "centrings": ["node", "node"],
            "extent": [1.0, 1.0],
        },
        window=None,
        units={},
        limits={"residual": 1.0},
        config={},
        versions={},
    )
    named = {"coefficient": fields["a"], "solution": fields["u"]}
    storage.write(path, description, named, {"residual": np.zeros(SAMPLES)})
    return path


def config_of(path: pathlib.Path):
    return configs.complete(
        {
            "equation": "darcy",
            "model": MODEL,
            "data": {"train": (str(path),), "batch_size": BATCH},
            "steps": WARM_UP + STEPS,
            "checkpoint": {"every": WARM_UP + STEPS // 2},
            "logging": {"every": 10},
        }
    )


def task_of(path: pathlib.Path) -> tasks.Task:
    task = tasks.build(config_of(path))
    sets = [Evicting(d.path, d.meta, d.fields, d.window) for d in task.train]
    return task._replace(train=sets)


def trained(task: tasks.Task, workdir: pathlib.Path) -> float:
    """Seconds a step after the warm-up, as the run's own log shows them."""
    train.run(task, config_of(*(dataset.path for dataset in task.train)), workdir)
    times = {entry["step"]: entry["time"] for entry in logs.read(workdir, "train")}
    return (times[WARM_UP + STEPS] - times[WARM_UP]) / STEPS


def bare_steps(path: pathlib.Path):
    """A function that times `STEPS` plain steps and returns the seconds of one."""
    config = config_of(path)
    equation = equations.get("darcy")
    model, apply_fn = network.build(config, equation, None)
    optimizer = optimizers.build(config.optimizer, config.steps)
    key = jax.random.key(0)
    batch = jax.device_put(data.load(path).examples(np.arange(BATCH)))

    def mean_loss(params):
        loss, _ = training_loss(apply_fn, params, batch, equation=equation, key=key, progress=0.0)
        return loss.mean()

    def step(params, state):
        loss, gradient = jax.value_and_grad(mean_loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def timed() -> float:
        params = network.init(model, equation, (GRID, GRID), key)
        state = optimizer.init(params)
        for number in range(WARM_UP + STEPS):
            if number == WARM_UP:
                loss.block_until_ready()
                start = time.perf_counter()
            params, state, loss = compiled(params, state)
        loss.block_until_ready()
        return (time.perf_counter() - start) / STEPS

    return timed


def table(result: dict) -> str:
    return "\n".join(
        [
            f"FNO, {result['grid']}² grid, batch {result['batch']}, {result['cores']} cores, "
            f"medians of {result['repeats']} runs of {result['steps']} steps",
            "",
            "| | ms a step | relative to the bare step |",
            "|---|---|---|",
            f"| bare compiled step | {result['bare_ms']:.2f} | 1 |",
            f"| trainer, reading from disk | {result['trainer_ms']:.2f} | "
            f"{result['trainer_ms'] / result['bare_ms']:.3f} |",
            f"| loading one batch alone | {result['load_ms']:.2f} (worst "
            f"{result['load_ms_worst']:.2f}) | {result['load_ms'] / result['bare_ms']:.3f} |",
            "",
            f"Data set {result['data_megabytes']:.0f} MB, page budget "
            f"{result['page_budget_megabytes']:.2f} MB, "
            f"{result['major_faults_per_step']:.1f} reads from disk (major faults) a step.",
        ]
    )


if __name__ == "__main__":
    main()
