"""Iterations of GMRES against the shift of its preconditioner, on problems of the training sets.

    python -m benchmarks shift    # makes the training sets of preset small, if not there

The default shift of `sino_jax.krylov.shifted_inverse` is chosen by this table, which no test
problem enters.
"""

import json
import pathlib

import jax
import numpy as np

from benchmarks.certificates import in_double
from sino_jax import data, equations, krylov
from solvers import generate
from solvers.configs import helmholtz

OUTPUT = pathlib.Path("results/benchmarks/shift.json")
DATA = pathlib.Path("data")
SAMPLES = 3
SHIFTS = (0.0, 0.005, 0.02, 0.1)
TOLERANCE = 1e-4
WAVE_NUMBERS = (10, 25)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    names = [f"train-{k}" for k in WAVE_NUMBERS]
    paths = generate.generate_all(helmholtz.get_config("small"), DATA, only=names, log=print)
    rows = [measure(data.load(paths[name])) for name in names]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")
    print(markdown(rows))


def measure(dataset: data.Dataset) -> dict:
    given = [in_double(dataset.examples(np.array([i]))) for i in range(SAMPLES)]
    options = {"equation": equations.get("helmholtz"), "tolerance": TOLERANCE}
    counts = {}
    for shift in SHIFTS:
        found = [krylov.solve(problem, shift=shift, **options) for problem in given]
        assert all(solution.reached[0] for solution in found)
        counts[f"{shift:g}"] = [int(solution.iterations[0]) for solution in found]
    grid = dataset.grid
    return {"k": dataset.scale, "grid": grid, "tolerance": TOLERANCE, "iterations": counts}


def markdown(rows: list[dict]) -> str:
    columns = ["k", "nodes", *(f"shift {shift:g}" for shift in SHIFTS)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"{row['k']:g}", f"{row['grid'][0]}²"]
        cells += [f"{np.mean(counts):.1f} ({max(counts)})" for counts in row["iterations"].values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
