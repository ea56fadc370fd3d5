"""How far the base solutions alone are from the solution, on the data of every scale.

No network, no training: the relative L2 error that a model on top of a base starts from.
"""

import json
import pathlib
import time

import jax
import numpy as np

from sino_jax import base
from solvers import darcy, helmholtz

OUTPUT = pathlib.Path("results/benchmarks/bases.json")
# Scale, nodes a side as in the data sets, and samples: fewer where a solve takes long.
DARCY = ((2, 64, 32), (3, 96, 32), (4, 128, 32), (8, 256, 16), (16, 512, 4))
HELMHOLTZ = ((1, 65, 32), (2, 65, 32), (5, 65, 32), (10, 129, 32), (25, 257, 16), (50, 513, 4))
SHIFT = 0.05


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    cases = [(darcy, *case) for case in DARCY] + [(helmholtz, *case) for case in HELMHOLTZ]
    rows = []
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    # Smallest grids first, and written as they come: the last solves take minutes to compile.
    for case in sorted(cases, key=lambda case: case[2]):
        rows.append(measure(*case))
        print(markdown(rows[-1:], header=len(rows) == 1), flush=True)
        OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")


def measure(equation, scale: float, nodes: int, samples: int) -> dict:
    """Mean relative L2 error (in %) of every base over random instances of one scale."""
    bases = {
        "coons": lambda g, a: base.coons(g),
        "harmonic": lambda g, a: base.harmonic(g),
    }
    if equation is helmholtz:
        bases["helmholtz"] = lambda g, a: base.helmholtz(g, float(scale), a.mean())
        bases[f"helmholtz, shift {SHIFT}"] = lambda g, a: base.helmholtz(
            g, float(scale), a.mean(), shift=SHIFT
        )
    bases = {name: jax.jit(function) for name, function in bases.items()}
    errors = {name: [] for name in bases}
    milliseconds = {name: [] for name in bases}
    for key in jax.random.split(jax.random.key(0), samples):
        instance = equation.sample(key, nodes, scale)
        solution = np.asarray(instance.solution)
        g = instance.boundary[..., None]
        for name, function in bases.items():
            begin = time.perf_counter()
            u = np.asarray(function(g, instance.coefficient))[..., 0]
            milliseconds[name].append(1e3 * (time.perf_counter() - begin))
            errors[name].append(np.linalg.norm(u - solution) / np.linalg.norm(solution))
    return {
        "equation": equation.__name__.split(".")[-1],
        "scale": scale,
        "nodes": nodes,
        "samples": samples,
        "error_percent": {name: 100 * float(np.mean(e)) for name, e in errors.items()},
        "worst_percent": {name: 100 * float(np.max(e)) for name, e in errors.items()},
        "milliseconds": {name: float(np.min(t)) for name, t in milliseconds.items()},
    }


def markdown(rows: list[dict], *, header: bool) -> str:
    names = ["coons", "harmonic", "helmholtz", f"helmholtz, shift {SHIFT}"]
    lines = []
    if header:
        columns = ["equation", "scale", "nodes", "samples", *(f"{name} (%)" for name in names)]
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        values = [row["error_percent"].get(name) for name in names]
        cells = [row["equation"], row["scale"], row["nodes"], row["samples"]]
        cells += ["" if value is None else f"{value:.1f}" for value in values]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
