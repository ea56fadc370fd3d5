"""Darcy and Helmholtz solves against SuperLU, PARDISO and algebraic multigrid, same matrices.

All times are seconds per instance. Ours is a batch of 8 (one at 1024²) after compilation, solved
one after the other by `jax.lax.map`, which keeps an instance in the cache; compilation is reported
apart. A peer's time is factorisation or set-up plus one solve, without the assembly of the matrix.
Both sides run under the tuned allocator of `sino_jax.runtime`, which ``python -m benchmarks`` sets.
PyPardiso takes real matrices only: complex systems are given to it in their real form of twice the
size.
"""

import json
import pathlib
import resource
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from solvers import darcy, helmholtz, q1

RESULTS = pathlib.Path("results/benchmarks/elliptic.json")
BATCH = 8
DARCY = {128: 4.0, 256: 8.0, 512: 16.0, 1024: 16.0}  # nodes a side: scale
HELMHOLTZ = {128: 10.0, 256: 25.0, 512: 50.0}  # cells a side: k


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = []
    for n, scale in DARCY.items():
        rows.append(_darcy(n, scale))
        _print(rows)
    for cells, k in HELMHOLTZ.items():
        rows.append(_helmholtz(cells + 1, k))
        _print(rows)
    for equation in ("darcy", "helmholtz"):
        chosen = [row for row in rows if row["equation"] == equation]
        sizes = np.log([row["n"] for row in chosen])
        growth = np.polyfit(sizes, np.log([row["ours"] for row in chosen]), 1)[0]
        print(f"{equation}: time grows like n^{growth:.2f} for n x n nodes")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


def _darcy(n: int, scale: float) -> dict:
    keys = jax.random.split(jax.random.key(n), 1 if n > 512 else BATCH)
    a = jnp.stack([darcy.sample_coefficient(key, (n, n), scale) for key in keys])
    g = jnp.stack([darcy.sample_boundary(key, (n, n)) for key in keys])
    ours, compilation, u = _ours(darcy.solve, a, g)
    matrix = _matrix(q1.Operator(a[0]))
    inside = np.arange(n * n).reshape(n, n)[1:-1, 1:-1].ravel()
    rhs = -(matrix @ np.asarray(g[0]).ravel())[inside]
    matrix = matrix[inside][:, inside].tocsr()
    peers = {"SuperLU": _superlu, "PARDISO": _pardiso_definite, "PyAMG": _pyamg}
    return _row("darcy", n, scale, ours, compilation, peers, matrix, rhs, u[0][1:-1, 1:-1])


def _helmholtz(n: int, k: float) -> dict:
    keys = jax.random.split(jax.random.key(n), BATCH)
    a = jnp.stack([helmholtz.sample_coefficient(key, (n, n)) for key in keys])
    g = jnp.stack([darcy.sample_boundary(key, (n, n)) for key in keys])
    solve = lambda a, g: helmholtz.solve(a, k, impedance=g)  # noqa: E731
    ours, compilation, u = _ours(solve, a, g)
    matrix = _matrix(q1.Operator(a[0], shift=jnp.asarray(k**2), robin=jnp.asarray(1j * k)))
    rhs = np.asarray(q1.boundary_load(g[0].astype(complex), (1.0, 1.0))).ravel()
    peers = {"SuperLU": _superlu, "PARDISO": _pardiso_complex}
    return _row("helmholtz", n, k, ours, compilation, peers, matrix, rhs, u[0])


def _ours(solve, a, g):
    start = time.perf_counter()
    compiled = jax.jit(lambda a, g: jax.lax.map(lambda x: solve(*x), (a, g))).lower(a, g).compile()
    compilation = time.perf_counter() - start
    times = []
    for _ in range(3):
        start = time.perf_counter()
        u = jax.block_until_ready(compiled(a, g))
        times.append((time.perf_counter() - start) / len(a))
    return min(times), compilation, u


