"""Cost against accuracy and resolution on periodic turbulence: the paper's "Ablation study" figure.

    python -m experiments.kolmogorov \
        --config=experiments/configs/kolmogorov.py:small,model=sino,sino_channels=16
    python -m experiments.kolmogorov \
        --config="experiments/configs/kolmogorov.py:small,model=fno,data=small;seen=32,n_modes=16+16"

One frame in, the next one out, on the whole periodic square: no padding, no boundary channels,
convolutions that wrap around, no scale-consistency. All rows have the same epochs (the paper scores
after 50), all models as many modes as the grid holds, shared kernels no truncation; widths are
`hidden_channels` (FNO, UNO), `sino_channels` (SINO, SINO-U) and `pyramid_channels` (UNet,
FNO-UNet). ``experiments/campaigns/kolmogorov.txt`` lists the rows of ``small``.

``python -m experiments.estimate experiments/campaigns/kolmogorov.txt`` times their steps. On a busy
core, 850 steps a row, in ms: FNO 22, 71, 109, 223 (widths 2, 6, 12, 24), UNet 50, 106, 269, 603 (4,
8, 16, 24), FNO-UNet 297 (16), SINO 653 (64), and at 128² SINO 686 (16).
"""

from experiments import configs

COMMON = {
    **configs.COMMON,
    "equation": "kolmogorov",
    "model": "sino_u",
    "log_scale": True,
    "padding": 0.0,
    "truncated": False,
    "size": 0,
    "learning_rate": 1e-3,
    "sino_layers": 3,
    "sub_sizes": (),
    "super_rates": (),
    # Of the measurements after training, not of the evaluations during it.
    "rollout_steps": 50,
}
PRESETS = {
    "tiny": {
        "data": "tiny",
        "epochs": 4,
        "batch_size": 7,
        "evaluate_every": 2,
        "n_modes": (4, 4),
        "hidden_channels": 4,
        "n_layers": 2,
        "sino_modes": (4, 4),
        "sino_channels": 4,
        "sino_layers": 2,
        "pyramid_channels": 4,
        "n_levels": 2,
        "rollout_steps": 6,
    },
    "small": {
        "data": "small",
        "stride": 3,
        "epochs": 50,
        "batch_size": 8,
        "learning_rate": 2e-3,
        "evaluate_every": 85,
        "n_modes": (32, 32),
        "hidden_channels": 12,
        "sino_modes": (32, 32),
        "sino_channels": 16,
        "pyramid_channels": 12,
        "n_levels": 4,
    },
    "paper": {
        "data": "paper",
        "epochs": 50,
        "batch_size": 16,
        "evaluate_every": 1500,
        "n_modes": (64, 64),
        "hidden_channels": 32,
        "sino_modes": (64, 64),
        "sino_channels": 32,
        "pyramid_channels": 32,
        "n_levels": 5,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
