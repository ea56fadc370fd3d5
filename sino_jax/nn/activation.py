"""The GeLU activation with a gradient that is cheap in memory and memory traffic."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_FACTOR = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


@jax.custom_vjp
def gelu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """x/2 (1 + tanh u) with u = sqrt(2/π) (x + 0.044715 x³), within 5e-4 of x Φ(x).

    Its gradient recomputes the hyperbolic tangent from x, in one pass, where automatic
    differentiation would write it to memory in the forward pass and read it again.
    """
    return 0.5 * x * (1 + jnp.tanh(_argument(x)))


def gelu_slope(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The derivative of `gelu`, by the logistic function of 2u, which is (1 + tanh u)/2.

    Written with the hyperbolic tangent, the compiler would recognise an intermediate result of the
    forward pass and keep it in memory.
    """
    below = 1 / (1 + jnp.exp(2 * _argument(x)))  # 1 - Φ(x)
    return (1 - below) * (1 + x * below * 2 * _FACTOR * (1 + 3 * _CUBIC * x**2))


def _argument(x: Array) -> Array:
    """u."""
    return _FACTOR * x * (1 + _CUBIC * x**2)


def _forward(x: Array) -> tuple[Array, Array]:
    return gelu(x), x


def _backward(x: Array, cotangent: Array) -> tuple[Array]:
    return (cotangent * gelu_slope(x),)


gelu.defvjp(_forward, _backward)
