"""Burgers equation: Table 1 (Burgers part) and the ablation of scale and frequency features.

    python -m experiments.burgers --config=experiments/configs/burgers.py:small,model=fno
    python -m experiments.burgers --config=experiments/configs/burgers.py:small,consistency=sub

Measured on one core, mean of seeds 0, 1, 2, test data, errors in percent on the central half at
Re = 100, 200, 400 (trained), 800, 1000; core-minutes:

    small,model=fno                     23.9  8.2  1.9  6.4  8.4     5.7
    small                               20.7  7.3  1.5  6.1  8.2     6.7
    small,consistency=sub               15.7  5.1  2.2  5.5  7.0    11.6
    small,consistency=sub+stretch,scale_embedding=octaves
                                         4.0  2.0  1.6  4.2  5.0    14.7
    small,base=heat,consistency=sub      6.9  3.7  2.2  6.1  8.1    12.0

and of seed 0

    long,model=fno                      24.1  8.3  1.6  6.3  8.2    16.5
    long                                20.6  7.3  1.2  6.5  8.7    18.1
    long,consistency=sub+stretch,scale_embedding=octaves
                                         3.4  1.6  1.3  3.0  3.8    40.1

Axes are ``[t, x]``. Paper sizes: 16 modes in t and 64 in x, width 32, 4 layers, batch 16, rate
1e-3, 500 epochs of 800 samples on 100 times x 256 points at Re = 1/ν = 400. SINO has a matrix for
each mode here, as the authors' has, times the modulation; ``kernel=shared`` shares the weights. A
crop is given by its times, to which its points are tied by the same ratio λ, and has λ Re: those of
``small`` reach down to Re = 98. Stretched crops have sides of their own. Super-domains continue the
data by reflection, since traces in time have no known prior; with ``super_method=relabel`` they are
the data with a larger Re.
"""

from experiments import configs

COMMON = {
    **configs.COMMON,
    "equation": "burgers",
    "reference_scale": 400.0,
    "model": "sino",
    "sino_kernel": "tensor",
    "log_scale": True,
    "learning_rate": 1e-3,
    "sino_layers": 4,
}
# Of windows of 50 times and 128 points: sides in time and space.
STRETCHED_SIZES = ((50, 65), (50, 90), (37, 65), (37, 128), (25, 128), (19, 128))
PRESETS = {
    "tiny": {
        "data": "tiny",
        "base_extent": (0.95, 63 / 128),
        "epochs": 2,
        "batch_size": 4,
        "n_modes": (4, 6),
        "hidden_channels": 8,
        "n_layers": 2,
        "sino_modes": (4, 6),
        "sino_channels": 8,
        "sino_layers": 2,
        "pyramid_channels": 4,
        "n_levels": 2,
        "size": 16,
        "sub_sizes": (10,),
        "super_rates": (1.5,),
    },
    "demo": {
        "data": "small",
        "base_extent": (0.98, 127 / 256),
        "epochs": 25,
        "learning_rate": 2e-3,
        "n_modes": (10, 16),
        "hidden_channels": 12,
        "n_layers": 3,
        "sino_modes": (10, 16),
        "sino_channels": 12,
        "sino_layers": 3,
        "pyramid_channels": 8,
        "n_levels": 3,
        "size": 64,
        "sub_sizes": (13, 25),
        "super_rates": (1.5,),
    },
    "small": {
        "data": "small",
        "base_extent": (0.98, 127 / 256),
        "epochs": 100,
        "learning_rate": 3e-3,
        "n_modes": (10, 20),
        "hidden_channels": 24,
        "sino_modes": (10, 20),
        "sino_channels": 24,
        "pyramid_channels": 12,
        "n_levels": 4,
        "size": 64,
        "sub_sizes": (13, 19, 25, 31, 37),
        "stretched_sizes": STRETCHED_SIZES,
        "super_rates": (1.5, 2.0),
        "super_count": 1,
        "super_start": 0.5,
    },
    "long": {
        "data": "long",
        "base_extent": (0.98, 127 / 256),
        "epochs": 100,
        "learning_rate": 3e-3,
        "n_modes": (12, 24),
        "hidden_channels": 32,
        "sino_modes": (12, 24),
        "sino_channels": 32,
        "pyramid_channels": 16,
        "n_levels": 4,
        "size": 64,
        "sub_sizes": (13, 19, 25, 31, 37),
        "stretched_sizes": STRETCHED_SIZES,
        "super_rates": (1.5, 2.0),
        "super_count": 1,
        "super_start": 0.5,
    },
    "paper": {
        "data": "paper",
        "base_extent": (0.99, 255 / 512),
        "batch_size": 16,
        "epochs": 500,
        "n_modes": (16, 64),
        "hidden_channels": 32,
        "sino_modes": (16, 64),
        "sino_channels": 32,
        "pyramid_channels": 32,
        "n_levels": 5,
        "size": 128,
        "sub_sizes": (13, 25, 37, 50, 62, 75, 87),
        "super_rates": (1.5, 2.0, 3.0),
        "train": ("train.points_at_once=2100000",),
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
