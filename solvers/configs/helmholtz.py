"""Helmholtz equation in smooth random media; the scale is the wave number k.

The ``paper`` preset has 64 to 1024 cells a side for k = 1 to 100, that is about 64 points for a
wave length at k = 5 and above; the ``small`` one half the cells, and k up to 50.

    python -m solvers.generate --config=solvers/configs/helmholtz.py:small
"""

from solvers import configs

COMMON = {
    "equation": "helmholtz",
    "seed": 0,
    "dtype": "float32",
    "train_scales": (5, 10, 25),
    "block_points": 2**17,
    "limits": {"residual": 1e-12, "growth": 100.0},
}
PRESETS = {
    "tiny": {
        "points": ((2, 17), (5, 33)),
        "train_scales": (5,),
        "test_scales": (2, 5),
        "train_samples": 16,
        "test_samples": 4,
    },
    "small": {
        "points": ((1, 33), (2, 33), (5, 33), (10, 65), (25, 129), (50, 257)),
        "test_scales": (1, 2, 5, 10, 25, 50),
        "train_samples": 256,
        "test_samples": 32,
    },
    "paper": {
        "points": ((1, 65), (2, 65), (5, 65), (10, 129), (25, 257), (50, 513), (100, 1025)),
        "test_scales": (1, 2, 5, 10, 25, 50, 100),
        "train_samples": 1024,
        "test_samples": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
