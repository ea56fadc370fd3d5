"""Decaying two-dimensional turbulence, velocity on space-time windows; the scale is Re = 1/ν.

The flow is that of `solvers.configs.navier_stokes`. 24 frames are given and the next 24 predicted;
in 256 frames unit velocity crosses the square. In ``small`` and ``long`` windows have fewer frames,
further apart, as their grids have fewer points.

    python -m solvers.generate --config=solvers/configs/navier_stokes_spacetime.py:small
"""

from solvers import configs
from solvers.configs.navier_stokes import PAPER_GRIDS, SMALL_GRIDS

COMMON = {
    "equation": "navier_stokes_spacetime",
    "seed": 0,
    "dtype": "float32",
    "dt": 1 / 256,
    "burn_in": 1.0,
    "cfl": 2.0,
    "history": 24,
    "horizon": 24,
    "stride": 24,
    "train_scales": (1000,),
    "val_scales": (350, 1000, 2800),
    "test_scales": (250, 500, 1000, 2000, 4000),
    "block_points": 2**23,
    "limits": {"residual": 1e-5, "growth": 1.1, "tail": 1e-2},
}
PRESETS = {
    "tiny": {
        "points": ((100, 48), (200, 64), (400, 96)),
        "frames": 16,
        "burn_in": 0.2,
        "history": 8,
        "horizon": 8,
        "stride": 8,
        "train_scales": (400,),
        "val_scales": (200,),
        "test_scales": (100, 400),
        "train_samples": 2,
        "val_samples": 1,
        "test_samples": 1,
    },
    "small": {
        "points": SMALL_GRIDS,
        "dt": 1 / 128,
        "frames": 96,
        "history": 16,
        "horizon": 16,
        "stride": 16,
        "train_samples": 24,
        "val_samples": 2,
        "test_samples": 4,
    },
    "long": {
        "points": SMALL_GRIDS,
        "dt": 1 / 128,
        "frames": 160,
        "history": 16,
        "horizon": 16,
        "stride": 16,
        "train_samples": 50,
        "val_samples": 2,
        "test_samples": 5,
    },
    "paper": {
        "points": PAPER_GRIDS,
        "frames": 312,
        "test_scales": (250, 500, 1000, 2000, 4000, 10000),
        "train_samples": 50,
        "val_samples": 5,
        "test_samples": 5,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
