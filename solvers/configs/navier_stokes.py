"""Decaying two-dimensional turbulence, vorticity frames; the scale is Re = 1/ν.

Solved on the periodic unit square, with an initial velocity of root mean square 1 (see
`solvers.navier_stokes`): from one frame to the next the flow moves by a tenth of the square. Frames
begin at t = `burn_in`. The models see a quarter of the square and predict the next frame from ten.
``small`` and ``long`` have a grid spacing in proportion to Re^(-1/2), which is what the scaling law
Re -> λ² Re keeps: half a window at Re = 1000 has the points of a window at Re = 250.

    python -m solvers.generate --config=solvers/configs/navier_stokes.py:small
"""

from solvers import configs

COMMON = {
    "equation": "navier_stokes",
    "seed": 0,
    "dtype": "float32",
    "dt": 0.1,
    "burn_in": 1.0,
    "cfl": 2.0,
    "history": 10,
    "horizon": 1,
    "stride": 1,
    "train_scales": (1000,),
    "val_scales": (350, 1000, 2800),
    "test_scales": (250, 500, 1000, 2000, 4000, 10000),
    "block_points": 2**23,
    "limits": {"residual": 1e-5, "growth": 1.1, "tail": 1e-2},
}
SMALL_GRIDS = (
    *((250, 64), (350, 80), (500, 96), (1000, 128), (2000, 192)),
    *((2800, 224), (4000, 256), (10000, 400)),
)
PAPER_GRIDS = (
    *((250, 64), (350, 96), (500, 128), (1000, 256), (2000, 256)),
    *((2800, 384), (4000, 512), (10000, 1024)),
)
PRESETS = {
    "tiny": {
        "points": ((100, 48), (200, 64), (400, 96)),
        "frames": 14,
        "burn_in": 0.2,
        "train_scales": (400,),
        "val_scales": (200,),
        "test_scales": (100, 400),
        "train_samples": 2,
        "val_samples": 1,
        "test_samples": 1,
    },
    "small": {
        "points": SMALL_GRIDS,
        "frames": 50,
        "train_samples": 12,
        "val_samples": 2,
        "test_samples": 8,
    },
    "long": {
        "points": SMALL_GRIDS,
        "frames": 70,
        "train_samples": 40,
        "val_samples": 2,
        "test_samples": 8,
    },
    "paper": {
        "points": PAPER_GRIDS,
        "frames": 300,
        "train_samples": 50,
        "val_samples": 5,
        "test_samples": 5,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
