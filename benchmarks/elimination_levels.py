"""Where the time of a direct Helmholtz solve goes, level by level.

    python -m benchmarks elimination_levels

Each line is a program of its own on the arrays of that level, one problem of 257 x 257 nodes at
k = 25; the whole solve is the last line, and less than the sum, since the parts are fused.
"""

import json
import pathlib
import time

import jax
import jax.numpy as jnp

from solvers import darcy, dissection, elimination, elliptic, helmholtz, q1

RESULTS = pathlib.Path("results/benchmarks/elimination_levels.json")
NODES, WAVE_NUMBER, REPEATS = 257, 25.0, 7


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    shape, key = (NODES, NODES), jax.random.key(0)
    coefficient = helmholtz.sample_coefficient(key, shape)
    impedance = darcy.sample_boundary(key, shape)
    shift, robin = jnp.asarray(WAVE_NUMBER**2), jnp.asarray(1j * WAVE_NUMBER)
    operator = q1.Operator(coefficient, shift=shift, robin=robin)
    grid = dissection.dissect(shape, False)
    times = {}

    def timed(name, function, *arguments):
        compiled = jax.jit(function)
        result = jax.block_until_ready(compiled(*arguments))
        seconds = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            jax.block_until_ready(compiled(*arguments))
            seconds.append(time.perf_counter() - start)
        times[name] = 1e3 * min(seconds)
        print(f"| {name} | {times[name]:.1f} |", flush=True)
        return result

    print("| part | ms |\n|---|---|")
    leaves = timed("leaf matrices", lambda o: elliptic._leaf_matrices(grid, o), operator)
    _, schur = timed(f"eliminate {_sizes(leaves)}", elimination._eliminate, *leaves)
    for union in grid.merges:
        schur = _merge(timed, union, schur)
    index, values = elliptic._robin_entries(grid, operator)
    schur = _merge(timed, grid.ring, schur.astype(values.dtype).at[index].add(values))
    cross = timed("assemble cross", lambda s: elimination._assemble(grid.cross, s)[0][0], schur)
    timed(f"LU of the cross, {len(cross)} unknowns", jax.lax.linalg.lu, cross)
    factors = timed("all of the factorisation", elliptic.factor, operator)
    load = q1.boundary_load(impedance.astype(complex), (1.0, 1.0))
    timed("solution from factors", lambda f, b: elimination.solve(grid, f, b), factors, load)
    timed("whole solve", lambda o, b: elliptic.solve(o, b), operator, load)
    RESULTS.write_text(json.dumps(times, indent=1) + "\n")


def _merge(timed, union, schur):
    """Assembles and eliminates one level; returns what is left."""
    blocks = timed(
        f"assemble {union.eliminated} + {union.kept}",
        lambda s: elimination._assemble(union, s),
        schur,
    )
    return timed(f"eliminate {_sizes(blocks)}", elimination._eliminate, *blocks)[1]


def _sizes(blocks) -> str:
    count, eliminated, kept = blocks[1].shape
    kind = "complex" if jnp.iscomplexobj(blocks[0]) else "real"
    return f"{count} {kind} blocks, {eliminated} of {eliminated + kept} unknowns"
