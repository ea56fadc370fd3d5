"""How far the base solutions alone are from the solution, on the test data of every scale.

    python -m benchmarks bases      # makes the data sets of preset small, if they are not there

No network, no training: the relative L2 error that a model on top of a base starts from. "+ j" is
the base after j iterations of `sino_jax.krylov.improve`, the option base_iterations of models.
"""

import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import base, data, krylov
from solvers import generate
from solvers.configs import darcy, helmholtz

OUTPUT = pathlib.Path("results/benchmarks/bases.json")
DATA = pathlib.Path("data")
SHIFT = 0.05
ITERATIONS = (1, 2, 3)


def improved(iterations: int):
    """The base that knows the equation, after so many iterations."""

    def solve(g, a, k):
        if jnp.iscomplexobj(g):
            start = base.helmholtz(g, k, a.mean(), shift=SHIFT)
            return krylov.improve(start, a, k, iterations=iterations)[0]
        return krylov.improve(base.harmonic(g), a, iterations=iterations)[0]

    return solve


BASES = {
    "coons": lambda g, a, k: base.coons(g),
    "harmonic": lambda g, a, k: base.harmonic(g),
    "helmholtz": lambda g, a, k: base.helmholtz(g, k, a.mean()),
    f"helmholtz, shift {SHIFT}": lambda g, a, k: base.helmholtz(g, k, a.mean(), shift=SHIFT),
    **{f"+ {j}": improved(j) for j in ITERATIONS},
}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = []
    for config in (darcy.get_config("small"), helmholtz.get_config("small")):
        names = [f"test-{scale:g}" for scale in config.test_scales]
        paths = generate.generate_all(config, DATA, only=names, log=print)
        tests = [data.load(paths[name]) for name in names]
        rows += [measure(dataset) for dataset in sorted(tests, key=lambda d: d.scale)]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")
    print(markdown(rows))


def measure(dataset: data.Dataset) -> dict:
    """Mean and worst relative L2 error (in %) of every base that knows the equation."""
    batch = dataset.examples(np.arange(len(dataset)))
    precise = jax.tree.map(lambda x: x.astype(np.result_type(x.dtype, np.float64)), batch)
    errors, milliseconds = {}, {}
    for name, function in BASES.items():
        if name.startswith("helmholtz") and dataset.equation != "helmholtz":
            continue
        one = jax.jit(function)
        errors[name], times = [], []
        for u, a, k in zip(precise.solution, precise.coefficient, precise.scale, strict=True):
            begin = time.perf_counter()
            guess = np.asarray(one(u, a, k))
            times.append(time.perf_counter() - begin)
            errors[name].append(np.linalg.norm(guess - u) / np.linalg.norm(u))
        milliseconds[name] = 1e3 * min(times)
    return {
        "equation": dataset.equation,
        "scale": dataset.scale,
        "grid": dataset.grid,
        "samples": len(dataset),
        "error_percent": {name: 100 * float(np.mean(e)) for name, e in errors.items()},
        "worst_percent": {name: 100 * float(np.max(e)) for name, e in errors.items()},
        "milliseconds": milliseconds,
    }


def markdown(rows: list[dict]) -> str:
    columns = ["equation", "scale", "nodes", "samples", *(f"{name} (%)" for name in BASES)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        errors = [row["error_percent"].get(name) for name in BASES]
        cells = [row["equation"], f"{row['scale']:g}", f"{row['grid'][0]}²", row["samples"]]
        cells += ["" if error is None else f"{error:.2g}" for error in errors]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
