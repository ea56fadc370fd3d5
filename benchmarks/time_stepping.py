"""Decaying turbulence at equal error: milliseconds per unit of simulated time, against peers.

    python -m benchmarks time_stepping

Every solver starts from the same developed flow, in double precision, and takes the largest step
that keeps its error below `TOLERANCE`. The error is the relative L2 distance, at the end of the
interval, to the same library's most accurate method with a small step: libraries cut their spectra
at slightly different wave numbers, which sets them apart by as much as the last column says.
Programs are compiled, give no output in between, and take turns at being timed.
"""

import json
import math
import pathlib
import statistics
import time
from collections.abc import Callable

import exponax
import jax
import jax.numpy as jnp
import jax_cfd.base.grids
import jax_cfd.spectral.equations
import jax_cfd.spectral.time_stepping
import numpy as np

from solvers import fourier, navier_stokes

TOLERANCE = 1e-5
# Of the square; the flow has unit vorticity at first.
SIDE = 2 * np.pi
# Points a side, Reynolds number, simulated time.
CASES = ((128, 250.0, 1.0), (256, 1000.0, 0.5), (512, 4000.0, 0.25))
ROUNDS = 5
OURS = "sino-jax, exponential RK4"
RESULT = pathlib.Path("results/benchmarks/time_stepping.json")

# From the initial vorticity to a program: steps -> (vorticity -> vorticity at the end).
Solver = Callable[[int], Callable[[jax.Array], jax.Array]]


def initial_flow(n: int) -> jax.Array:
    """Turbulence after a burn-in at Re = 250 on 128², interpolated to n² points."""
    points = 128
    start = navier_stokes.sample_initial(jax.random.key(0), points)
    start = start / jnp.sqrt((start**2).mean())
    flow = navier_stokes.solve(start, 250.0, [6.0], side=SIDE)[0]
    modes = np.asarray(fourier.to_modes(flow))
    kx, ky = (np.asarray(k).ravel().astype(int) for k in fourier.wave_numbers((points,) * 2, float))
    spectrum = np.zeros((n, n // 2 + 1), complex)
    spectrum[np.ix_(kx, ky)] = modes * (n / points) ** 2
    return jnp.asarray(np.fft.irfft2(spectrum, (n, n)))


def ours(reynolds: float, interval: float, rate: float) -> Solver:
    def program(steps):
        # Just enough to make the solver choose this number of steps.
        cfl = rate * interval / (steps - 0.5)
        simulate = navier_stokes.simulate
        return lambda w: simulate(w, reynolds, [interval], side=SIDE, cfl=cfl).frames[-1]

    return program


def with_jax_cfd(n: int, reynolds: float, interval: float, method: str) -> Solver:
    box = jax_cfd.base.grids.Grid((n, n), domain=((0, 2 * np.pi),) * 2)
    equation = jax_cfd.spectral.equations.NavierStokes2D(1 / reynolds, box, smooth=True)

    def program(steps):
        step_fn = getattr(jax_cfd.spectral.time_stepping, method)(equation, interval / steps)
        return jax.jit(
            lambda w: jnp.fft.irfft2(
                jax.lax.fori_loop(0, steps, lambda _, w_hat: step_fn(w_hat), jnp.fft.rfft2(w))
            )
        )

    return program


def with_exponax(n: int, reynolds: float, interval: float, order: int) -> Solver:
    def program(steps):
        stepper = exponax.stepper.NavierStokesVorticity(
            2, 2 * np.pi, n, interval / steps, diffusivity=1 / reynolds, order=order
        )

        # The state stays in Fourier space; exponax's stream function has the opposite sign.
        @jax.jit
        def run(w):
            w_hat = exponax.fft(-w[None], num_spatial_dims=2)
            w_hat = jax.lax.fori_loop(0, steps, lambda _, s: stepper.step_fourier(s), w_hat)
            return -exponax.ifft(w_hat, num_spatial_dims=2, num_points=n)[0]

        return run

    return program


def fewest_steps(solver: Solver, w0: jax.Array, reference: jax.Array, order: int, start: int):
    """The fewest steps, within a few per cent, with an error below the tolerance, and the error."""
    tried, steps = {}, start
    while steps not in tried and len(tried) < 6:
        error = float(jnp.linalg.norm(solver(steps)(w0) - reference) / jnp.linalg.norm(reference))
        tried[steps] = error
        # An unstable run says nothing about the error of a good one.
        factor = (error / TOLERANCE) ** (1 / order) if error < 0.05 else 2.0
        steps = max(start, math.ceil(1.01 * factor * steps))
    return min((n, error) for n, error in tried.items() if error <= TOLERANCE)


def measure_case(n: int, reynolds: float, interval: float) -> list[dict]:
    w0 = initial_flow(n)
    u, v = jnp.moveaxis(jnp.abs(navier_stokes.velocity(w0, side=SIDE)), -1, 0)
    rate = fourier.cutoff(n) * float((u + v).max())
    # Runge-Kutta methods of order 4 are stable up to a product of step and rate of 2.8.
    start, finest = math.ceil(rate * interval / 2.8), math.ceil(rate * interval / 0.4)

    solvers = {  # name: (order, solver, the library's most accurate solver)
        OURS: (4, ours(reynolds, interval, rate), None),
        "exponax, ETDRK4": (4, with_exponax(n, reynolds, interval, 4), None),
        "exponax, ETDRK2": (2, with_exponax(n, reynolds, interval, 2), "exponax, ETDRK4"),
        "jax-cfd, CN-RK4": (4, with_jax_cfd(n, reynolds, interval, "crank_nicolson_rk4"), None),
    }
    references = {
        name: solver(finest)(w0) for name, (_, solver, best) in solvers.items() if best is None
    }
    rows, programs = {}, {}
    for name, (order, solver, best) in solvers.items():
        reference = references[best or name]
        steps, error = fewest_steps(solver, w0, reference, order, start)
        programs[name] = solver(steps)
        programs[name](w0).block_until_ready()
        apart = jnp.linalg.norm(reference - references[OURS]) / jnp.linalg.norm(reference)
        rows[name] = {"steps": steps / interval, "error": error, "apart": float(apart)}
    seconds = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            begin = time.perf_counter()
            program(w0).block_until_ready()
            seconds[name].append(time.perf_counter() - begin)
    for name, row in rows.items():
        row["ms"] = 1000 * statistics.median(seconds[name]) / interval
    return [
        {"points": n, "reynolds": reynolds, "solver": name, "ratio": row["ms"] / rows[OURS]["ms"]}
        | row
        for name, row in rows.items()
    ]


def main() -> None:
    with jax.enable_x64(True):
        rows = [row for case in CASES for row in measure_case(*case)]
    print(f"Error at most {TOLERANCE:g}, double precision; times are per unit of simulated time.")
    print("| grid | Re | solver | steps | error | ms | times ours | distance to ours |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['points']}² | {row['reynolds']:g} | {row['solver']} | {row['steps']:.0f} "
            f"| {row['error']:.1e} | {row['ms']:.0f} | {row['ratio']:.2f} | {row['apart']:.0e} |"
        )
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"tolerance": TOLERANCE, "rows": rows}, indent=2) + "\n")
