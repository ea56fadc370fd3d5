"""One config file for each experiment: ``get_config("preset,field=value")``.

Fields that every experiment has (an experiment's file states its values and adds its own):

    equation       a name of `sino_jax.equations`; the name of the experiment, too
    preset         tiny (seconds, for tests), demo, small (minutes on two cores), or paper
    data           config of `solvers.generate`
    seed           of weights, batches and crops; the data has its own seed in `solvers.configs`
    model          a name of `sino_jax.models`
    consistency    none, sub, super or sub+super: which scale-consistency losses are added
    symmetries     none, rotation, reflection or rotation+reflection
    base           base solution that the model corrects, see `sino_jax.base`
    base_iterations, base_gate    its options, see `sino_jax.models.with_base`
    epochs, batch_size, learning_rate
    sub_sizes      points a side of the sub-domains
    super_rates    how much larger super-domains are
    super_count    super-domain losses in a step
    super_start    part of the run after which they set in

Fields of the experiments whose equation has a parameter, all but Darcy:

    smallest_crop        leaves out sub-domains with fewer points a side; 0 keeps all `sub_sizes`
    scale_informed       yes, no, or auto: whether the scale modulates the Fourier coefficients
    frequency_embedding  likewise for the frequency; auto is yes for SINO and SINO-U, else no
    log_scale            features of the logarithm of the scale
    n_modes, hidden_channels, n_layers, padding      FNO, UNO
    sino_modes, sino_channels, sino_layers           SINO, SINO-U
    pyramid_channels, n_levels, size                 UNet, CNO
    rollout_frames       frames that are predicted autoregressively in the evaluation; 1: none
"""

from collections.abc import Mapping
from typing import Any

import ml_collections

from solvers import configs

# Options of a base solution, and their defaults.
BASE_OPTIONS = {"base_iterations": 0, "base_gate": "contrast"}
COMMON = {
    "seed": 0,
    "base": "none",
    **BASE_OPTIONS,
    "consistency": "none",
    "symmetries": "none",
    "padding": 0.25,
    "super_count": 2,
    "super_start": 0.25,
}
WITH_PARAMETER = {
    **COMMON,
    "smallest_crop": 0,
    "scale_informed": "auto",
    "frequency_embedding": "auto",
    "log_scale": False,
    "rollout_frames": 1,
}


def resolve(
    text: str, common: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]
) -> ml_collections.ConfigDict:
    """The locked config that `text` asks for, see `solvers.configs.resolve`."""
    return configs.resolve(text, {**common, "preset": text.split(",")[0]}, presets)
