"""Navier-Stokes equations on space-time windows (2+1 dimensions): the table of the appendix.

    python -m experiments.navier_stokes_spacetime \
        --config=experiments/configs/navier_stokes_spacetime.py:small,model=fno
    python -m experiments.navier_stokes_spacetime \
        --config=experiments/configs/navier_stokes_spacetime.py:small,consistency=sub,smallest_crop=32

Axes are ``[x, y, t]``: 24 past frames of velocity and the boundary of the next 24 in, these out.
The paper's "FNO MLP" is SINO, whose kernel is a network shared by all modes. The paper gives no
sizes: 12 modes an axis (the 24 frames on a padded period resolve 15), width 32, 4 layers, batch 4,
rate 1e-3, 100 epochs of 50 trajectories at Re = 1000.

A crop keeps the shape of the window, that is space and time have one ratio λ, for which the law
Re -> λ Re is exact; it is given by its points in x. The paper crops boxes of unequal ratios, of at
least `smallest_crop` points in x and y and as many frames, past and future together. Stretched
crops are such boxes, with their exact law (λ²/μ) Re: those of ``small`` have Re from 242 to 2143.

``long`` has not been run since the presets have at least 100 epochs.
"""

from experiments import configs

COMMON = {
    **configs.COMMON,
    "equation": "navier_stokes_spacetime",
    "reference_scale": 1000.0,
    "model": "sino",
    "log_scale": True,
    "learning_rate": 1e-3,
    "batch_size": 4,
    "sino_layers": 4,
    "super_rates": (),
}
PRESETS = {
    "tiny": {
        "data": "tiny",
        "epochs": 2,
        "batch_size": 2,
        "n_modes": (4, 4, 3),
        "hidden_channels": 8,
        "n_layers": 2,
        "sino_modes": (4, 4, 3),
        "sino_channels": 8,
        "sino_layers": 2,
        "sub_sizes": (32, 40),
    },
    "demo": {
        "data": "small",
        "epochs": 4,
        "learning_rate": 2e-3,
        "n_modes": (6, 6, 4),
        "hidden_channels": 8,
        "sino_modes": (6, 6, 4),
        "sino_channels": 8,
        "sub_sizes": (32, 48),
    },
    "small": {
        "data": "small",
        "epochs": 100,
        "learning_rate": 2e-3,
        "n_modes": (8, 8, 6),
        "hidden_channels": 12,
        "sino_modes": (8, 8, 6),
        "sino_channels": 12,
        "sub_sizes": (24, 32, 40, 48),
        "stretched_sizes": ((64, 64, 12), (64, 64, 8), (48, 48, 16), (32, 32, 16)),
    },
    "long": {
        "data": "long",
        "epochs": 100,
        "n_modes": (10, 10, 8),
        "hidden_channels": 16,
        "sino_modes": (10, 10, 8),
        "sino_channels": 16,
        "sub_sizes": (24, 32, 40, 48),
    },
    "paper": {
        "data": "paper",
        "epochs": 100,
        "n_modes": (12, 12, 12),
        "hidden_channels": 32,
        "sino_modes": (12, 12, 12),
        "sino_channels": 32,
        "sub_sizes": (24, 32, 40, 48, 64, 80, 96, 112),
        "train": ("train.points_at_once=2200000",),
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
