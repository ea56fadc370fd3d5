"""Seconds from the start of a command to the end of its first training step.

    taskset -c 0 python -m benchmarks first_step
    taskset -c 0 python -m benchmarks.first_step darcy helmholtz

Each row is the command of an experiment as a user types it, ``python -m experiments.NAME
--config=small``, in a process of its own: first with an empty compilation cache (cold), then with
what that left behind (warm). Its data is random numbers in the place, shape and description of the
real data, of which there are few samples, so that none is generated. Time begins with the process
and ends with the line of its log for the first step. The reference is a process that imports the
same modules, traces and compiles one training step of the same config, the largest, and takes it on
random arrays: no data, first weights, checkpoints or other programs.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable

import numpy as np

from sino_jax import runtime
from sino_jax.train import logging as logs
from solvers import generate, recipes, storage

ROWS = tuple(
    (name, text)
    for name in ("darcy", "helmholtz", "burgers", "navier_stokes")
    for text in ("small", "small,consistency=sub")
)
FEW = "data=small;train_samples=16;val_samples=1;test_samples=1"
RESULT = pathlib.Path("results/benchmarks/first_step.json")


def main(names: Iterable[str] = ()) -> None:
    chosen = [row for row in ROWS if not names or row[0] in names]
    rows = []
    print("| command | cache | first step s | bare step s |\n|---|---|---|---|")
    for name, text in chosen:
        with tempfile.TemporaryDirectory() as place:
            write_data(name, pathlib.Path(place) / "data")
            for cache in ("cold", "warm"):
                first = command_seconds(name, text, pathlib.Path(place), cache)
                bare = bare_seconds(name, text, pathlib.Path(place))
                rows.append(dict(case=f"{name} {text}", cache=cache, first=first, bare=bare))
                print(f"| {name} {text} | {cache} | {first:.1f} | {bare:.1f} |", flush=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0))
    RESULT.write_text(json.dumps(dict(cores=cores, rows=rows), indent=1) + "\n")


def write_data(name: str, place: pathlib.Path) -> None:
    """Random data sets that the experiment's command takes for its own."""
    experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    config = experiment.data_config(FEW.removeprefix("data=").replace(";", ","))
    rng = np.random.default_rng(0)
    for directory, settings in generate.data_sets(config).items():
        description = generate.description(settings)
        shapes = _field_shapes(settings)
        fields = {
            field: [_random(rng, (settings["samples"], *shape), dtype)]
            for field, (shape, dtype) in shapes.items()
        }
        measures = {limit: np.zeros(settings["samples"]) for limit in settings["limits"]}
        storage.write(place / config.name / directory, description, fields, measures)


def _field_shapes(settings) -> dict[str, tuple[tuple[int, ...], str]]:
    recipe = recipes.get(settings)
    grid = tuple(recipe.grid["shape"])
    if recipe.window is not None:
        return {"trajectory": ((settings["frames"], *grid, 1), "float32")}
    waves = settings["equation"] == "helmholtz"
    fields = {"solution": ((*grid, 1), "complex64" if waves else "float32")}
    if settings["equation"] in ("darcy", "helmholtz"):
        fields["coefficient"] = ((*grid, 1), "float32")
    return fields


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    # Positive, as coefficients are.
    return (1 + 0.1 * rng.normal(size=shape)).astype(dtype)


def command_seconds(name: str, text: str, place: pathlib.Path, cache: str) -> float:
    """Seconds to the first step of the experiment's command, which is then ended."""
    config = f"{text},{FEW},train.logging.every=1"
    command = [sys.executable, "-m", f"experiments.{name}", f"--config={config}"]
    runs = place / cache
    begin = time.time()
    process = subprocess.Popen(
        [*command, f"--data={place / 'data'}", f"--runs={runs}"],
        env=_environment(place / "command"),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    records = []
    while not records:
        time.sleep(0.02)
        if process.poll() is not None:
            raise RuntimeError(f"{command} ended: {process.stderr.read().decode()}")
        for path in runs.glob("*/*/*/*/metrics.jsonl"):
            records = logs.read(path.parent, "train")
    process.kill()
    process.wait()
    return records[0]["time"] - begin


def bare_seconds(name: str, text: str, place: pathlib.Path) -> float:
    """Seconds of a process that compiles one step and takes it."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.first_step", "bare", name, text]
    subprocess.run(command, env=_environment(place / "bare"), check=True)
    return time.perf_counter() - begin


def _environment(cache: pathlib.Path) -> dict[str, str]:
    # Neither the settings nor the switch of an allocator that this process was started with.
    ours = (*runtime.ALLOCATOR, runtime.ALLOCATOR_SWITCH)
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    return {**clean, runtime.CACHE_SWITCH: str(cache)}


def _take_bare_step(name: str, text: str) -> None:
    import jax

    from benchmarks.narrow_steps import random_arguments
    from experiments import memory

    runtime.use_synchronous_dispatch()
    runtime.use_compilation_cache()
    experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    config = importlib.import_module(f"experiments.configs.{name}").get_config(text)
    traced = memory.trace(experiment, config)
    step = traced.lower().compile()
    jax.block_until_ready(step(*random_arguments(traced)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["bare"]:
        _take_bare_step(*sys.argv[2:])
    else:
        main(sys.argv[1:])
