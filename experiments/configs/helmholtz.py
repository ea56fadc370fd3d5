"""Helmholtz equation: Table 2 (Helmholtz part) and the ablation of scale and frequency features.

    python -m experiments.helmholtz --config=experiments/configs/helmholtz.py:small,model=fno
    python -m experiments.helmholtz \
        --config=experiments/configs/helmholtz.py:small,consistency=sub+super

Paper sizes: FNO 64 modes, width 32, 4 layers; SINO-U 32 modes, width 64; batch 2, rate 5e-4, 100
epochs of 1024 samples for each of k = 5, 10, 25 on 65², 129² and 257² nodes; crops of at least 16
points; SINO has all frequencies of the grid and shares its weights between them. Crops are drawn
from the sizes that fit into the grid of a batch. In ``small`` and ``long`` models see half the
points of the grids and have half the modes or less.

Measured on one core, mean of seeds 0, 1, 2 (base, long: 0), test data, errors in percent at k = 1,
2, 5, 10, 25 (the last three trained), 50; core-minutes:

    small                       65.4  50.2   9.4  18.1  39.4  99.0    3.6
    small,consistency=sub       19.1  15.9  10.0  19.3  41.4   102    5.7
    small,base=helmholtz         6.4   4.7   3.0  14.7  48.4  78.0    4.1
    long                        59.5  24.9   5.2  14.2  27.7  92.8   12.6
    long,consistency=sub        19.6  13.8   5.0  16.1  30.8   102   22.6
    long,base=helmholtz,consistency=sub
                                 1.6   1.9   2.9  15.7  42.9  90.7   23.2
"""

from experiments import configs

COMMON = {
    **configs.COMMON,
    "equation": "helmholtz",
    "reference_scale": 10.0,
    "model": "sino_u",
    "base_shift": 0.05,
    "learning_rate": 5e-4,
    "sino_layers": 4,
}
PRESETS = {
    "tiny": {
        "data": "tiny",
        "epochs": 2,
        "batch_size": 8,
        "n_modes": (4, 4),
        "hidden_channels": 8,
        "n_layers": 2,
        "sino_modes": (4, 4),
        "sino_channels": 8,
        "sino_layers": 2,
        "pyramid_channels": 4,
        "n_levels": 2,
        "size": 16,
        "sub_sizes": (9,),
        "super_rates": (2.0,),
    },
    "demo": {
        "data": "small",
        "epochs": 10,
        "batch_size": 8,
        "learning_rate": 2e-3,
        "n_modes": (8, 8),
        "hidden_channels": 12,
        "sino_modes": (8, 8),
        "sino_channels": 12,
        "sino_layers": 3,
        "pyramid_channels": 8,
        "n_levels": 3,
        "size": 64,
        "sub_sizes": (9, 17, 33),
        "super_rates": (1.5,),
    },
    "small": {
        "data": "small",
        "epochs": 100,
        "batch_size": 4,
        "learning_rate": 2e-3,
        "n_modes": (16, 16),
        "hidden_channels": 20,
        "sino_modes": (16, 16),
        "sino_channels": 20,
        "sino_layers": 3,
        "pyramid_channels": 12,
        "n_levels": 4,
        "size": 64,
        "sub_sizes": (9, 17, 33, 65),
        "super_rates": (1.5,),
        "super_count": 1,
        "super_start": 0.5,
    },
    "long": {
        "data": "long",
        "epochs": 60,
        "batch_size": 4,
        "learning_rate": 4e-3,
        "n_modes": (24, 24),
        "hidden_channels": 24,
        "sino_modes": (24, 24),
        "sino_channels": 20,
        "sino_layers": 3,
        "pyramid_channels": 16,
        "n_levels": 5,
        "size": 128,
        "sub_sizes": (9, 17, 33, 65, 97),
        "super_rates": (1.5,),
        "super_count": 1,
        "super_start": 0.5,
    },
    "paper": {
        "data": "paper",
        "epochs": 100,
        "batch_size": 2,
        "n_modes": (64, 64),
        "hidden_channels": 32,
        "sino_modes": (32, 32),
        "sino_channels": 64,
        "truncated": False,
        "pyramid_channels": 64,
        "n_levels": 5,
        "size": 256,
        "sub_sizes": (17, 25, 33, 49, 65, 97, 129, 193),
        "super_rates": (1.5, 2.0),
        "train": ("train.points_at_once=400000",),
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
