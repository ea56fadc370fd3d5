"""From the config of a row to that of `sino_jax.train.fit`."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from ml_collections import ConfigDict

from experiments import configs
from sino_jax import augment, equations, models
from sino_jax.models import network
from sino_jax.train import config as train_config
from sino_jax.train import overrides


@dataclasses.dataclass(frozen=True)
class Experiment:
    """How the configs of one experiment become a training run.

    Attributes:
      equation: a name of `sino_jax.equations`.
      data_config: ``config.data`` -> config of `solvers.generate`.
      model_fields: config -> fields of `sino_jax.models.build`, without the channels.
      prior: config -> distribution of inputs at larger scales, for `sino_jax.superdomain`; None
        continues the data by reflection.
      measure: ``measure(config, workdir, data)`` of a trained row -> JSON-like facts that its
        result gets as ``measures``; empty for none.
      name: of the module and its config file; that of the equation if empty.
    """

    equation: str
    data_config: Callable[[str], ConfigDict]
    model_fields: Callable[[ConfigDict], Mapping[str, Any]]
    prior: Callable[[ConfigDict], Callable | None] = lambda config: None
    measure: Callable[[ConfigDict, pathlib.Path, Mapping[str, pathlib.Path]], dict[str, Any]] = (
        lambda config, workdir, data: {}
    )
    name: str = ""


def training_config(
    experiment: Experiment, config: ConfigDict, data: Mapping[str, pathlib.Path]
) -> dict[str, Any]:
    """The config of `sino_jax.train.fit` for one row."""
    equation = equations.get(experiment.equation)
    settings = {
        "seed": config.seed,
        "equation": equation.name,
        "model": {
            **base_options(config),
            **equation.model_fields(),
            **experiment.model_fields(config),
        },
        "loss": loss_options(config),
        "experiment": config.to_dict(),
        "data": {
            "train": tuple(str(path) for name, path in data.items() if name.startswith("train")),
            "test": tuple(
                str(path) for name, path in data.items() if name.startswith(config.score)
            ),
            "batch_size": config.batch_size,
            "stride": config.stride,
        },
        "epochs": config.epochs,
        "optimizer": {
            "name": config.optimizer,
            "learning_rate": config.learning_rate,
            "weight_decay": config.weight_decay,
            "warmup_part": config.warmup,
            "clip_norm": config.clip_norm,
        },
        "ema_decay": config.ema_decay,
        "evaluation": {
            "rollout_frames": config.rollout_frames,
            "every": config.evaluate_every,
        },
    }
    return overrides.apply(settings, config.train)


def base_options(config: ConfigDict) -> dict[str, Any]:
    """Fields of `models.build` about the base solution, and what a model without one centres."""
    if config.base == "none":
        return {"centred": True} if config.centred else {}
    if config.base in models.ON_FRAMES:
        return {"base": config.base}
    if config.base == "heat":
        return {"base": "heat", "base_extent": config.base_extent}
    fields = ("base", "base_iterations", "base_gate", "base_centred")
    options = {field: config[field] for field in fields}
    return {**options, "base_shift": config.base_shift if config.base == "helmholtz" else 0.0}


def loss_options(config: ConfigDict) -> dict[str, Any]:
    """Options of `sino_jax.loss.training_loss`."""
    parts = set(config.consistency.split("+")) - {"none"}
    if unknown := parts - {"sub", "super", "stretch"}:
        raise ValueError(f"consistency is made of sub, super and stretch, got {sorted(unknown)}")
    smallest = config.smallest_crop
    sub_sizes = tuple(size for size in config.sub_sizes if size >= smallest)
    if "sub" in parts and not sub_sizes:
        raise ValueError(f"smallest_crop must leave some of {config.sub_sizes}, got {smallest}")
    if "stretch" in parts and not config.stretched_sizes:
        raise ValueError(
            "consistency has stretched sub-domains only where stretched_sizes says their sides, "
            f"and they differ only for equations of time and space; got {config.consistency!r} "
            f"for {config.equation}"
        )
    if "super" in parts and not config.super_rates:
        raise ValueError(
            f"consistency has no super-domains for {config.equation}, whose inputs on a larger "
            f"domain are unknown; got {config.consistency!r}"
        )
    symmetries = () if config.symmetries == "none" else tuple(config.symmetries.split("+"))
    return {
        "sub_sizes": (
            *(sub_sizes if "sub" in parts else ()),
            *(config.stretched_sizes if "stretch" in parts else ()),
        ),
        "sub_count": config.sub_count,
        "sub_weight": config.sub_weight,
        "super_rates": config.super_rates if "super" in parts else (),
        **{name: config[name] for name in configs.LOSS_OPTIONS},
        "symmetries": symmetries,
    }


def check(experiment: Experiment, settings: Mapping[str, Any]) -> None:
    """Raises a ValueError for a training config that `fit` would refuse after data was made."""
    completed, equation = train_config.complete(settings), equations.get(experiment.equation)
    network.build(completed.model, equation, None)
    augment.check_symmetries(equation, completed.loss.symmetries)
