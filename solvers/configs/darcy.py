"""Darcy flow in two-phase media; the scale is the label 2 ... 16 with σ = 4 / scale.

The grid has the same number of cells for each unit of scale (``paper`` 32, ``small`` 16), so that
the half of a sample of scale 8 is a sample of scale 4, points included.

    python -m solvers.generate --config=solvers/configs/darcy.py:small
"""

from solvers import configs

COMMON = {
    "equation": "darcy",
    "seed": 0,
    "dtype": "float32",
    "train_scales": (4,),
    "test_scales": (2, 3, 4, 8, 16),
    "block_points": 2**17,
    "limits": {"residual": 1e-12, "growth": 1.001},
}
PRESETS = {
    "tiny": {
        "points": ((2, 17), (4, 33)),
        "test_scales": (2, 4),
        "train_samples": 16,
        "test_samples": 4,
    },
    "small": {
        "points": tuple((scale, 16 * scale + 1) for scale in (2, 3, 4, 8, 16)),
        "train_samples": 512,
        "test_samples": 64,
    },
    "paper": {
        "points": tuple((scale, 32 * scale + 1) for scale in (2, 3, 4, 8, 16)),
        "train_samples": 1024,
        "test_samples": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
