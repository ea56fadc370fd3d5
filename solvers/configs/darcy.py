"""Darcy flow in two-phase media; the scale is the label 2 ... 16 with σ = 4 / scale.

The grid has the same number of cells for each unit of scale (``paper`` 32, ``small`` and ``long``
16), so that the half of a sample of scale 8 is a sample of scale 4, points included. ``small`` has
few samples: there a model can fit its data, and what multiplies data shows. ``tiny_labels`` has
training data of scale 1 only, on 17² nodes.

    python -m solvers.generate --config=solvers/configs/darcy.py:small
"""

from solvers import configs

COMMON = {
    "equation": "darcy",
    "seed": 0,
    "dtype": "float32",
    "train_scales": (4,),
    "val_scales": (2, 4, 6, 12),
    "test_scales": (2, 3, 4, 8, 16),
    "block_points": 2**17,
    "limits": {"residual": 1e-12, "growth": 1.001},
}
SCALES = (2, 3, 4, 6, 8, 12, 16)
PRESETS = {
    "tiny": {
        "points": ((2, 17), (3, 25), (4, 33)),
        "val_scales": (3,),
        "test_scales": (2, 4),
        "train_samples": 16,
        "val_samples": 4,
        "test_samples": 4,
    },
    "demo": {
        "points": tuple((scale, 16 * scale + 1) for scale in SCALES),
        "val_scales": (),
        "train_samples": 128,
        "val_samples": 0,
        "test_samples": 16,
    },
    "small": {
        "points": tuple((scale, 16 * scale + 1) for scale in SCALES),
        "train_samples": 128,
        "val_samples": 32,
        "test_samples": 64,
    },
    "tiny_labels": {
        "points": tuple((scale, 16 * scale + 1) for scale in (1, 2, 4, 8, 16)),
        "train_scales": (1,),
        "val_scales": (1, 2, 4, 8),
        "test_scales": (1, 2, 4, 8, 16),
        "train_samples": 1024,
        "val_samples": 32,
        "test_samples": 64,
    },
    "long": {
        "points": tuple((scale, 16 * scale + 1) for scale in SCALES),
        "train_samples": 1024,
        "val_samples": 32,
        "test_samples": 64,
    },
    "paper": {
        "points": tuple((scale, 32 * scale + 1) for scale in SCALES),
        "train_samples": 1024,
        "val_samples": 64,
        "test_samples": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
