"""Darcy flow with labels of scale 1 only, and self-consistency from there up.

    python -m experiments.tiny_labels --config=small
    python -m experiments.tiny_labels --config=small,detach=input
    python -m experiments.tiny_labels --config="small,data=tiny_labels;train_scales=4"

Labels are 1024 solutions on 17² nodes. Super-domains have twice, four and eight times the side, no
labels, and set in one after the other; each is compared with predictions on sub-domains of half its
side, which are held constant: the model at one scale judges itself at the next.
"""

from experiments import configs

COMMON = {
    **configs.COMMON,
    "experiment": "tiny_labels",
    "equation": "darcy",
    "model": "fno",
    "base": "harmonic",
    "base_centred": True,
    "consistency": "super",
    "detach": "prediction",
    "super_crop": 0.5,
    "super_positions": 4,
    "super_growing": True,
    "super_count": 1,
    "super_weight": 1.0,
    "learning_rate": 2e-3,
}
PRESETS = {
    "tiny": {
        "data": "tiny,train_scales=2",
        "epochs": 4,
        "n_modes": (4, 4),
        "hidden_channels": 8,
        "n_layers": 2,
        "sub_sizes": (9,),
        "super_rates": (1.5, 2.0),
    },
    "small": {
        "data": "tiny_labels",
        "epochs": 30,
        "batch_size": 16,
        "n_modes": (12, 12),
        "hidden_channels": 24,
        "sub_sizes": (9, 13),
        "super_rates": (2.0, 4.0, 8.0),
        "super_points": 2 * 65**2,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)
