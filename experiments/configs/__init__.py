"""One config file for each experiment: ``get_config("preset,field=value")``.

Presets: ``tiny`` (seconds, for tests), ``demo``, ``small`` (meant for 5 to 15 minutes a row on one
core), ``long`` (more samples, 10 to 45 minutes), ``paper``. What was measured stands in the files
of the experiments. ``small`` is in the regime of the paper, few samples and at least 100 epochs:
scale-consistency multiplies data, and helps where a model can fit the data that it has.

What makes a row of a table, and its label:

    model          a name of `sino_jax.models`
    kernel         of FNO and SINO: tensor (a matrix for each mode), shared (one network for all
                   modes), or auto: tensor for FNO, `sino_kernel` for SINO
    scale_informed, frequency_embedding   yes, no, or auto (yes for SINO and SINO-U, else no):
                   whether scale and frequency modulate the Fourier coefficients
    base           base solution that the model corrects, see `sino_jax.base`
    consistency    none, or some of sub, super and stretch joined by +: which scale-consistency
                   losses are added; stretch adds sub-domains of unequal sides
    smallest_crop  leaves out sub-domains with fewer points a side; 0 keeps all `sub_sizes`
    symmetries     none, rotation, reflection or rotation+reflection
    seed           of weights, batches and crops; the data has its own seed in `solvers.configs`

What is the same in all rows of a preset; a row that changes one of these says so in its label:

    data           config of `solvers.generate`, with ; for its commas: ``data=small;seed=3``
    stride         frames between the training windows of a trajectory; 0: that of the data
    epochs, batch_size, learning_rate
    optimizer      adam (weight decay within the gradient), adamw, or another name of optax
    weight_decay, clip_norm, ema_decay    see `sino_jax.train.config`
    warmup         part of the run in which the rate rises from zero
    centred        of a model without a base, see `sino_jax.models.frame`
    base_shift     distance from resonances of a Helmholtz base, see `sino_jax.base`
    base_iterations, base_gate, base_centred    of a base, see `sino_jax.models.with_base`
    base_extent    time and length of the data's window, for base=heat
    initialisation of Fourier models, see `sino_jax.nn.layers.STARTS`
    sub_sizes      points a side of the sub-domains
    stretched_sizes    points on each axis of the sub-domains of unequal sides, as in 50x65+37x65
    sub_count      sub-domains of each example in a step
    sub_weight     of each of them
    super_rates    how much larger super-domains are
    super_count    super-domain losses in a step
    super_start    part of the run after which they set in
    super_weight   of each of them at the end of the run
    super_growing  whether rates set in one after the other
    super_crop     side of a super-domain's sub-domains, as a part of its side; 0: that of the data
    super_positions    sub-domains of each super-domain
    super_points   grid points of all super-domains of a step; 0: one for each example
    crop_region    where errors on sub- and super-domains are measured: whole or central_half
    detach         what self-consistency holds constant, see `sino_jax.loss.scale_consistency`
    super_method   extend: larger domains by the experiment's prior, or by reflection; relabel: the
                   data itself with larger scales
    log_scale, scale_embedding, complex_factor, reference_scale    of the modulation, see
                                                     `sino_jax.nn.layers.Modulation`
    padding                                          Fourier models
    n_modes, hidden_channels, n_layers               those with a tensor kernel
    sino_modes, sino_channels, sino_layers, truncated    those with a shared one, and SINO-U
    pyramid_channels, n_levels, size                 UNet, FNO-UNet, CNO
    rollout_frames frames that are predicted autoregressively in the evaluation; 1: none
    evaluate_every steps between evaluations; 0: at the end only

Any other field of `sino_jax.train.config` is changed as in ``train.accumulate=2`` or
``train.logging.tensorboard=True``. A preset may set some of them in its field `train`: ``paper``
has a ``train.points_at_once`` with which a step fits into a GPU of 16 GB
(``python -m experiments.memory``), where it needs more without.

And `score`: test, or val for the validation data, that no table is made of and by which everything
is chosen that is chosen by its error.
"""

