"""Forward pass and training step of the FNO against neuraloperator (torch) on the same cores.

    python -m benchmarks train_step

Both sides build the same architecture with the same number of parameters, and time the forward pass
and a full step: relative L2 loss, gradient, Adam. Each side is a process of its own, because the
allocator is set up by the environment a process starts with; both get the same. They take turns of
a few calls, since the machine's speed changes by the minute, and the ratios are medians over pairs
of turns. Peak memory is a process's largest resident set, the libraries themselves included.
"""

import dataclasses
import json
import math
import operator
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from sino_jax import runtime

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "benchmarks" / "train_step.json"


@dataclasses.dataclass(frozen=True)
class Case:
    """An FNO in two dimensions and the batch it is trained on."""

    name: str
    batch: int
    points: int
    in_channels: int
    out_channels: int
    width: int
    modes: int
    layers: int = 4

    def forward_flops(self) -> tuple[float, float, float]:
        """Of the pointwise maps, the Fourier transforms and the mixing of modes."""
        from sino_jax.nn import bands, dft

        grid, modes = (self.points,) * 2, (self.modes,) * 2
        w, expanded = self.width, 2 * self.width
        maps = (self.in_channels + 2) * expanded + expanded * w + self.layers * 2 * w * w
        maps += w * expanded + expanded * self.out_channels
        pointwise = 2 * self.batch * self.points**2 * maps
        transforms = 2 * self.layers * self.batch * w * dft.matrix_flops(grid, modes)
        coefficients = math.prod(bands.band_shape(modes))
        return pointwise, transforms, 8.0 * self.layers * self.batch * coefficients * w * w

    def step_flops(self) -> float:
        """The gradient costs two more products per map, and one more per (fixed) transform."""
        pointwise, transforms, mixing = self.forward_flops()
        return 3 * pointwise + 2 * transforms + 3 * mixing


CASES = (
    Case("darcy", 8, 128, 5, 1, width=64, modes=20),
    Case("helmholtz", 2, 257, 9, 2, width=32, modes=64),
    Case("navier_stokes", 10, 128, 10, 1, width=40, modes=40, layers=3),
    Case("small 65²", 16, 65, 5, 1, width=24, modes=12),
    Case("small 97²", 8, 97, 5, 1, width=32, modes=16),
    Case("small 129²", 8, 129, 5, 1, width=32, modes=16),
)
CROPS = (33, 65, 97, 129)
TURNS, CALLS = 5, 4  # of a side in each case, and of a function in each turn


def main() -> None:
    results = dict(peak_gflops=_run("peak", CASES[0], "tuned")["gflops"], rows=[])
    for case in CASES:
        settings = ("tuned", "default") if case.name == "darcy" else ("tuned",)
        for allocator in settings:
            row = dict(case=case.name, allocator=allocator, gflop=case.step_flops() / 1e9)
            results["rows"].append({**row, **_compare(case, allocator)})
            _save(results)
    results["costs"] = _run("costs", CASES[0], "tuned")
    _save(results)
    print(_tables(results))


def _compare(case: Case, allocator: str) -> dict:
    """Times and memory of both sides, and the ratios of their times."""
    times = {(side, name): [] for side in ("jax", "torch") for name in ("step", "forward")}
    with _started("jax", case, allocator) as jax, _started("torch", case, allocator) as torch:
        processes = dict(jax=jax, torch=torch)
        for _ in range(TURNS):
            for name in ("step", "forward"):
                for side, process in processes.items():
                    times[side, name].append(_ask(process, name))
        row = {side: _ask(process, "summary") for side, process in processes.items()}
    for (side, name), values in times.items():
        row[side][f"{name}_ms"] = statistics.median(values)
    for name in ("step", "forward"):
        ratios = map(operator.truediv, times["torch", name], times["jax", name])
        row[f"{name}_ratio"] = statistics.median(ratios)
    return row


