"""Decaying two-dimensional turbulence, velocity on space-time windows; the scale is Re = 1/ν.

The flow is that of `solvers.configs.navier_stokes`. 24 frames are given and the next 24 predicted.
The time between frames is 1/256 of the time in which unit velocity crosses the square of side 2π:
after rescaling the square to unit side, with velocities kept, that is the paper's dt = 1/256. In
the ``small`` preset windows have fewer frames, further apart, as its grids have fewer points.

    python -m solvers.generate --config=solvers/configs/navier_stokes_spacetime.py:small
"""

import math

from solvers import configs

COMMON = {
    "equation": "navier_stokes_spacetime",
    "seed": 0,
    "dtype": "float32",
    "dt": 2 * math.pi / 256,
    "burn_in": 10.0,
    "history": 24,
    "horizon": 24,
    "stride": 24,
    "train_scales": (1000,),
    "test_scales": (250, 500, 1000, 2000, 4000),
    "block_points": 2**23,
    "limits": {"residual": 1e-5, "growth": 1.1, "tail": 1e-2},
}
PRESETS = {
    "tiny": {
        "points": ((100, 48), (400, 96)),
        "frames": 16,
        "burn_in": 1.0,
        "history": 8,
        "horizon": 8,
        "stride": 8,
        "train_scales": (400,),
        "test_scales": (100, 400),
        "train_samples": 2,
        "test_samples": 1,
    },
    "small": {
        "points": ((250, 64), (500, 96), (1000, 128), (2000, 192), (4000, 256)),
        "dt": 2 * math.pi / 128,
        "frames": 96,
        "history": 16,
        "horizon": 16,
        "stride": 16,
        "train_samples": 24,
        "test_samples": 4,
    },
    "paper": {
        "points": ((250, 64), (500, 128), (1000, 256), (2000, 256), (4000, 512), (10000, 1024)),
        "frames": 312,
        "test_scales": (250, 500, 1000, 2000, 4000, 10000),
        "train_samples": 50,
        "test_samples": 5,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
