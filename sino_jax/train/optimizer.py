"""Optimisers and learning-rate schedules, from a config."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import optax
import optax.contrib
from ml_collections import FrozenConfigDict

from sino_jax import checks

SCHEDULES = ("cosine", "constant")
# Methods of optax that a step cannot drive: they evaluate the loss themselves or need its value or
# the gradient of each example, take no schedule, or step with other weights than those to evaluate.
_UNUSABLE = (
    "dpsgd",
    "lbfgs",
    "momo",
    "momo_adam",
    "optimistic_adam",
    "rprop",
    "schedule_free",
    "schedule_free_adamw",
    "schedule_free_sgd",
    "sm3",
    "sophia",
)


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
    ``weight_decay``, too, if it takes one (else the decay is added to the gradient). Further fields
    of the section are arguments of the method, see `arguments`.
    """
    rate = learning_rate(config, total_steps)
    decay = optax.add_decayed_weights(config.weight_decay)
    extra = {name: config[name] for name in arguments(config.name) if name in config}
    if config.momentum and "momentum" not in inspect.signature(named(config.name)).parameters:
        raise ValueError(
            f"optimizer.momentum must be 0 for {config.name}, which has none, got {config.momentum}"
        )
    match config.name:
        case "adamw":
            parts = [optax.scale_by_adam(**extra), decay, optax.scale_by_learning_rate(rate)]
        case "adam":
            parts = [decay, optax.scale_by_adam(**extra), optax.scale_by_learning_rate(rate)]
        case "sgd":
            momentum = [optax.trace(config.momentum, **extra)] if config.momentum else []
            parts = [decay, *momentum, optax.scale_by_learning_rate(rate)]
        case name:
            method = named(name)
            if config.momentum:
                extra["momentum"] = config.momentum
            if "weight_decay" in inspect.signature(method).parameters:
                parts = [method(learning_rate=rate, weight_decay=config.weight_decay, **extra)]
            else:
                parts = [decay, method(learning_rate=rate, **extra)]
    clip = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
    return optax.chain(*clip, *parts)


def arguments(name: str) -> Mapping[str, Any]:
    """Arguments of an optimiser that may be fields of its config section, with their defaults.

    Those that every optimiser has, such as the rate, are not among them.
    """
    # Optax's own adam and adamw, too, whose arguments and defaults ours share.
    common = ("learning_rate", "weight_decay", "momentum", "mask", "weight_decay_mask")
    return {
        parameter.name: None if parameter.default is parameter.empty else parameter.default
        for parameter in inspect.signature(named(name)).parameters.values()
        if parameter.name not in common
    }


def named(name: str) -> Callable[..., optax.GradientTransformation]:
    """A method of optax by its name; a ValueError if it is none that a step can drive."""
    method = getattr(optax, str(name), None) or getattr(optax.contrib, str(name), None)
    if _is_usable(name, method):
        return method
    known = sorted(
        {
            other
            for module in (optax, optax.contrib)
            for other, function in vars(module).items()
            if _is_usable(other, function)
        }
    )
    raise ValueError(
        "optimizer.name must be adam, adamw, sgd or a method of optax that steps along a given "
        f"gradient with a learning rate, got {name!r}{checks.hint(name, known, cutoff=0.0)}"
    )


def _is_usable(name: str, method: Any) -> bool:
    return (
        inspect.isfunction(method)
        and name not in _UNUSABLE
        and not name.startswith(("scale_by", "_"))
        and "learning_rate" in inspect.signature(method).parameters
    )
