"""What the trainer costs beyond the compiled step, and whether reading data ever holds it up.

    python -m benchmarks training

The bare step is one jitted function (loss, gradient, AdamW) on one batch that never leaves the
device. The trainer runs the same loss through `sino_jax.train.run`: batches from disk, weights for
uneven batches, checks for NaN, logging; once with a data set that fits into memory, and once with
one that is larger than the page budget of its reader (`Evicting` drops all its pages from memory
after every batch, so that each batch is read from disk again).

Machines change their speed by more than the few percent that are to be measured. So the trainer's
own loop stops after every window of steps, for as many bare ones (`alternating`), and what counts
is the median over all windows of their ratio to the mean of the bare windows before and after. How
long the loop waits for batches is measured within it (`waiting`).
"""

import contextlib
import functools
import json
import mmap
import os
import pathlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from unittest import mock

import jax
import numpy as np
import optax

from sino_jax import data, equations, runtime, train
from sino_jax.data.prefetch import prefetch
from sino_jax.loss import training_loss
from sino_jax.models import network
from sino_jax.train import config as configs
from sino_jax.train import logging as logs
from sino_jax.train import loop
from sino_jax.train import optimizer as optimizers
from sino_jax.train import task as tasks
from solvers import storage

RESULT = pathlib.Path("results/benchmarks/training.json")
GRID, SAMPLES, BATCH = 65, 2048, 8
# A window is long beside the batches that are read ahead during the one before it, and short beside
# the changes of the machine's speed. The trainer logs once in each, twice as often as by default.
WINDOW, WINDOWS, REPEATS = 25, 21, 3
_FNO = {"name": "fno", "n_modes": (12, 12), "out_channels": 1, "boundary_channels": 4}
MODELS = {
    # That of ``experiments.configs.darcy``, preset small, and one whose steps are much shorter.
    "preset small": {**_FNO, "hidden_channels": 24, "n_layers": 4, "padding": 0.25},
    "fewer layers": {**_FNO, "hidden_channels": 16, "n_layers": 2},
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
    runtime.use_synchronous_dispatch()
    with tempfile.TemporaryDirectory() as place:
        runtime.use_compilation_cache(pathlib.Path(place) / "compiled")
        path = write_data(pathlib.Path(place) / "train-4")
        result = {
            name: measure(model, path, pathlib.Path(place) / name) for name, model in MODELS.items()
        }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    for name, measured in result.items():
        print(f"\n{name}: {table(measured)}")


@contextlib.contextmanager
def alternating(time_bare: Callable[[], float]) -> Iterator[dict[str, list[float]]]:
    """Seconds a step of each window of a trainer, as it logs them, and of bare ones after each."""
    seconds = {"trainer": [], "bare": []}
    log, since = logs.Logger.train, time.perf_counter()

    def log_and_pause(*args):
        nonlocal since
        log(*args)
        seconds["trainer"].append((time.perf_counter() - since) / WINDOW)
        seconds["bare"].append(time_bare())
        since = time.perf_counter()

    with mock.patch.object(logs.Logger, "train", log_and_pause):
        yield seconds


@contextlib.contextmanager
def waiting() -> Iterator[list[float]]:
    """Seconds that a trainer waits for the batch of each step."""
    seconds = []

    def timed(*args):
        with contextlib.closing(prefetch(*args)) as stream:
            while True:
                start = time.perf_counter()
                item = next(stream, None)
                seconds.append(time.perf_counter() - start)
                if item is None:
                    return
                yield item
                del item

    with mock.patch.object(loop, "prefetch", timed):
        yield seconds


def measure(model: dict, path: pathlib.Path, place: pathlib.Path) -> dict:
    config = config_of(model, path)
    time_bare = bare_timer(config, path)
    task = tasks.build(config)
    tasks_of = {"in_memory": task, "from_disk": evicting(task)}
    seconds = {name: {"trainer": [], "bare": []} for name in tasks_of}
    waits = {name: [] for name in tasks_of}
    read = 0
    for number in range(REPEATS):
        for name, chosen in tasks_of.items():
            for field in task.train[0].fields.values():
                field.sum()  # reads all of it
            before = read_from_disk()
            with alternating(time_bare) as windows, waiting() as waited:
                train.run(chosen, config, place / f"{name}-{number}")
            read += read_from_disk() - before if name == "from_disk" else 0
            # The first window compiles.
            waits[name] += waited[WINDOW:]
            for timed, values in windows.items():
                seconds[name][timed].append(values[1:])
    dataset = tasks_of["from_disk"].train[0]
    loads = []
    for first in range(0, 40 * BATCH, BATCH):
        start = time.perf_counter()
        dataset.examples(np.arange(first, first + BATCH) * 5 % SAMPLES)
        loads.append(time.perf_counter() - start)
    size = sum(field.nbytes for field in dataset.fields.values())
    return {
        "grid": GRID,
        "batch": BATCH,
        "model": model,
        "steps_per_window": WINDOW,
        **{name: _summary(seconds[name], waits[name]) for name in tasks_of},
        "load_ms": 1e3 * statistics.median(loads),
        "load_ms_worst": 1e3 * max(loads),
        "data_megabytes": size / 1e6,
        "page_budget_megabytes": size / SAMPLES * BATCH / 1e6,
        "read_megabytes_per_step": read / 1e6 / REPEATS / (WINDOW * WINDOWS),
        "device": jax.devices()[0].device_kind,
        "cores": len(os.sched_getaffinity(0)),
    }


def _summary(seconds: dict[str, list[list[float]]], waits: list[float]) -> dict:
    """Medians of the times ``[run][window]``, and of their ratios to the bare ones around them."""
    trainer, bare = np.array(seconds["trainer"]), np.array(seconds["bare"])
    ratios = (2 * trainer[:, 1:] / (bare[:, :-1] + bare[:, 1:])).ravel()
    return {
        "windows": ratios.size,
        "ms": {"trainer": 1e3 * float(np.median(trainer)), "bare": 1e3 * float(np.median(bare))},
        "overhead_percent": 100 * (float(np.median(ratios)) - 1),
        "interval_percent": [100 * (limit - 1) for limit in _median_interval(ratios)],
        "waiting_percent": 100 * float(np.mean(waits) / np.mean(trainer)),
    }


def _median_interval(values: np.ndarray) -> list[float]:
    """Where the median is with 95 % confidence, by drawing the windows anew (bootstrap)."""
    drawn = np.random.default_rng(0).choice(values, (10_000, len(values)))
    return np.quantile(np.median(drawn, axis=1), (0.025, 0.975)).tolist()


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


def config_of(model: dict, path: pathlib.Path):
    return configs.complete(
        {
            "equation": "darcy",
            "model": model,
            "data": {"train": (str(path),), "batch_size": BATCH},
            "steps": WINDOW * WINDOWS,
            "logging": {"every": WINDOW},
        }
    )


def evicting(task: tasks.Task) -> tasks.Task:
    sets = [Evicting(d.path, d.meta, d.fields, d.window) for d in task.train]
    return task._replace(train=sets)


def bare_timer(config, path: pathlib.Path) -> Callable[[], float]:
    """A function that takes a window of bare steps on one batch and returns seconds a step."""
    equation = equations.get("darcy")
    model, apply_fn = network.build(config.model, equation, None)
    optimizer = optimizers.build(config.optimizer, config.steps)
    key = jax.random.key(0)
    batch = jax.device_put(data.load(path).examples(np.arange(BATCH)))
    params = jax.jit(lambda: network.init(model, equation, (GRID, GRID), key))()
    carry = (params, optimizer.init(params))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(carry, batch):
        params, state = carry
        options = {"equation": equation, "key": key, "progress": 0.0}
        loss, gradient = jax.value_and_grad(
            lambda params: training_loss(apply_fn, params, batch, **options)[0].mean()
        )(params)
        updates, state = optimizer.update(gradient, state, params)
        return (optax.apply_updates(params, updates), state), loss

    def time_window() -> float:
        nonlocal carry
        start = time.perf_counter()
        for _ in range(WINDOW):
            carry, _ = step(carry, batch)
        jax.block_until_ready(carry)
        return (time.perf_counter() - start) / WINDOW

    time_window()
    return time_window


def table(result: dict) -> str:
    lines = [
        f"FNO, {result['grid']}² grid, batch {result['batch']}, {result['cores']} cores; medians "
        f"of windows of {WINDOW} steps, in brackets their 95 % confidence interval",
        "",
        "| | bare ms a step | trainer | percent more | waiting for data, percent |",
        "|---|---|---|---|---|",
    ]
    for place, label in (("in_memory", "data in memory"), ("from_disk", "every batch from disk")):
        measured = result[place]
        low, high = measured["interval_percent"]
        lines.append(
            f"| {label} | {measured['ms']['bare']:.2f} | {measured['ms']['trainer']:.2f} | "
            f"{measured['overhead_percent']:.1f} ({low:.1f} to {high:.1f}) | "
            f"{measured['waiting_percent']:.2f} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            f"Loading one batch alone takes {result['load_ms']:.2f} ms (worst "
            f"{result['load_ms_worst']:.2f}). "
            f"Data set {result['data_megabytes']:.0f} MB, page budget "
            f"{result['page_budget_megabytes']:.2f} MB, "
            f"{result['read_megabytes_per_step']:.2f} MB read from disk a step.",
        ]
    )


if __name__ == "__main__":
    main()