def _row(equation, n, scale, ours, compilation, peers, matrix, rhs, u) -> dict:
    times, differences = {}, {}
    for name, peer in peers.items():
        # The first solve of a size warms the libraries up.
        best, x = min((peer(matrix, rhs) for _ in range(2 if n <= 512 else 1)), key=lambda r: r[0])
        times[name] = best
        differences[name] = float(np.linalg.norm(x - np.asarray(u).ravel()) / np.linalg.norm(x))
    return {
        "equation": equation,
        "n": n,
        "scale": scale,
        "ours": ours,
        "compilation": compilation,
        "peers": times,
        "ratio": min(times.values()) / ours,
        "difference": differences,
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _matrix(operator: q1.Operator) -> scipy.sparse.csr_matrix:
    """The assembled matrix: nine probes, since nodes three apart share no element."""
    nx, ny = operator.coefficient.shape
    dtype = float if operator.robin is None else complex
    number = np.arange(nx * ny).reshape(nx, ny)
    apply = jax.jit(lambda u: q1.apply(operator, u))
    rows, columns, values = [], [], []
    for p, q in np.ndindex(3, 3):
        probe = np.zeros((nx, ny), dtype)
        probe[p::3, q::3] = 1
        image = np.asarray(apply(jnp.asarray(probe)))
        # The probed node nearest to each node, if it is a neighbour.
        i, j = np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij")
        i, j = i + (p - i + 1) % 3 - 1, j + (q - j + 1) % 3 - 1
        valid = (i >= 0) & (i < nx) & (j >= 0) & (j < ny)
        rows.append(number[valid])
        columns.append(number[i[valid], j[valid]])
        values.append(image[valid])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return scipy.sparse.csr_matrix(entries, shape=(nx * ny, nx * ny))


def _superlu(matrix, rhs):
    matrix = matrix.tocsc()
    start = time.perf_counter()
    # Minimum degree on the symmetric pattern is SuperLU's best ordering here (COLAMD: 2x slower).
    factors = scipy.sparse.linalg.splu(
        matrix,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    x = factors.solve(rhs)
    return time.perf_counter() - start, x


def _pardiso_definite(matrix, rhs):
    return _pardiso(scipy.sparse.triu(matrix, format="csr"), rhs, 2)


def _pardiso_complex(matrix, rhs):
    real = scipy.sparse.bmat(
        [[matrix.real, -matrix.imag], [matrix.imag, matrix.real]], format="csr"
    )
    seconds, x = _pardiso(real, np.concatenate([rhs.real, rhs.imag]), 11)
    return seconds, x[: len(rhs)] + 1j * x[len(rhs) :]


def _pardiso(matrix, rhs, matrix_type):
    import pypardiso

    solver = pypardiso.PyPardisoSolver(mtype=matrix_type)
    start = time.perf_counter()
    solver.factorize(matrix)
    x = solver.solve(matrix, rhs)
    seconds = time.perf_counter() - start
    solver.free_memory(everything=True)
    return seconds, x


def _pyamg(matrix, rhs):
    import pyamg

    start = time.perf_counter()
    hierarchy = pyamg.ruge_stuben_solver(matrix)
    x = hierarchy.solve(rhs, tol=1e-10, accel="cg")
    return time.perf_counter() - start, x


def _print(rows: list[dict]) -> None:
    row = rows[-1]
    if len(rows) == 1:
        print("| equation | nodes | scale | ours s | compile s | SuperLU s | PARDISO s | PyAMG s |"
              " times faster | peak GB |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|---|---|")
    peers = [row["peers"].get(name) for name in ("SuperLU", "PARDISO", "PyAMG")]
    cells = ["–" if t is None else f"{t:.3f}" for t in peers]
    print(
        f"| {row['equation']} | {row['n']}² | {row['scale']:g} | {row['ours']:.4f} "
        f"| {row['compilation']:.1f} | {' | '.join(cells)} | {row['ratio']:.1f} "
        f"| {row['peak_memory_gb']:.1f} |",
        flush=True,
    )
