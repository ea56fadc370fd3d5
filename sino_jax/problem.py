"""Batches of problems: as users give them, as a model sees them, and as a model solves them."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from sino_jax import channels
from sino_jax.equations import Equation
from sino_jax.types import ApplyFn, Batch, Instance


def inputs(equation: Equation, instance: Instance) -> Array:
    """Model inputs ``[batch, *grid, channel]`` of a batch of problems."""
    return jax.vmap(equation.inputs)(instance.coefficient, instance.field)


def predict(apply_fn: ApplyFn, params, instance: Instance, equation: Equation) -> Batch:
    """The model's solution of a batch of problems, complex if the equation's solutions are."""
    prediction = apply_fn(params, inputs(equation, instance), instance.scale)
    if equation.complex_valued and not jnp.iscomplexobj(prediction):
        prediction = channels.from_channels(prediction)
    return prediction


def as_batch(
    equation: Equation,
    coefficient: Any,
    boundary: Any,
    scale: Any,
    *,
    solution: Any = None,
    smallest_grid: int = 2,
) -> tuple[Instance, bool]:
    """A batch of problems, and whether a single problem (without batch axis) was given.

    Args:
      equation: decides which fields there are and how many channels they have.
      coefficient: ``[*grid, channel]`` or ``[batch, *grid, channel]``; dropped if the equation has
        none.
      boundary: likewise.
      scale: a number, or for many problems one for each.
      solution: a solution or prediction that belongs to the problems, or None.
      smallest_grid: points that every axis must have at least.

    Raises:
      ValueError: names the argument, what it is, and what is expected.
    """
    needed = {
        "coefficient": (coefficient, equation.coefficient_channels),
        "boundary": (boundary, equation.solution_channels if equation.sides else 0),
        "solution": (solution, equation.solution_channels if solution is not None else 0),
    }
    fields = {
        name: _field(equation, name, field, channels)
        for name, (field, channels) in needed.items()
        if channels
    }
    single = _is_single(equation, fields)
    if single:
        fields = {name: field[None] for name, field in fields.items()}
    first = next(iter(fields.values()))
    scale = _scale(scale, first, single=single)
    instance = Instance(
        fields.get("coefficient"), fields.get("boundary"), scale, fields.get("solution")
    )
    equation.validate(instance, prefix="")
    if min(first.shape[1:-1]) < smallest_grid:
        raise ValueError(
            f"{' and '.join(fields)} must have at least {smallest_grid} points on each grid axis, "
            f"got a grid of {first.shape[1:-1]}"
        )
    return instance, single


def _field(equation: Equation, name: str, field: Any, channels: int) -> Array:
    grid = ", ".join(axis.name for axis in equation.axes)
    shapes = f"[{grid}, {channels}] for one problem or [batch, {grid}, {channels}] for many"
    if field is None:
        raise ValueError(f"{name} is needed by {equation.name}: {shapes}; got None")
    array = jnp.asarray(field)
    if array.ndim - len(equation.axes) not in (1, 2) or array.shape[-1] != channels:
        raise ValueError(f"{name} must be {shapes}, got shape {array.shape}")
    return array


def _is_single(equation: Equation, fields: Mapping[str, Array]) -> bool:
    ranks = {field.ndim for field in fields.values()}
    if len(ranks) > 1:
        shapes = {name: field.shape for name, field in fields.items()}
        raise ValueError(f"{' and '.join(fields)} must all be one problem or many, got {shapes}")
    return ranks == {len(equation.axes) + 1}


def _scale(scale: Any, field: Array, *, single: bool) -> Array:
    real = field.real.dtype if jnp.issubdtype(field.dtype, jnp.inexact) else jnp.float32
    array = jnp.asarray(scale, real)
    allowed = [(), (len(field),)] if not single else [()]
    if array.shape not in allowed:
        raise ValueError(
            "scale must be one number"
            + ("" if single else f" or one for each of the {len(field)} problems")
            + f", got shape {array.shape}"
        )
    return jnp.broadcast_to(array, (len(field),))
