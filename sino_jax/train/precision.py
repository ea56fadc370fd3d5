"""Mixed precision: pointwise layers in bfloat16, everything spectral in float32.

A Fourier transform sums over the whole grid and a truncated mode may be small beside the mean, so
that bfloat16's eight bits spoil it. The affine maps of the channels are most of the remaining
arithmetic and have no such sums.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import flax.linen as nn
import jax.numpy as jnp

PRECISIONS = ("float32", "bfloat16")


def policy(precision: str) -> AbstractContextManager:
    """A context in which Flax modules are applied with the given precision of pointwise layers.

    "float32" changes nothing. With "bfloat16" every `nn.Dense` multiplies in bfloat16 and
    accumulates in float32; weights, activations and gradients keep their own dtype.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    return nullcontext() if precision == "float32" else nn.intercept_methods(_dense_in_bfloat16)


def _dense_in_bfloat16(
    next_fn: Callable, args: tuple, kwargs: dict, context: nn.module.InterceptorContext
) -> Any:
    layer = context.module
    called = isinstance(layer, nn.Dense) and context.method_name == "__call__"
    if not called or layer.is_initializing():
        return next_fn(*args, **kwargs)
    (inputs,) = args
    weights = layer.variables["params"]
    outputs = jnp.dot(
        inputs.astype(jnp.bfloat16),
        weights["kernel"].astype(jnp.bfloat16),
        preferred_element_type=jnp.float32,
    ).astype(inputs.dtype)
    if not layer.use_bias:
        return outputs
    bias = weights["bias"].astype(inputs.dtype)
    return outputs + bias.reshape(*(1,) * (outputs.ndim - 1), -1)
