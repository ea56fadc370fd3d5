"""Matrix products in the hot path of a network, with gradients in the form that is fastest.

Tall matrices times small ones are its pointwise maps, one small matrix for each mode its kernels.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax.nn import backend
from sino_jax.nn.activation import gelu, gelu_slope

# Rows of a block, at most and at least: its transposed product stays in the first-level cache.
_LARGEST_BLOCK, _SMALLEST_BLOCK = 160, 32
# Factors of which a single product is faster: more channels than the first in each, fewer weights
# than the second in the gradient.
_SINGLE_PRODUCT = (16, 32 * 64)
# A sum of this many outer products is one pass over the gradient on all cores; the matrix product
# that it replaces keeps one core busy, and spends it on overhead: one small product for each mode.
_MOST_OUTER_PRODUCTS = 32


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def tall_product(
    rows: Float[Array, "row channel"], matrix: Float[Array, "channel out"], activate: bool
) -> Float[Array, "row out"]:
    """rows @ matrix, or gelu(rows) @ matrix, where rows are many and channels few.

    The gradient keeps `rows` and their GeLU, which is in memory anyway for the product.
    """
    return (gelu(rows) if activate else rows) @ matrix


def _forward(rows: Array, matrix: Array, activate: bool) -> tuple[Array, tuple[Array, ...]]:
    active = gelu(rows) if activate else rows
    return active @ matrix, (rows, active, matrix)


def _backward(
    activate: bool, residuals: tuple[Array, ...], cotangent: Array
) -> tuple[Array, Array]:
    rows, active, matrix = residuals
    backward = cotangent @ matrix.T
    if activate:
        backward = backward * gelu_slope(rows)
    return backward, _transposed_product(active, cotangent)


def _transposed_product(
    rows: Float[Array, "row channel"], others: Float[Array, "row out"]
) -> Float[Array, "channel out"]:
    """rows.T @ others; a sum over short blocks of rows where that takes less processor time."""
    channels = (rows.shape[1], others.shape[1])
    single = min(channels) > _SINGLE_PRODUCT[0] and math.prod(channels) < _SINGLE_PRODUCT[1]
    if single or not backend.forms_for_cpu():
        return rows.T @ others
    if channels[0] > channels[1]:  # faster with the wider factor on the right
        return _transposed_product(others, rows).T
    block = _block_length(len(rows))
    left, right = (array.reshape(-1, block, array.shape[1]) for array in (rows, others))
    return jnp.einsum("bnc,bnd->bcd", left, right).sum(0)


def _block_length(rows: int) -> int:
    """The longest block that divides the rows, or all of them if every such block is short."""
    lengths = range(min(rows, _LARGEST_BLOCK), _SMALLEST_BLOCK - 1, -1)
    return next((length for length in lengths if rows % length == 0), rows)


tall_product.defvjp(_forward, _backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def channel_product(
    field: Float[Array, "block channel point"], matrix: Float[Array, "channel out"], activate: bool
) -> Float[Array, "block out point"]:
    """matrix.T @ block, or matrix.T @ gelu(block), for each block of the field.

    The gradient keeps the field and its GeLU, as that of `tall_product` does.
    """
    return _to_each_block(matrix.T, gelu(field) if activate else field)


def _to_each_block(matrix: Array, blocks: Array) -> Array:
    if not backend.forms_for_cpu():
        return jnp.einsum("dc,bcn->bdn", matrix, blocks)
    return jnp.broadcast_to(matrix, (len(blocks), *matrix.shape)) @ blocks


def _channel_forward(
    field: Array, matrix: Array, activate: bool
) -> tuple[Array, tuple[Array, ...]]:
    active = gelu(field) if activate else field
    return _to_each_block(matrix.T, active), (field, active, matrix)


def _channel_backward(
    activate: bool, residuals: tuple[Array, ...], cotangent: Array
) -> tuple[Array, Array]:
    field, active, matrix = residuals
    gradient = _sum_of_products(active, cotangent)
    if matrix.shape[1] == 1 and backend.forms_for_cpu():
        # A product over one channel would become a pass that reads it in the order of the outputs.
        cotangent, matrix = (
            jnp.pad(x, [(0, 0), (0, 1)] + [(0, 0)] * (x.ndim - 2)) for x in (cotangent, matrix)
        )
    backward = _to_each_block(matrix, cotangent)
    if activate:
        backward = backward * gelu_slope(field)
    return backward, gradient


def _sum_of_products(
    left: Float[Array, "block channel point"], right: Float[Array, "block out point"]
) -> Float[Array, "channel out"]:
    """The sum over blocks of left @ right.T."""
    if left.shape[1] < right.shape[1]:  # faster with the wider factor on the left
        return _sum_of_products(right, left).T
    return jax.lax.dot_general(left, right, (((2,), (2,)), ((0,), (0,)))).sum(0)


channel_product.defvjp(_channel_forward, _channel_backward)


@jax.custom_vjp
def mode_product(
    rows: Float[Array, "mode row channel"], matrices: Float[Array, "mode channel out"]
) -> Float[Array, "mode row out"]:
    """rows @ matrices for each mode, where modes are many and rows (those of a batch) few."""
    return rows @ matrices


def _mode_forward(rows: Array, matrices: Array) -> tuple[Array, tuple[Array, Array]]:
    return rows @ matrices, (rows, matrices)


def _mode_backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    rows, matrices = residuals
    backward = cotangent @ jnp.swapaxes(matrices, 1, 2)
    if rows.shape[1] > _MOST_OUTER_PRODUCTS or not backend.forms_for_cpu():
        return backward, jnp.swapaxes(rows, 1, 2) @ cotangent
    outer = (rows[:, n, :, None] * cotangent[:, n, None, :] for n in range(rows.shape[1]))
    return backward, functools.reduce(jnp.add, outer)


mode_product.defvjp(_mode_forward, _mode_backward)
