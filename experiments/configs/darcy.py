"""Darcy flow: Table 1 (Darcy part) and the comparison with symmetries.

    python -m experiments.darcy --config=experiments/configs/darcy.py:small,model=fno
    python -m experiments.darcy --config=experiments/configs/darcy.py:small,consistency=sub+super

Paper sizes: 20 modes, width 64, 4 layers, batch 8, rate 1e-3, 200 epochs of 1024 samples on 129²
nodes; two crops of at least 32 points in each step, and after a quarter of the run two
super-domains of up to 4 times the side. Those cost most: ``small`` has one, in its second half.
"""

from experiments import configs, models

COMMON = {
    **configs.COMMON,
    "equation": "darcy",
    "model": "fno",
    "learning_rate": 1e-3,
    "batch_size": 8,
    "n_layers": 4,
}
PRESETS = {
    "tiny": {
        "data": "tiny",
        "epochs": 2,
        "n_modes": 4,
        "hidden_channels": 8,
        "n_layers": 2,
        "sub_sizes": (9, 17),
        "super_rates": (2.0,),
        "n_levels": 2,
        "size": 16,
    },
    "demo": {
        "data": "demo",
        "epochs": 20,
        "learning_rate": 4e-3,
        "n_modes": 8,
        "hidden_channels": 16,
        "n_layers": 3,
        "sub_sizes": (17, 33),
        "super_rates": (1.5,),
        "n_levels": 3,
        "size": 64,
    },
    "small": {
        "data": "small",
        "epochs": 16,
        "learning_rate": 2e-3,
        "n_modes": 12,
        "hidden_channels": 24,
        "sub_sizes": (17, 25, 33, 49),
        "super_rates": (1.5,),
        "super_count": 1,
        "super_start": 0.5,
        "n_levels": 4,
        "size": 64,
    },
    "paper": {
        "data": "paper",
        "epochs": 200,
        "n_modes": 20,
        "hidden_channels": 64,
        "sub_sizes": (33, 49, 65, 81, 97, 113),
        "super_rates": (1.5, 2.0, 3.0, 4.0),
        "n_levels": 5,
        "size": 128,
    },
}


def get_config(text: str = "small"):
    return configs.resolve(text, COMMON, PRESETS)


def model_fields(config) -> dict:
    """Fields of `sino_jax.models.build`; SINO does not apply, since Darcy has no parameter."""
    if config.model in ("unet", "cno"):
        return models.pyramid(
            config.model,
            hidden_channels=config.hidden_channels // 2,
            n_levels=config.n_levels,
            size=config.size,
        )
    if config.model not in ("fno", "uno"):
        raise ValueError(f"model must be one of fno, uno, unet, cno, got {config.model!r}")
    return models.spectral(
        config.model,
        n_modes=(config.n_modes, config.n_modes),
        hidden_channels=config.hidden_channels,
        n_layers=config.n_layers,
        padding=config.padding,
    )
