"""Iterations of GMRES against the shift of its preconditioner, on problems that no table uses.

    python -m benchmarks shift

Media of the data's distribution with random waves as boundary values, in double precision. The
default shift of `sino_jax.krylov.shifted_inverse` is chosen by this table.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import equations, krylov
from sino_jax.types import Instance
from solvers import helmholtz

OUTPUT = pathlib.Path("results/benchmarks/shift.json")
SEED, SAMPLES = 20, 3
SHIFTS = (0.0, 0.005, 0.02, 0.1)
TOLERANCE = 1e-4
# Wave numbers, and nodes as in the data's preset small.
PROBLEMS = ((10, 65), (25, 129), (50, 257))


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = []
    for k, nodes in PROBLEMS:
        rows.append(measure(k, nodes))
        print(markdown(rows).splitlines()[-1], flush=True)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")
    print(markdown(rows))


def measure(k: int, nodes: int) -> dict:
    sample = jax.jit(lambda key: problem(key, k, nodes))
    given = [sample(key) for key in jax.random.split(jax.random.key(SEED), SAMPLES)]
    options = {"equation": equations.get("helmholtz"), "tolerance": TOLERANCE}
    counts = {}
    for shift in SHIFTS:
        found = [krylov.solve(each, shift=shift, **options) for each in given]
        assert all(solution.reached[0] for solution in found)
        counts[f"{shift:g}"] = [int(solution.iterations[0]) for solution in found]
    return {"k": k, "nodes": nodes, "tolerance": TOLERANCE, "iterations": counts}


def problem(key: jax.Array, k: int, nodes: int) -> Instance:
    of_medium, of_wave = jax.random.split(key)
    medium = helmholtz.sample_coefficient(of_medium, (nodes, nodes))
    wave = helmholtz.sample_boundary(of_wave, (nodes, nodes), k)
    return Instance(medium[None, ..., None], wave[None, ..., None], jnp.full(1, float(k)))


def markdown(rows: list[dict]) -> str:
    columns = ["k", "nodes", *(f"shift {shift:g}" for shift in SHIFTS)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [str(row["k"]), f"{row['nodes']}²"]
        cells += [f"{np.mean(counts):.1f} ({max(counts)})" for counts in row["iterations"].values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
