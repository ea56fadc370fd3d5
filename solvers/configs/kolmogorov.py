"""Turbulence on the whole periodic square, vorticity frames; the scale is Re = 1/ν.

    python -m solvers.generate --config=kolmogorov:small
    python -m solvers.generate --config=kolmogorov:small,seen=32

``forcing=kolmogorov``: the square has side 2π, the force is sin(4y) in the x direction, of
amplitude 1, with the friction -μu, μ = `drag` = 0.1, and ν = 1/Re:

    u_t + u·∇u = -∇p + Δu / Re - μ u + sin(k y) e_x,        k = `forcing_wave_number` = 4

The friction makes the flow statistically steady after a few times 1 / (2 μ) = 5; without it energy
would gather in the largest vortices for a time of order Re (``drag=0`` is that flow). Frames begin
at t = `burn_in`. ``forcing=none`` (the presets ``..._decaying``): the square has side 1, the
initial velocity root mean square 1, as in `solvers.configs.navier_stokes`, but all of it is seen.

`seen` points a side are stored: wave numbers below seen / 2 of the solution on the solver's grid.
The same seed gives the same flows whatever is seen of them.
"""

from solvers import configs
from solvers.configs import rules

COMMON = {
    "equation": "kolmogorov",
    "seed": 0,
    "dtype": "float32",
    "forcing": "kolmogorov",
    "forcing_wave_number": 4,
    "drag": 0.1,
    "dt": 0.25,
    "burn_in": 25.0,
    "cfl": 2.0,
    "history": 1,
    "horizon": 1,
    "stride": 1,
    "block_points": 2**23,
    "limits": {"residual": 1e-4, "growth": 10.0, "tail": 1e-2},
}
DECAYING = {
    "forcing": "none",
    "drag": 0.0,
    "dt": 0.1,
    "burn_in": 1.0,
    "limits": {"residual": 1e-4, "growth": 1.1, "tail": 1e-2},
}


def _at(reynolds: int, points: int, seen: int) -> dict:
    scales = dict.fromkeys(("train_scales", "val_scales", "test_scales"), (reynolds,))
    return {"points": ((reynolds, points),), "seen": seen, **scales}


def _samples(train: int, val: int, test: int) -> dict:
    return {"train_samples": train, "val_samples": val, "test_samples": test}


TINY = {**_at(20, 32, 16), "frames": 8, **_samples(2, 1, 1)}
SMALL = {"frames": 65, **_samples(6, 1, 2)}
PAPER = {"frames": 301, **_samples(40, 5, 10)}
PRESETS = {
    "tiny": {**TINY, "burn_in": 2.0},
    "tiny_decaying": {**TINY, **DECAYING, "burn_in": 0.2},
    "small": {**_at(500, 192, 64), **SMALL},
    "small_decaying": {**_at(1000, 128, 64), **SMALL, **DECAYING},
    "paper": {**_at(5000, 512, 256), **PAPER},
    "paper_decaying": {**_at(10000, 1024, 256), **PAPER, **DECAYING},
}
RULES = {
    "forcing": rules.one_of("kolmogorov", "none"),
    "forcing_wave_number": rules.COUNT,
    "drag": rules.NOT_NEGATIVE,
    "seen": rules.at_least(4),
}


def get_config(text: str = "small"):
    config = configs.resolve(text, COMMON, PRESETS, more_rules=RULES)
    if "name=" not in text:
        with config.unlocked():
            # Each resolution is a data set of its own.
            config.name = f"{config.name}-{config.seen}"
    return config