import importlib
from collections.abc import Mapping
from typing import Any

import ml_collections

from experiments import models
from sino_jax.models import BASES
from sino_jax.train import overrides
from solvers import configs
from solvers.configs import rules

COMMON = {
    "seed": 0,
    "kernel": "auto",
    "scale_informed": "auto",
    "frequency_embedding": "auto",
    "base": "none",
    "base_shift": 0.0,
    "base_iterations": 0,
    "base_extent": (),
    "base_gate": "contrast",
    "base_centred": False,
    "centred": False,
    "consistency": "none",
    "smallest_crop": 0,
    "symmetries": "none",
    "score": "test",
    "stride": 0,
    "batch_size": 8,
    "optimizer": "adam",
    "weight_decay": 1e-4,
    "warmup": 0.0,
    "clip_norm": 0.0,
    "ema_decay": 0.0,
    "initialisation": "small",
    "log_scale": False,
    "scale_embedding": "mlp",
    "complex_factor": False,
    "reference_scale": 1.0,
    "sino_kernel": "shared",
    "truncated": True,
    "n_layers": 4,
    "padding": 0.25,
    "stretched_sizes": (),
    "sub_count": 2,
    "sub_weight": 1.0,
    "super_method": "extend",
    "super_count": 2,
    "super_start": 0.25,
    "super_weight": 0.25,
    "super_growing": False,
    "super_crop": 0.0,
    "super_positions": 1,
    "super_points": 0,
    "crop_region": "whole",
    "detach": "input",
    "rollout_frames": 1,
    "evaluate_every": 0,
    "train": (),
}
# What only experiments have words for.
RULES = {
    "model": rules.one_of(*models.LABELS),
    "base": rules.one_of(*BASES),
    "scale_embedding": rules.one_of("mlp", "octaves", "inverse_powers", "powers"),
    "stride": rules.at_least(0),  # of a data set it is at least 1; here 0 stands for that one
}
# Of self-consistency on super-domains; fields of `sino_jax.loss.training_loss` of the same name.
LOSS_OPTIONS = (
    "super_method",
    "super_count",
    "super_start",
    "super_weight",
    "super_growing",
    "super_crop",
    "super_positions",
    "super_points",
    "crop_region",
    "detach",
)
# What the label of a row has words for.
ROW_FIELDS = (
    "model",
    "kernel",
    "scale_informed",
    "frequency_embedding",
    "base",
    "consistency",
    "smallest_crop",
    "symmetries",
    "seed",
    "score",
)


def resolve(
    text: str, common: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]
) -> ml_collections.ConfigDict:
    """The locked config that `text` asks for, see `solvers.configs.resolve`.

    Its field `changes` lists what `text` changes that is not in the label of a row.
    """
    preset, *changes = text.split(",")
    train = tuple(change for change in changes if change.startswith("train."))
    overrides.apply({}, train)  # names and types are checked before any work
    changed = {change.partition("=")[0] for change in train}
    kept = [
        setting
        for setting in presets.get(preset, {}).get("train", ())
        if setting.partition("=")[0] not in changed
    ]
    rest = [change for change in changes if change.partition("=")[0] not in ROW_FIELDS]
    own = {"preset": preset, "changes": ", ".join(sorted(rest))}
    others = ",".join([preset, *(change for change in changes if change not in train)])
    config = configs.resolve(others, {**common, **own}, presets, more_rules=RULES)
    with config.unlocked():
        config.data = config.data.replace(";", ",")
        config.train = (*kept, *train)
    _check_data(config)
    return config


def _check_data(config: ml_collections.ConfigDict) -> None:
    """Raises a ValueError unless the config of the data, which is text, can be resolved, too."""
    module = importlib.import_module(f"solvers.configs.{config.equation}")
    try:
        module.get_config(config.data)
    except ValueError as error:
        raise ValueError(f"data={config.data.replace(',', ';')}: {error}") from None
