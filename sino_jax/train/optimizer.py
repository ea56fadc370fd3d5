"""Optimisers and learning-rate schedules, from a config."""

import inspect
from collections.abc import Callable

import optax
import optax.contrib
from ml_collections import FrozenConfigDict


def learning_rate(config: FrozenConfigDict, total_steps: int) -> optax.Schedule:
    """Step -> rate: linear warm-up, then cosine decay to zero at `total_steps`, or constant.

    Args:
      config: the section ``optimizer`` of `sino_jax.train.config.defaults`.
      total_steps: length of the run, warm-up included.
    """
    warmup_steps = config.warmup_steps or round(config.warmup_part * total_steps)
    if not 0 <= warmup_steps < max(total_steps, 1):
        raise ValueError(
            f"optimizer.warmup_steps must be between 0 and the run's {total_steps} steps, "
            f"got {warmup_steps}"
        )
    remaining = total_steps - warmup_steps
    match config.schedule:
        case "cosine":
            main = optax.cosine_decay_schedule(config.learning_rate, max(remaining, 1))
        case "constant":
            main = optax.constant_schedule(config.learning_rate)
        case other:
            raise ValueError(f"optimizer.schedule must be cosine or constant, got {other!r}")
    if not warmup_steps:
        return main
    warmup = optax.linear_schedule(0.0, config.learning_rate, warmup_steps)
    return optax.join_schedules([warmup, main], [warmup_steps])


def build(config: FrozenConfigDict, total_steps: int) -> optax.GradientTransformation:
    """The optimiser of a config section ``optimizer``: clipping, then the method of that name.

    ``adam`` adds the weight decay to the gradient before it is normalised, as PyTorch's Adam does
    with its ``weight_decay``: weights whose gradient is small shrink, which regularises. ``adamw``
    decays weights apart from the gradient, ``sgd`` takes a momentum. Any other name is that of a
    method of `optax` or `optax.contrib` with an argument ``learning_rate``, which gets
    ``weight_decay``, too, if it takes one (else the decay is added to the gradient).
    """
    rate = learning_rate(config, total_steps)
    decay = optax.add_decayed_weights(config.weight_decay)
    match config.name:
        case "adamw":
            parts = [optax.scale_by_adam(), decay, optax.scale_by_learning_rate(rate)]
        case "adam":
            parts = [decay, optax.scale_by_adam(), optax.scale_by_learning_rate(rate)]
        case "sgd":
            momentum = [optax.trace(config.momentum)] if config.momentum else []
            parts = [decay, *momentum, optax.scale_by_learning_rate(rate)]
        case name:
            method = named(name)
            if "weight_decay" in inspect.signature(method).parameters:
                parts = [method(learning_rate=rate, weight_decay=config.weight_decay)]
            else:
                parts = [decay, method(learning_rate=rate)]
    clip = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
    return optax.chain(*clip, *parts)


def named(name: str) -> Callable[..., optax.GradientTransformation]:
    """A method of optax by its name; a ValueError if it is none that a step can drive.

    Methods that evaluate the loss themselves, or whose weights are not those to evaluate, cannot.
    """
    method = getattr(optax, name, None) or getattr(optax.contrib, name, None)
    if not inspect.isfunction(method):
        raise ValueError(
            f"optimizer.name must be adam, adamw, sgd or a method of optax, got {name!r}"
        )
    parameters = inspect.signature(method).parameters
    if "learning_rate" not in parameters or name.startswith("schedule_free") or name == "lbfgs":
        raise ValueError(
            f"optimizer.name must be a method of optax that steps along a given gradient with a "
            f"learning rate, got {name!r}"
        )
    return method
