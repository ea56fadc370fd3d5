"""Every test problem of Darcy flow and Helmholtz solved to a tolerance: are the promises kept?

    python -m benchmarks certificates    # makes the test sets of preset small, if not there

Beside them k = 50 on the 513² nodes of preset ``paper``, eight problems.

From the base solution, in double precision, to a tolerance of 1e-4: the guaranteed bound (Darcy) or
the error estimate (Helmholtz) at which the iteration ended, over the true error; and the same for
the bound that `estimate_error(..., iterations=4)` gives afterwards. The truth is the solution of
the direct solver (Darcy) or of the data set (Helmholtz), whose rounding to single precision, of
boundary values too, may be an error of 1e-5 near a resonance.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import data, equations, krylov
from sino_jax.diagnostics import error_estimate
from sino_jax.norms import bilinear_l2_norm
from sino_jax.types import Instance
from solvers import darcy as darcy_solver
from solvers import generate
from solvers.configs import darcy, helmholtz

OUTPUT = pathlib.Path("results/benchmarks/certificates.json")
DATA = pathlib.Path("data")
TOLERANCE = 1e-4
SHARPENING = 4
POINTS_AT_ONCE = 2**16


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = []
    finer = helmholtz.get_config("paper,test_scales=50,test_samples=8,name=helmholtz-513")
    for config in (darcy.get_config("small"), helmholtz.get_config("small"), finer):
        for scale in reversed(config.test_scales):
            name = f"test-{scale:g}"
            path = generate.generate_all(config, DATA, only=[name], log=print)[name]
            rows.append(measure(data.load(path)))
            OUTPUT.parent.mkdir(parents=True, exist_ok=True)
            OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    print(markdown(rows))


def measure(dataset: data.Dataset) -> dict:
    equation = equations.get(dataset.equation)
    at_once = max(1, POINTS_AT_ONCE // int(np.prod(dataset.grid)))
    sharpen = jax.jit(
        lambda instance: (
            error_estimate.indicator(instance, equation=equation, iterations=SHARPENING).bound
        )
    )
    found = {"error": [], "estimate": [], "sharp": [], "iterations": [], "reached": []}
    for first in range(0, len(dataset), at_once):
        batch = dataset.examples(np.arange(first, min(first + at_once, len(dataset))))
        instance = in_double(batch)
        solved = krylov.solve(instance, equation=equation, tolerance=TOLERANCE)
        truth = direct(instance) if equation.name == "darcy" else jnp.asarray(batch.solution)
        errors = measured(solved.solution, truth.astype(solved.solution.dtype))
        found["error"] += np.asarray(errors).tolist()
        found["estimate"] += np.asarray(solved.residual * solved.amplification).tolist()
        found["sharp"] += np.asarray(sharpen(instance._replace(solution=solved.solution))).tolist()
        found["iterations"] += np.asarray(solved.iterations).tolist()
        found["reached"] += np.asarray(solved.reached).tolist()
    return {
        "equation": dataset.equation,
        "scale": dataset.scale,
        "grid": dataset.grid,
        "tolerance": TOLERANCE,
        **found,
    }


def in_double(batch: Instance) -> Instance:
    """The problems alone; boundary values are the trace of the stored solution."""
    solution = jnp.asarray(batch.solution, np.result_type(batch.solution.dtype, float))
    boundary = solution.at[:, 1:-1, 1:-1].set(0)
    return Instance(
        jnp.asarray(batch.coefficient, float), boundary, jnp.asarray(batch.scale, float)
    )


@jax.jit
def measured(solutions: jax.Array, truths: jax.Array) -> jax.Array:
    """Relative L2 errors."""
    norm = jax.vmap(lambda field: bilinear_l2_norm(field, (1.0, 1.0)))
    return norm(solutions - truths) / norm(truths)


@jax.jit
def direct(instance: Instance) -> jax.Array:
    """The Darcy solutions of a batch by the solver of the data."""
    problems = (instance.coefficient[..., 0], instance.boundary[..., 0])
    return jax.lax.map(lambda problem: darcy_solver.solve(*problem), problems)[..., None]


def markdown(rows: list[dict]) -> str:
    columns = ["equation", "scale", "nodes", "problems", "reached", "iterations (most)"]
    columns += ["worst error", "estimate / error (most)", "sharp bound / error (most)"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        error = np.array(row["error"])
        estimate, sharp = np.array(row["estimate"]) / error, np.array(row["sharp"]) / error
        certified = np.isfinite(sharp).all()
        cells = [row["equation"], f"{row['scale']:g}", f"{row['grid'][0]}²", len(error)]
        cells += [sum(row["reached"])]
        cells += [f"{np.mean(row['iterations']):.1f} ({max(row['iterations'])})"]
        cells += [f"{error.max():.1e}", f"{np.median(estimate):.1f} ({estimate.max():.1f})"]
        cells += [f"{np.median(sharp):.2f} ({sharp.max():.2f})" if certified else "–"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
