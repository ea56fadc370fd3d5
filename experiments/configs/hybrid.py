"""Solving to a tolerance: iterations and seconds by start and preconditioner.

    python -m experiments.hybrid --config=small

Fields:

    darcy, helmholtz   config of `solvers.generate` whose test sets are solved; "" for none
    darcy_scales, helmholtz_scales    of these test sets
    samples            problems of each scale
    tolerances         of the bound (coercive problems) or error estimate
    shifts             of the preconditioner for Helmholtz, as fractions of k²
    patch, overlap     points of the patches on which trained operators precondition Darcy flow
    repeats            of every timing; the fastest counts
    most_iterations    after which a solve is given up
"""

from solvers import configs

COMMON = {
    "equation": "darcy",
    "darcy_scales": (2, 4, 8, 16),
    "helmholtz_scales": (1, 2, 5, 10, 25, 50),
    "tolerances": (1e-2, 1e-4, 1e-6),
    "shifts": (0.005, 0.1),
    "patch": 33,
    "overlap": 16,
    "repeats": 1,
    "most_iterations": 200,
}
PRESETS = {
    "tiny": {
        "darcy": "tiny",
        "helmholtz": "tiny",
        "darcy_scales": (2, 4),
        "helmholtz_scales": (2, 5),
        "samples": 2,
        "patch": 17,
        "overlap": 8,
    },
    "small": {"darcy": "small", "helmholtz": "small", "samples": 6},
    "paper": {
        "darcy": "paper",
        "helmholtz": "paper",
        "helmholtz_scales": (1, 2, 5, 10, 25, 50, 100),
        "samples": 16,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, {**COMMON, "preset": text.split(",")[0]}, PRESETS)
