"""What the trainer costs beyond the compiled step, and whether reading data ever holds it up.

    python -m benchmarks training

The bare step is one jitted function (loss, gradient, AdamW) on one batch that never leaves the
device. The trainer runs the same loss through `sino_jax.train.run`: batches from disk, weights for
uneven batches, checks for NaN, logging. All are measured in turns, with the same allocator
settings: the trainer once with a data set that fits into memory, and once with one that is larger
than the page budget of its reader (`Evicting` drops all its pages from memory after every batch, so
that each batch is read from disk again).
"""

import json
import mmap
import os
import pathlib
import resource
import statistics
import tempfile
import time
from itertools import pairwise

import jax
import numpy as np
import optax

from sino_jax import config as configs
from sino_jax import data, equations, network, parallel, runtime, tasks, train
from sino_jax import logging as logs
from sino_jax import optimizer as optimizers
from sino_jax.loss import training_loss
from sino_jax.step import Control, init_state, make_step
from solvers import storage

RESULT = pathlib.Path("results/benchmarks/training.json")
GRID, SAMPLES, BATCH = 65, 2048, 8
WARM_UP, STEPS, WINDOW, REPEATS = 20, 80, 10, 4
MODEL = {
    "name": "fno",
    "n_modes": (12, 12),
    "hidden_channels": 16,
    "n_layers": 2,
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
    time_bare, time_full = step_timers(path)
    in_memory = tasks.build(config_of(path))
    task = evicting(in_memory)
    seconds = {"bare": [], "step": [], "trainer": [], "from_disk": []}
    read = 0
    for number in range(REPEATS):
        seconds["bare"] += time_bare()
        seconds["step"] += time_full()
        for field in task.train[0].fields.values():
            field.sum()  # reads all of it
        seconds["trainer"] += trained(in_memory, place / f"in-memory-{number}")
        before = read_from_disk()
        seconds["from_disk"] += trained(task, place / f"from-disk-{number}")
        read += read_from_disk() - before
    dataset = task.train[0]
    loads = []
    for first in range(0, 40 * BATCH, BATCH):
        start = time.perf_counter()
        dataset.examples(np.arange(first, first + BATCH) * 5 % SAMPLES)
        loads.append(time.perf_counter() - start)
    size = sum(field.nbytes for field in dataset.fields.values())
    # The best window of several turns: what a busy machine adds is not the program's cost.
    best = {f"{name}_ms": 1e3 * min(times) for name, times in seconds.items()}
    return {
        "grid": GRID,
        "batch": BATCH,
        "model": MODEL,
        "steps": STEPS,
        "repeats": REPEATS,
        **best,
        "all_ms": {name: [1e3 * t for t in times] for name, times in seconds.items()},
        "overhead_percent": 100 * (best["trainer_ms"] / best["bare_ms"] - 1),
        "overhead_percent_from_disk": 100 * (best["from_disk_ms"] / best["bare_ms"] - 1),
        "load_ms": 1e3 * statistics.median(loads),
        "load_ms_worst": 1e3 * max(loads),
        "data_megabytes": size / 1e6,
        "page_budget_megabytes": size / SAMPLES * BATCH / 1e6,
        "read_megabytes_per_step": read / 1e6 / REPEATS / (WARM_UP + STEPS),
        "device": jax.devices()[0].device_kind,
        "cores": len(os.sched_getaffinity(0)),
    }


def read_from_disk() -> int:
    """Bytes that this process has had read from a disk so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock * 512


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
            "steps": WARM_UP + STEPS + 1,
            "logging": {"every": WINDOW},
        }
    )


def evicting(task: tasks.Task) -> tasks.Task:
    sets = [Evicting(d.path, d.meta, d.fields, d.window) for d in task.train]
    return task._replace(train=sets)


def trained(task: tasks.Task, workdir: pathlib.Path) -> list[float]:
    """Seconds a step in each window after the warm-up, as the run's own log shows them."""
    train.run(task, config_of(*(dataset.path for dataset in task.train)), workdir)
    # The step after the last window, with its checkpoint, is not timed.
    return _windows([entry["time"] for entry in logs.read(workdir, "train")[:-1]])


def step_timers(path: pathlib.Path):
    """Two functions that time steps on one batch on the device: the bare and the trainer's step."""
    config = config_of(path)
    equation = equations.get("darcy")
    model, apply_fn = network.build(config, equation, None)
    optimizer = optimizers.build(config.optimizer, config.steps)
    key = jax.random.key(0)
    batch = data.load(path).examples(np.arange(BATCH))
    init = jax.jit(lambda: network.init(model, equation, (GRID, GRID), key))

    def loss_fn(params, batch, key, progress):
        options = {"equation": equation, "key": key, "progress": progress}
        return training_loss(apply_fn, params, batch, **options)

    def step(params, state, batch):
        def mean_loss(params):
            return loss_fn(params, batch, key, 0.0)[0].mean()

        loss, gradient = jax.value_and_grad(mean_loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    bare = jax.jit(step, donate_argnums=(0, 1))

    def time_bare() -> list[float]:
        params = init()
        carry, on_device = (params, optimizer.init(params)), jax.device_put(batch)

        def advance(carry, number):
            *carry, loss = bare(*carry, on_device)
            return carry, loss

        return _seconds_per_step(advance, carry)

    mesh = parallel.data_mesh()
    full = make_step(loss_fn, optimizer, mesh, total_steps=config.steps)
    weighted = parallel.split((batch, np.ones(BATCH, np.float32)), mesh)
    numbers = [parallel.split(np.array([n], np.int32), mesh) for n in range(WARM_UP + STEPS)]

    def time_full() -> list[float]:
        state = parallel.replicate(init_state(init(), optimizer, key, averaged=False), mesh)

        def advance(state, number):
            return full(state, weighted, Control(numbers[number], numbers[0]))

        return _seconds_per_step(advance, state)

    return time_bare, time_full


def _seconds_per_step(advance, carry) -> list[float]:
    times = []
    for number in range(WARM_UP + STEPS):
        if number % WINDOW == 0:
            jax.block_until_ready(carry)
            times.append(time.perf_counter())
        carry, _ = advance(carry, number)
    jax.block_until_ready(carry)
    times.append(time.perf_counter())
    return _windows(times)


def _windows(times: list[float]) -> list[float]:
    """Seconds a step in each window after the warm-up."""
    return [(after - before) / WINDOW for before, after in pairwise(times)][WARM_UP // WINDOW :]


def table(result: dict) -> str:
    return "\n".join(
        [
            f"FNO, {result['grid']}² grid, batch {result['batch']}, {result['cores']} cores, "
            f"best {WINDOW} steps of {result['repeats']} turns of {result['steps']}",
            "",
            "| | ms a step | relative to the bare step |",
            "|---|---|---|",
            f"| bare compiled step | {result['bare_ms']:.2f} | 1 |",
            f"| the trainer's compiled step | {result['step_ms']:.2f} | "
            f"{result['step_ms'] / result['bare_ms']:.3f} |",
            f"| trainer, data in memory | {result['trainer_ms']:.2f} | "
            f"{result['trainer_ms'] / result['bare_ms']:.3f} |",
            f"| trainer, every batch from disk | {result['from_disk_ms']:.2f} | "
            f"{result['from_disk_ms'] / result['bare_ms']:.3f} |",
            f"| loading one batch alone | {result['load_ms']:.2f} (worst "
            f"{result['load_ms_worst']:.2f}) | {result['load_ms'] / result['bare_ms']:.3f} |",
            "",
            f"Data set {result['data_megabytes']:.0f} MB, page budget "
            f"{result['page_budget_megabytes']:.2f} MB, "
            f"{result['read_megabytes_per_step']:.2f} MB read from disk a step.",
        ]
    )


if __name__ == "__main__":
    main()
