"""Darcy flow: Table 1 (Darcy part) and the comparison with symmetries.

    python -m experiments.darcy --config=experiments/configs/darcy.py:small,model=fno
    python -m experiments.darcy --config=experiments/configs/darcy.py:small,consistency=sub+super

Measured on one core, errors in percent at scales 2, 3, 4 (trained), 8, 16; core-minutes. Demo and
long seed 0, small the mean of seeds 0, 1, 2:

    demo                                    16.3 14.5 14.5 13.6 10.9     0.7
    demo,consistency=sub                    11.1  9.9  9.5  9.4  8.6     1.3
    demo,base=harmonic,consistency=sub       7.2  6.1  6.6  6.4  5.7     1.4
    small                                   15.0 13.5 13.4 11.7 10.4     2.8
    small,consistency=sub                    7.8  7.4  7.4  6.7  6.3     4.9
    small,model=uno                         14.6 12.9 13.2 11.3 10.1     5.0
    small,model=uno,consistency=sub          8.4  7.6  7.7  7.0  6.6     9.8
    small,base=harmonic,consistency=sub      3.9  4.3  4.0  4.0  3.9     5.3
    long                                     6.0  4.7  4.6  4.7  4.8    13.1
    long,consistency=sub                     3.5  3.7  3.6  3.8  3.6    26.2
    long,base=harmonic,consistency=sub       3.1  3.2  3.3  3.3  3.2    26.7

Paper sizes: 20 modes, width 64, 4 layers, batch 8, rate 1e-3, 200 epochs
of 1024 samples on 129² nodes; two crops of at least 32 points in each step, and after a quarter of
the run two super-domains of up to 4 times the side. Those cost most: ``small`` has one, in its
second half.
"""

from experiments import configs

COMMON = {
    **configs.COMMON,
    "equation": "darcy",
    "model": "fno",
    "learning_rate": 1e-3,
}
PRESETS = {
    "tiny": {
        "data": "tiny",
        "epochs": 2,
        "n_modes": (4, 4),
        "hidden_channels": 8,
        "n_layers": 2,
        "pyramid_channels": 4,
        "n_levels": 2,
        "size": 16,
        "sub_sizes": (9, 17),
        "super_rates": (2.0,),
    },
    "demo": {
        "data": "demo",
        "epochs": 160,
        "learning_rate": 2e-3,
        "n_modes": (8, 8),
        "hidden_channels": 16,
        "n_layers": 3,
        "pyramid_channels": 8,
        "n_levels": 3,
        "size": 64,
        "sub_sizes": (17, 33),
        "super_rates": (1.5,),
    },
    "small": {
        "data": "small",
        "epochs": 300,
        "learning_rate": 2e-3,
        "n_modes": (12, 12),
        "hidden_channels": 24,
        "pyramid_channels": 12,
        "n_levels": 4,
        "size": 64,
        "sub_sizes": (17, 25, 33, 49),
        "super_rates": (1.5,),
        "super_count": 1,
        "super_start": 0.5,
    },
    "long": {
        "data": "long",
        "epochs": 100,
        "learning_rate": 2e-3,
        "n_modes": (16, 16),
        "hidden_channels": 32,
        "pyramid_channels": 16,
        "n_levels": 4,
        "size": 64,
        "sub_sizes": (17, 25, 33, 49),
        "super_rates": (1.5,),
        "super_count": 1,
        "super_start": 0.5,
    },
    "paper": {
        "data": "paper",
        "epochs": 200,
        "n_modes": (20, 20),
        "hidden_channels": 64,
        "pyramid_channels": 32,
        "n_levels": 5,
        "size": 128,
        "sub_sizes": (33, 49, 65, 81, 97, 113),
        "super_rates": (1.5, 2.0, 3.0, 4.0),
        "train": ("train.points_at_once=600000",),
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
