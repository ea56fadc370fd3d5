"""Optimisers and learning-rate schedules, from a config."""

import optax
from ml_collections import FrozenConfigDict


def learning_rate(config: FrozenConfigDict, total_steps: int) -> optax.Schedule:
    """Step -> rate: linear warm-up, then cosine decay to zero at `total_steps`, or constant.

    Args:
      config: the section ``optimizer`` of `sino_jax.train.config.defaults`.
      total_steps: length of the run, warm-up included.
    """
    if not 0 <= config.warmup_steps < max(total_steps, 1):
        raise ValueError(
            f"optimizer.warmup_steps must be between 0 and the run's {total_steps} steps, "
            f"got {config.warmup_steps}"
        )
    remaining = total_steps - config.warmup_steps
    match config.schedule:
        case "cosine":
            main = optax.cosine_decay_schedule(config.learning_rate, max(remaining, 1))
        case "constant":
            main = optax.constant_schedule(config.learning_rate)
        case other:
            raise ValueError(f"optimizer.schedule must be cosine or constant, got {other!r}")
    if not config.warmup_steps:
        return main
    warmup = optax.linear_schedule(0.0, config.learning_rate, config.warmup_steps)
    return optax.join_schedules([warmup, main], [config.warmup_steps])


def build(config: FrozenConfigDict, total_steps: int) -> optax.GradientTransformation:
    """The optimiser of a config section ``optimizer``: clipping, then adamw, adam or sgd.

    ``adamw`` decays weights apart from the gradient; ``adam`` adds the decay to the gradient before
    it is normalised, which is what PyTorch's Adam does with its ``weight_decay``.
    """
    rate = learning_rate(config, total_steps)
    decay = optax.add_decayed_weights(config.weight_decay)
    match config.name:
        case "adamw":
            parts = [optax.scale_by_adam(), decay]
        case "adam":
            parts = [decay, optax.scale_by_adam()]
        case "sgd":
            parts = [decay, optax.trace(config.momentum)] if config.momentum else [decay]
        case other:
            raise ValueError(f"optimizer.name must be adamw, adam or sgd, got {other!r}")
    clip = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
    return optax.chain(*clip, *parts, optax.scale_by_learning_rate(rate))