def _save(results: dict) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _started(side: str, case: Case, allocator: str) -> subprocess.Popen:
    """A process of this module that answers on its standard output, see `_worker`."""
    untouched = {key: value for key, value in os.environ.items() if key not in runtime.ALLOCATOR}
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.train_step", side, case.name],
        env={**untouched, **(runtime.ALLOCATOR if allocator == "tuned" else {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(process: subprocess.Popen, question: str) -> Any:
    """The answer of a started process, once it is ready for the question."""
    process.stdin.write(question + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"{process.args} ended with exit code {process.wait()}")
    return json.loads(answer)


def _run(side: str, case: Case, allocator: str) -> dict:
    """One measurement in a process of its own."""
    with _started(side, case, allocator) as process:
        return _ask(process, "summary")


def _milliseconds(function, *, budget: float = 4.0) -> float:
    """Median time of a call after two to warm up, for about `budget` seconds."""
    function()
    function()
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < budget and len(times) < 25):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e3 * sorted(times)[len(times) // 2]


def _jax_functions(case: Case):
    """(forward, step, parameters) of our model; both functions block until they are done."""
    import jax
    import jax.numpy as jnp
    import optax

    from sino_jax import models
    from sino_jax.train import parallel

    if runtime.ALLOCATOR.items() <= os.environ.items():
        runtime.use_synchronous_dispatch()  # as `runtime.prepare` does with the same allocator
    config = dict(n_modes=(case.modes,) * 2, hidden_channels=case.width, n_layers=case.layers)
    model = models.build(dict(name="fno", out_channels=case.out_channels, **config))
    grid = (case.batch, case.points, case.points)
    inputs = jax.random.normal(jax.random.key(0), (*grid, case.in_channels))
    target = jax.random.normal(jax.random.key(1), (*grid, case.out_channels))
    scale = jnp.ones(case.batch)
    optimiser = optax.adam(1e-3)

    def loss(variables):
        difference = model.apply(variables, inputs, scale) - target
        norms = [jnp.linalg.norm(a.reshape(case.batch, -1), axis=1) for a in (difference, target)]
        return jnp.mean(norms[0] / norms[1])

    def update(variables, state):
        value, gradient = jax.value_and_grad(loss)(variables)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(variables, updates), state, value

    options = parallel.compiler_options(parallel.data_mesh())  # of training
    update = jax.jit(update, donate_argnums=(0, 1), compiler_options=options)
    apply = jax.jit(model.apply)
    variables = jax.jit(model.init)(jax.random.key(2), inputs, scale)
    training = [jax.tree.map(jnp.copy, variables), optimiser.init(variables)]

    def forward():
        apply(variables, inputs, scale).block_until_ready()

    def step():
        *training[:], value = update(*training)
        value.block_until_ready()

    return forward, step, sum(leaf.size for leaf in jax.tree.leaves(variables))


def _torch_functions(case: Case):
    import torch
    from neuralop.models import FNO

    torch.set_num_threads(os.cpu_count())
    # neuraloperator counts the modes of both signs: 2m - 1 of them are the band |ξ| < m.
    model = FNO(
        n_modes=(2 * case.modes - 1,) * 2,
        in_channels=case.in_channels,
        out_channels=case.out_channels,
        hidden_channels=case.width,
        n_layers=case.layers,
    )
    inputs = torch.randn(case.batch, case.in_channels, case.points, case.points)
    target = torch.randn(case.batch, case.out_channels, case.points, case.points)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def forward():
        with torch.no_grad():
            model(inputs)

    def step():
        optimiser.zero_grad()
        difference = (model(inputs) - target).flatten(1).norm(dim=1)
        (difference / target.flatten(1).norm(dim=1)).mean().backward()
        optimiser.step()

    parameters = sum(p.numel() * (2 if p.is_complex() else 1) for p in model.parameters())
    return forward, step, parameters


def _training_worker(side: str, case: Case) -> dict[str, Callable[[], Any]]:
    functions = _jax_functions if side == "jax" else _torch_functions
    forward, step, parameters = functions(case)
    begin = time.perf_counter()
    step()
    first = time.perf_counter() - begin
    for _ in range(CALLS):
        step()
    # That of training: forward passes between the steps would add to it.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for _ in range(CALLS):
        forward()

    def turn(function):
        begin = time.perf_counter()
        for _ in range(CALLS):
            function()
        return 1e3 * (time.perf_counter() - begin) / CALLS

    summary = dict(first_step_s=first, peak_mb=memory, parameters=parameters)
    return dict(step=lambda: turn(step), forward=lambda: turn(forward), summary=lambda: summary)


def _peak_worker(_: Case) -> dict:
    """The machine's matrix-product peak: a large square product by JAX."""
    import jax
    import jax.numpy as jnp

    size = 3072
    matrix = jax.random.normal(jax.random.key(0), (size, size))
    product = jax.jit(jnp.matmul)
    elapsed = _milliseconds(lambda: product(matrix, matrix).block_until_ready(), budget=3.0)
    return dict(gflops=2 * size**3 / elapsed / 1e6)


def _costs_worker(_: Case) -> dict:
    """Step time against grid, modes and width; compile time of crop sizes; matrix against FFT."""
    import jax

    from sino_jax.nn import spectral

    base = Case("base", 8, 65, 5, 1, width=32, modes=12)
    variants = {f"{n}² points": dataclasses.replace(base, points=n) for n in CROPS}
    variants |= {f"{m} modes": dataclasses.replace(base, modes=m) for m in (6, 24)}
    variants |= {f"width {w}": dataclasses.replace(base, width=w) for w in (16, 64)}
    steps, compiles = {}, {}
    for name, variant in variants.items():
        _, step, _ = _jax_functions(variant)
        begin = time.perf_counter()
        step()
        compiles[name] = time.perf_counter() - begin
        steps[name] = _milliseconds(step, budget=0.5)
    transforms = {}
    for points, modes in ((64, 32), (128, 20), (128, 64), (256, 128), (512, 20), (512, 256)):
        field = jax.random.normal(jax.random.key(0), (points, 16, 2, points))
        for method in ("matrix", "fft"):

            def function(field, method=method, modes=modes):
                return spectral.transform(field, (modes, modes), method=method)

            compiled = jax.jit(function)
            run = lambda f=compiled, x=field: f(x).block_until_ready()  # noqa: E731
            transforms[f"{points}² {modes} modes {method}"] = _milliseconds(run, budget=0.3)
    return dict(step_ms=steps, compile_s=compiles, transform_ms=transforms)


def _tables(results: dict) -> str:
    peak = results["peak_gflops"]
    lines = [
        "| case | allocator | step ms | neuraloperator | ratio | forward ms | neuraloperator "
        "| ratio | peak MB | neuraloperator | GFLOP | of peak |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        ours, theirs = row["jax"], row["torch"]
        fraction = row["gflop"] / (ours["step_ms"] / 1e3) / peak
        lines.append(
            f"| {row['case']} | {row['allocator']} "
            f"| {ours['step_ms']:.0f} | {theirs['step_ms']:.0f} "
            f"| **{row['step_ratio']:.2f}** "
            f"| {ours['forward_ms']:.0f} | {theirs['forward_ms']:.0f} "
            f"| {row['forward_ratio']:.2f} "
            f"| {ours['peak_mb']:.0f} | {theirs['peak_mb']:.0f} "
            f"| {row['gflop']:.1f} | {fraction:.0%} |"
        )
    lines.append(f"\nMatrix-product peak: {peak:.0f} GFLOP/s.")
    for name, unit in (("step_ms", "ms"), ("compile_s", "s"), ("transform_ms", "ms")):
        lines += [f"\n| {name} | {unit} |", "|---|---|"]
        lines += [f"| {key} | {value:.2f} |" for key, value in results["costs"][name].items()]
    return "\n".join(lines)


def _worker(side: str, name: str) -> None:
    """Answers the questions of `_ask`, one a line, in JSON."""
    case = next(case for case in CASES if case.name == name)
    special = {"peak": _peak_worker, "costs": _costs_worker}
    if side in special:
        answers = dict(summary=lambda: special[side](case))
    else:
        answers = _training_worker(side, case)
    for question in sys.stdin:
        print(json.dumps(answers[question.strip()]()), flush=True)


if __name__ == "__main__":
    _worker(*sys.argv[1:])
