"""Test-time domain decomposition of a trained model on a domain several times its own.

    python -m experiments.decomposition --run=runs/darcy/small/fno+scale/seed-0

Fields:

    size_ratio         side of the large domain over that of the training domain
    samples            problems of the large domain that are solved
    iterations         of every variant
    patches            on each axis, as in the paper
    overlap, ramp      points; the paper has 128 and 16 on 512
    overlaps           of the sweep
    levels             patches on each axis, coarse to fine; the last level gets the remaining
                       iterations, the others `level_iterations`
    memory             former estimates that an accelerated iteration combines
    samples_at_once    bounds the memory
"""

from solvers import configs

COMMON = {
    "equation": "darcy",
    "size_ratio": 4,
    "iterations": 5,
    "patches": 4,
    "levels": (2, 4),
    "level_iterations": 2,
    "memory": 3,
    "samples_at_once": 8,
}
PRESETS = {
    "tiny": {
        "size_ratio": 2,
        "samples": 4,
        "iterations": 2,
        "patches": 2,
        "overlap": 9,
        "ramp": 4,
        "overlaps": (5, 9),
        "levels": (2, 3),
        "level_iterations": 1,
    },
    "small": {
        "samples": 64,
        "overlap": 64,
        "ramp": 8,
        "overlaps": (8, 16, 32, 64, 96),
    },
    "long": {
        "samples": 16,
        "overlap": 64,
        "ramp": 8,
        "overlaps": (32, 64),
    },
    "paper": {
        "samples": 128,
        "overlap": 128,
        "ramp": 16,
        "overlaps": (16, 32, 64, 128, 192),
        "samples_at_once": 2,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, {**COMMON, "preset": text.split(",")[0]}, PRESETS)
