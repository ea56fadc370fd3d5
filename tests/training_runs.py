"""Small training runs for the tests, in this process or in others.

    python -m tests.training_runs RUN.json...

trains the stand-in task of each file (a config and a workdir), as an entry point would.
"""

import itertools
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import checkpoint, data, equations, problem, runtime, train
from sino_jax.loss import relative_l2
from sino_jax.loss.terms import Term
from sino_jax.models import network
from sino_jax.operator import Operator
from sino_jax.train import config as configs
from sino_jax.train import evaluate
from sino_jax.train import task as tasks
from sino_jax.train.gradient import SumOfTerms
from solvers import storage

ROOT = pathlib.Path(__file__).parents[1]


def write_darcy(
    path, *, samples=10, grid=(9, 9), scale=4.0, split="train", seed=0, equation="darcy"
):
    """A data set of the right format: u = a (α + β x + γ y + δ x y) with random numbers."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(*(np.linspace(0, 1, n) for n in grid), indexing="ij")
    basis = np.stack([np.ones_like(x), x, y, x * y])
    weights = rng.normal(size=(samples, 4))
    size = rng.uniform(1, 2, (samples, 1, 1))
    solution = size * np.einsum("sk,kxy->sxy", weights, basis)
    coefficient = np.broadcast_to(size, solution.shape)
    fields = {"coefficient": coefficient, "solution": solution}
    return write_dataset(path, fields, equation=equation, scale=scale, split=split)


def write_dataset(path, fields, *, equation, scale, split="train", window=None):
    """Writes fields ``[sample, (time,) *grid]`` of one channel as a data set."""
    arrays = {name: np.asarray(field, np.float32)[..., None] for name, field in fields.items()}
    samples, *shape, _ = next(iter(arrays.values())).shape
    equation = equations.get(equation)
    axes = equation.axes
    description = storage.describe(
        equation=equation.name,
        split=split,
        scale=scale,
        samples=samples,
        seed=0,
        grid={
            "axes": [axis.name for axis in axes],
            "shape": shape[1:] if window else shape,
            "centrings": [axis.centring for axis in axes],
            "extent": [1.0] * len(axes),
        },
        window=window,
        units={},
        limits={"residual": 1.0},
        config={},
        versions={},
    )
    measures = {"residual": np.zeros(samples)}
    storage.write(path, description, {name: [array] for name, array in arrays.items()}, measures)
    return str(path)


def untrained_operator(grid=(9, 9)):
    """An operator for Darcy flow with random weights that claims to be trained on `grid`."""
    darcy = equations.get("darcy")
    config = configs.complete(fno_config(["unused"]))
    model, apply_fn = network.build(config.model, darcy, None)
    params = network.init(model, darcy, (9, 9), jax.random.key(0))
    meta = {
        "config": configs.to_dict(config),
        "statistics": None,
        "scales": [4.0],
        "grids": [list(grid)],
        "scale_range": [2.0, 8.0],
    }
    return Operator(darcy, apply_fn, params, meta)


def fno_config(train_data, test_data=(), **changes):
    """A config of a tiny Fourier neural operator; `changes` are merged into its sections."""
    model = {
        "name": "fno",
        "n_modes": (2, 2),
        "hidden_channels": 4,
        "n_layers": 1,
        "out_channels": 1,
        "boundary_channels": 4,
    }
    return config(train_data, test_data, model=model, **changes)


def config(train_data, test_data=(), **changes):
    """A config of 20 steps, by default of the stand-in task."""
    fields = {
        "equation": "darcy",
        "data": {"train": tuple(train_data), "test": tuple(test_data), "batch_size": 4},
        "steps": 20,
        "optimizer": {"learning_rate": 1e-2},
        "checkpoint": {"every": 5},
        "logging": {"every": 5},
    }
    for name, value in changes.items():
        fields[name] = {**fields.get(name, {}), **value} if isinstance(value, dict) else value
    return fields


def stand_in_task(config):
    """A pointwise network with two layers: it compiles at once, and trains like any other.

    ``config.experiment`` may hold ``noise``, the size of a random term of the loss (it makes the
    result depend on random keys), and ``pause``, seconds that loading a batch takes from the batch
    ``pause_from`` on.
    """
    full = configs.complete(config)
    equation = equations.get(full.equation)
    train_data = [data.load(path) for path in full.data.train]
    test_data = [data.load(path) for path in full.data.test]
    noise, pause = (full.experiment.get(name, 0.0) for name in ("noise", "pause"))
    pause_from = full.experiment.get("pause_from", 0)

    def init(key):
        keys = jax.random.split(key)
        shapes = {"first": (equation.input_channels, 8), "second": (8, 1)}
        return {n: jax.random.normal(k, s) for k, (n, s) in zip(keys, shapes.items(), strict=True)}

    def apply_fn(params, inputs, scale):
        del scale
        return jnp.tanh(inputs @ params["first"]) @ params["second"]

    def terms(batch, key, progress):
        del progress
        points = math.prod(batch.grid)

        def error(params, batch):
            prediction = apply_fn(params, problem.inputs(equation, batch), batch.scale)
            return relative_l2(prediction, batch.solution)

        def draw():
            return jax.random.normal(key, batch.scale.shape)

        def random(params, drawn):
            return drawn * jnp.sum(params["second"])

        return [
            Term("error", 1.0, 1.0, points, lambda: batch, error),
            Term("noise", noise, 1.0, points, draw, random),
        ]

    loss_fn = SumOfTerms(terms)

    def evaluation(params, mesh, *, last):
        del last
        metrics = evaluate.error_metrics(apply_fn, equation)
        evaluator = evaluate.Evaluator(metrics, mesh, points_per_batch=1000)
        return {d.path.name: evaluator(params, d) for d in test_data}

    return tasks.Task(
        init=init,
        loss_at=lambda dataset, step, total_steps: loss_fn,
        train=[watched(d, lambda n: time.sleep(pause * (n >= pause_from))) for d in train_data],
        evaluate=evaluation,
        meta={
            "statistics": None,
            "scales": [],
            "datasets": {str(d.path): d.digest for d in train_data},
            "validation": [d.path.name for d in test_data],
        },
    )


def watched(dataset, action):
    """The data set, calling ``action(n)`` before its n-th batch is loaded."""
    calls = itertools.count()

    class Watched(data.Dataset):
        def examples(self, ids):
            action(next(calls))
            return super().examples(ids)

    return Watched(dataset.path, dataset.meta, dataset.fields, dataset.window)


def train_stand_in(config, workdir):
    return train.run(stand_in_task(config), config, workdir)


def start(*runs, devices=1, cache=None, environment=None, **options):
    """Starts a process that trains the stand-in for each (config, workdir) of `runs` in turn."""
    files = []
    for number, (config, workdir) in enumerate(runs):
        workdir = pathlib.Path(workdir)
        workdir.parent.mkdir(parents=True, exist_ok=True)
        process = config.get("distributed", {}).get("process", 0)
        files.append(workdir.parent / f"{workdir.name}-{number}-{process}.json")
        files[-1].write_text(json.dumps({"config": config, "workdir": str(workdir)}))
    variables = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}",
        runtime.CACHE_SWITCH: "0" if cache is None else os.fspath(cache),
        "PYTHONPATH": os.fspath(ROOT),
        **(environment or {}),
    }
    command = [sys.executable, "-m", "tests.training_runs", *map(os.fspath, files)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
    return subprocess.Popen(command, env=variables, cwd=ROOT, **options)


def free_address():
    """An address on this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return f"localhost:{listener.getsockname()[1]}"


def finish(process, *, code=0, timeout=900):
    """Waits for a process of `start`; returns its output. Fails on another exit code."""
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        process.kill()  # does nothing to one that has ended
    assert process.returncode == code, f"exit code {process.returncode}:\n{output}"
    return output


def weights(workdir):
    """The weights of the newest checkpoint."""
    return checkpoint.read(workdir, checkpoint.newest(workdir))[0]["params"]


def main(*files):
    runtime.use_compilation_cache()
    for file in files:
        run = json.loads(pathlib.Path(file).read_text())
        train_stand_in(run["config"], run["workdir"])


if __name__ == "__main__":
    main(*sys.argv[1:])
