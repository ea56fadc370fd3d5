"""Iterations of GMRES against the shift of its preconditioner, on problems that no table uses.

    python -m benchmarks shift

The default shift of `sino_jax.krylov.shifted_inverse` is chosen by this table.
"""

import json
import pathlib

import jax
import numpy as np

from sino_jax import equations, krylov
from sino_jax.types import Instance
from solvers import helmholtz

OUTPUT = pathlib.Path("results/benchmarks/shift.json")
SEED, SAMPLES = 20, 3
SHIFTS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
TOLERANCE = 1e-4
# Wave numbers and nodes of the preset small.
PROBLEMS = ((5, 33), (10, 65), (25, 129), (50, 257))


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = [measure(k, nodes) for k, nodes in PROBLEMS]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")
    print(markdown(rows))


def measure(k: int, nodes: int) -> dict:
    sample = jax.jit(lambda key: helmholtz.sample(key, nodes, k))
    given = [sample(key) for key in jax.random.split(jax.random.key(SEED), SAMPLES)]
    counts = {}
    for shift in SHIFTS:
        found = [
            krylov.solve(
                Instance(
                    p.coefficient[None, ..., None], p.boundary[None, ..., None], p.scale[None]
                ),
                equation=equations.get("helmholtz"),
                tolerance=TOLERANCE,
                shift=shift,
            )
            for p in given
        ]
        assert all(solution.reached[0] for solution in found)
        counts[f"{shift:g}"] = [int(solution.iterations[0]) for solution in found]
    return {"k": k, "nodes": nodes, "tolerance": TOLERANCE, "iterations": counts}


def markdown(rows: list[dict]) -> str:
    columns = ["k", "nodes", *(f"shift {shift:g}" for shift in SHIFTS)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [str(row["k"]), f"{row['nodes']}²"]
        cells += [f"{np.mean(counts):.1f} ({max(counts)})" for counts in row["iterations"].values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
