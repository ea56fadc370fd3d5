"""Decaying two-dimensional turbulence, vorticity frames; the scale is Re = 1/ν.

Solved on the periodic square of side 2π, with initial vorticity of root mean square 1 (see
`solvers.navier_stokes`); `burn_in` units of time are dropped. The models see a quarter of the
square and predict the next frame from ten. The ``small`` preset has a grid spacing in proportion to
Re^(-1/2), which is what the scaling law Re -> λ² Re keeps: half a window at Re = 1000 has the
points of a window at Re = 250.

    python -m solvers.generate --config=solvers/configs/navier_stokes.py:small
"""

from solvers import configs

COMMON = {
    "equation": "navier_stokes",
    "seed": 0,
    "dtype": "float32",
    "dt": 0.1,
    "burn_in": 10.0,
    "history": 10,
    "horizon": 1,
    "stride": 1,
    "train_scales": (1000,),
    "test_scales": (250, 500, 1000, 2000, 4000),
    "block_points": 2**23,
    "limits": {"residual": 1e-5, "growth": 1.1, "tail": 1e-2},
}
PRESETS = {
    "tiny": {
        "points": ((100, 48), (400, 96)),
        "frames": 14,
        "burn_in": 1.0,
        "train_scales": (400,),
        "test_scales": (100, 400),
        "train_samples": 2,
        "test_samples": 1,
    },
    "small": {
        "points": ((250, 64), (500, 96), (1000, 128), (2000, 192), (4000, 256)),
        "frames": 60,
        "train_samples": 24,
        "test_samples": 4,
    },
    "paper": {
        "points": ((250, 64), (500, 128), (1000, 256), (2000, 256), (4000, 512), (10000, 1024)),
        "frames": 300,
        "test_scales": (250, 500, 1000, 2000, 4000, 10000),
        "train_samples": 50,
        "test_samples": 5,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
