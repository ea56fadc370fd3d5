"""Burgers equation; the scale is Re = 1/ν.

Solved on the periodic unit interval up to t = 1. The models see its left half, every second point:
the ``paper`` preset gives 256 points x 100 times 0.01, 0.02, ..., 1.00, trains at ν = 1/400 and
tests on ν = 1/100 to 1/1000. A window starts from its first frame, which is given to the models as
the first frame of a crop is. ``small`` and ``long`` are solved on the same grid, which Re = 1000
needs, and keep half of the points in both directions; ``long`` has the paper's number of samples.

    python -m solvers.generate --config=solvers/configs/burgers.py:small
"""

from solvers import configs

COMMON = {
    "equation": "burgers",
    "seed": 0,
    "dtype": "float32",
    "initial_law": "mild",  # one of `solvers.burgers.INITIAL_LAWS`
    "end_time": 1.0,
    "from_zero": False,  # whether the initial condition is the first frame
    "thin": 1,  # of the points that models see, every so many are kept
    "train_scales": (400,),
    "val_scales": (150, 400, 700),
    "test_scales": (100, 200, 400, 800, 1000),
    "block_points": 2**21,
    "limits": {"residual": 1e-6, "growth": 1.01, "tail": 1e-4},
}
FULL_GRID = tuple((re, 1024) for re in (100, 150, 200, 400, 700, 800, 1000))
PRESETS = {
    "tiny": {
        "points": ((50, 128), (100, 256), (200, 256)),
        "frames": 20,
        "train_scales": (200,),
        "val_scales": (100,),
        "test_scales": (50, 200),
        "train_samples": 8,
        "val_samples": 4,
        "test_samples": 4,
    },
    "small": {
        "points": FULL_GRID,
        "thin": 2,
        "frames": 50,
        "train_samples": 512,
        "val_samples": 32,
        "test_samples": 64,
    },
    "long": {
        "points": FULL_GRID,
        "thin": 2,
        "frames": 50,
        "train_samples": 800,
        "val_samples": 32,
        "test_samples": 64,
    },
    "paper": {
        "points": FULL_GRID,
        "frames": 100,
        "train_samples": 800,
        "val_samples": 64,
        "test_samples": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
