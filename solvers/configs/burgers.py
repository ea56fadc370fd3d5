"""Burgers equation; the scale is Re = 1/ν.

Solved on the periodic unit interval up to t = 1. The models see its left half, every second point:
the ``paper`` preset gives 256 points x 100 times, trains at ν = 1/400 and tests on ν = 1/100 to
1/1000. The ``small`` one is solved on the same grid, which Re = 1000 needs, but keeps half of the
points in both directions.

    python -m solvers.generate --config=solvers/configs/burgers.py:small
"""

from solvers import configs

COMMON = {
    "equation": "burgers",
    "seed": 0,
    "dtype": "float32",
    "end_time": 1.0,
    "thin": 1,  # of the points that models see, every so many are kept
    "train_scales": (400,),
    "test_scales": (100, 200, 400, 800, 1000),
    "block_points": 2**21,
    "limits": {"residual": 1e-6, "growth": 1.01, "tail": 1e-4},
}
PRESETS = {
    "tiny": {
        "points": ((50, 128), (200, 256)),
        "frames": 20,
        "train_scales": (200,),
        "test_scales": (50, 200),
        "train_samples": 8,
        "test_samples": 4,
    },
    "small": {
        "points": tuple((re, 1024) for re in (100, 200, 400, 800, 1000)),
        "thin": 2,
        "frames": 50,
        "train_samples": 512,
        "test_samples": 64,
    },
    "paper": {
        "points": tuple((re, 1024) for re in (100, 200, 400, 800, 1000)),
        "frames": 100,
        "train_samples": 800,
        "test_samples": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
