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
    return 0.5 * x * (1 + jnp.tanh(_FACTOR * x * (1 + _CUBIC * x**2)))


def gelu_and_slope(
    x: Float[Array, "*shape"],
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """GeLU and its derivative, for backward passes.

    (1 + tanh u)/2 is the logistic function of 2u. Written as the latter, the compiler does not
    recognise an intermediate result of the forward pass, which it would then keep in memory.
    """
    square = x**2
    phi = jax.nn.sigmoid(2 * _FACTOR * x * (1 + _CUBIC * square))
    slope = 2 * _FACTOR * (1 + 3 * _CUBIC * square)
    return x * phi, phi * (1 + x * slope * (1 - phi))


def _forward(x: Array) -> tuple[Array, Array]:
    return gelu(x), x


def _backward(x: Array, cotangent: Array) -> tuple[Array]:
    return (cotangent * gelu_and_slope(x)[1],)


gelu.defvjp(_forward, _backward)
