"""From a config to the function ``apply_fn(params, inputs, scale)`` that everything else calls.

The function is the Flax model, preceded by the normalisation of the coefficient channels with
statistics of the training data. Training, evaluation and `sino_jax.operator` all use it, hence test
data is treated as training data was.
"""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from sino_jax import models
from sino_jax.equations import Equation
from sino_jax.types import ApplyFn, Key

# Statistics of the fields of a data set, see `sino_jax.data.statistics`.
Statistics = Mapping[str, Mapping[str, list[float]]]


def build(
    config: Mapping[str, Any] | ConfigDict, equation: Equation, statistics: Statistics | None
) -> tuple[nn.Module, ApplyFn]:
    """The model of a config and its `apply_fn`.

    Args:
      config: fields of `models.build`; those of `Equation.model_fields` may be left out.
      equation: that of the problems.
      statistics: of the training data; None leaves the inputs as they are.
    """
    model = models.build({**equation.model_fields(), **dict(config.items())})
    base = config.get("base", "none")
    if statistics is not None and base not in ("none", "coons"):
        raise ValueError(
            f"data.normalise must be False for the base {base!r}, which reads the coefficient as "
            "it is in the equation, got True"
        )
    if base == "last_frame" and (equation.sides or not equation.coefficient_channels):
        raise ValueError(
            f"base must not be 'last_frame' for {equation.name}, whose inputs do not end with the "
            "newest frame"
        )
    if base == "extrapolation" and not equation.axes[-1].anchored:
        raise ValueError(
            f"base must not be 'extrapolation' for {equation.name}, whose last axis is not one of "
            "past and future frames"
        )
    centred = [name for name in ("centred", "base_centred") if config.get(name)]
    if centred and not equation.free_constant:
        raise ValueError(
            f"{centred[0]} must be False for {equation.name}, of which a solution plus a constant "
            "is no solution, got True"
        )
    affine = None if statistics is None else _coefficient_statistics(equation, statistics)

    def apply_fn(params, inputs, scale):
        if affine is not None:
            mean, deviation = (jnp.asarray(values, inputs.dtype) for values in affine)
            shape = (1,) * (inputs.ndim - 1) + (-1,)
            inputs = (inputs - mean.reshape(shape)) / deviation.reshape(shape)
        return model.apply(params, inputs, scale)

    return model, apply_fn


def init(model: nn.Module, equation: Equation, grid: tuple[int, ...], key: Key) -> Any:
    """Random weights of a model for inputs of an equation; they do not depend on the grid."""
    shape = (1, *grid, equation.input_channels)
    # Within another program, whose options then hold, there may be none.
    compiled = _init_inside if isinstance(key, jax.core.Tracer) else _init_alone
    return compiled(model, shape, key)


def _init(model: nn.Module, shape: tuple[int, ...], key: Key) -> Any:
    return model.init(key, jnp.zeros(shape), jnp.ones((1,)))


# One for all: equal models are traced and compiled once.
_init_inside = jax.jit(_init, static_argnums=(0, 1))
# Run once, over weights alone: to optimise the program takes longer than to run it.
_init_alone = jax.jit(
    _init, static_argnums=(0, 1), compiler_options={"xla_backend_optimization_level": 0}
)


def _coefficient_statistics(
    equation: Equation, statistics: Statistics
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of all input channels; boundary channels keep 0 and 1."""
    mean = np.zeros(equation.input_channels)
    deviation = np.ones(equation.input_channels)
    channels = equation.coefficient_channels
    # Past frames of a trajectory are coefficient channels, with the statistics of its field.
    field = statistics.get("coefficient", statistics.get("trajectory"))
    if field is not None and channels:
        mean[:channels] = np.resize(field["mean"], channels)
        spread = np.resize(field["std"], channels)
        deviation[:channels] = np.where(spread > 0, spread, 1)
    return mean, deviation
