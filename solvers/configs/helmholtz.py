"""Helmholtz equation in smooth random media; the scale is the wave number k.

The ``paper`` preset has 64 to 1024 cells a side for k = 1 to 100, that is about 64 points for a
wave length at k = 5 and above; ``small`` and ``long`` have half the cells, and k up to 50. With
Dirichlet data a medium of mean 1 resonates at k = π √(m² + n²) = 4.4, 7.0, 8.9, 9.9, 11.3, ...: the
validation scales keep away from the isolated ones, where a small error of the data is a large one
of the solution.

    python -m solvers.generate --config=solvers/configs/helmholtz.py:small
"""

from solvers import configs

COMMON = {
    "equation": "helmholtz",
    "seed": 0,
    "dtype": "float32",
    "train_scales": (5, 10, 25),
    "val_scales": (1.5, 3, 6, 10, 36),
    "block_points": 2**17,
    "limits": {"residual": 1e-12, "growth": 100.0},
}
HALF_GRIDS = (
    *((k, 33) for k in (1, 1.5, 2, 3, 5)),
    *((6, 41), (10, 65), (25, 129), (36, 193), (50, 257)),
)
PRESETS = {
    "tiny": {
        "points": ((2, 17), (3, 25), (5, 33)),
        "train_scales": (5,),
        "val_scales": (3,),
        "test_scales": (2, 5),
        "train_samples": 16,
        "val_samples": 4,
        "test_samples": 4,
    },
    "small": {
        "points": HALF_GRIDS,
        "test_scales": (1, 2, 5, 10, 25, 50),
        "train_samples": 64,
        "val_samples": 16,
        "test_samples": 32,
    },
    "long": {
        "points": HALF_GRIDS,
        "test_scales": (1, 2, 5, 10, 25, 50),
        "train_samples": 256,
        "val_samples": 16,
        "test_samples": 64,
    },
    "paper": {
        "points": (*((k, 2 * points - 1) for k, points in HALF_GRIDS), (100, 1025)),
        "test_scales": (1, 2, 5, 10, 25, 50, 100),
        "train_samples": 1024,
        "val_samples": 64,
        "test_samples": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
