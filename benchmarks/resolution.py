"""Is turbulence resolved on the grids of the data? The spectrum's tail, the balances, a picture.

    python -m benchmarks resolution

For the paper's (Re, grid) pairs of the Navier-Stokes data, up to 512² (1024² takes ten times as
long as all others together), a flow develops for `BURN_IN` units of time. Then

    tail        amplitude of ω in the last shell of kept wave numbers, relative to the largest one
    energy      relative error of dE/dt = -2ν Z, E = ⟨u²⟩/2 and Z = ⟨ω²⟩/2
    enstrophy   relative error of dZ/dt = -2ν P, P = ⟨|∇ω|²⟩/2
    change      relative change of ω, 0.1 units later, if the grid is made twice as fine

are printed and written to results/, and the vorticity is drawn to docs/images/.
"""

import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

from solvers import fourier, navier_stokes

PAIRS = ((250.0, 64), (500.0, 128), (1000.0, 256), (2000.0, 256), (4000.0, 512))
BURN_IN = 1.0
STEP = 0.001  # of the central differences in the balances
RESULT = pathlib.Path("results/benchmarks/resolution.json")
IMAGE = pathlib.Path("docs/images/navier_stokes.png")


def shell_amplitudes(vorticity: np.ndarray) -> np.ndarray:
    """Root of the enstrophy in shells of wave numbers |k| = 0, 1, 2, ..."""
    n = len(vorticity)
    k = np.fft.fftfreq(n, 1 / n)
    shells = np.rint(np.hypot(k[:, None], k[None, :])).astype(int)
    return np.sqrt(np.bincount(shells.ravel(), np.abs(np.fft.fft2(vorticity)).ravel() ** 2))


def budget(vorticity: jax.Array) -> tuple[float, float, float]:
    """Energy, enstrophy and palinstrophy per area."""
    kx, ky = (2 * jnp.pi * k for k in fourier.wave_numbers(vorticity.shape, vorticity.dtype))
    modes = fourier.to_modes(vorticity)
    gradient = [fourier.to_grid(fourier.differentiate(k, modes), vorticity.shape) for k in (kx, ky)]
    squares = (
        (navier_stokes.velocity(vorticity) ** 2).sum(-1),
        vorticity**2,
        sum(g**2 for g in gradient),
    )
    return tuple(float(square.mean()) / 2 for square in squares)


def refined(vorticity: jax.Array) -> jax.Array:
    """The same function on twice the points a side."""
    n = len(vorticity)
    kx, ky = (np.asarray(k).ravel().astype(int) for k in fourier.wave_numbers((n, n), float))
    spectrum = np.zeros((2 * n, n + 1), complex)
    spectrum[np.ix_(kx, ky)] = 4 * fourier.to_modes(vorticity)
    return jnp.asarray(np.fft.irfft2(spectrum, (2 * n, 2 * n)))


def measure(reynolds: float, n: int) -> tuple[dict, np.ndarray]:
    begin = time.perf_counter()
    start = navier_stokes.sample_initial(jax.random.key(0), n)
    times = [BURN_IN - STEP, BURN_IN, BURN_IN + STEP]
    frames = navier_stokes.solve(start, reynolds, times, cfl=2.0)
    seconds = time.perf_counter() - begin
    (e0, z0, _), (_, z1, p1), (e2, z2, _) = (budget(frame) for frame in frames)
    amplitudes = shell_amplitudes(np.asarray(frames[1]))
    coarse = navier_stokes.solve(frames[1], reynolds, [0.1])[0]
    fine = navier_stokes.solve(refined(frames[1]), reynolds, [0.1])[0][::2, ::2]
    return {
        "reynolds": reynolds,
        "points": n,
        "seconds": seconds,
        "vorticity": (2 * z1) ** 0.5,
        "tail": amplitudes[fourier.cutoff(n)] / amplitudes.max(),
        "energy": abs((e0 - e2) * reynolds / (4 * STEP * z1) - 1),
        "enstrophy": abs((z0 - z2) * reynolds / (4 * STEP * p1) - 1),
        "change": float(jnp.linalg.norm(coarse - fine) / jnp.linalg.norm(fine)),
    }, np.asarray(frames[1])


def draw(rows: list[dict], fields: list[np.ndarray]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.2 * len(rows), 2.5), layout="constrained")
    for axis, row, field in zip(figure.subplots(1, len(rows)), rows, fields, strict=True):
        axis.imshow(field.T, origin="lower", cmap="RdBu_r", vmin=-60, vmax=60)
        axis.set_title(f"Re = {row['reynolds']:g}, {row['points']}²", fontsize=9)
        axis.set_axis_off()
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGE, dpi=90)


def main() -> None:
    with jax.enable_x64(True):
        rows, fields = zip(*(measure(*pair) for pair in PAIRS), strict=True)
    draw(rows, fields)
    print(f"Vorticity after {BURN_IN:g} units of time; picture in {IMAGE}.")
    print("| Re | grid | seconds | rms ω | tail | energy | enstrophy | change |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['reynolds']:g} | {row['points']}² | {row['seconds']:.0f} "
            f"| {row['vorticity']:.2f} | {row['tail']:.0e} | {row['energy']:.0e} "
            f"| {row['enstrophy']:.0e} | {row['change']:.0e} |"
        )
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"burn_in": BURN_IN, "rows": rows}, indent=2) + "\n")
