"""Batches of problems: as users give them, as a model sees them, and as a model solves them."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sino_jax import channels
from sino_jax.equations import Equation
from sino_jax.types import ApplyFn, Batch, Instance, Scale


def inputs(equation: Equation, instance: Instance) -> Array:
    """Model inputs ``[batch, *grid, channel]`` of a batch of problems."""
    return jax.vmap(equation.inputs)(instance.coefficient, instance.field)


def with_scales(instance: Instance) -> Instance:
    """The batch with a scale for each example; `scale` may be given as one number for all."""
    first = next(field for field in (instance.field, instance.coefficient) if field is not None)
    if jnp.ndim(instance.scale):
        return instance
    scale = jnp.asarray(instance.scale, jnp.real(first).dtype)
    return instance._replace(scale=jnp.broadcast_to(scale, first.shape[:1]))


def predict(apply_fn: ApplyFn, params, instance: Instance, equation: Equation) -> Batch:
    """The model's solution of a batch of problems, complex if the equation's solutions are."""
    prediction = apply(apply_fn, params, inputs(equation, instance), instance.scale, equation)
    if equation.complex_valued and not jnp.iscomplexobj(prediction):
        prediction = channels.from_channels(prediction)
    return prediction


def apply(
    apply_fn: ApplyFn, params, model_inputs: Array, scale: Scale, equation: Equation
) -> Array:
    """What `apply_fn` returns, if it can be a solution of the equation on the grid of the inputs.

    Otherwise a ValueError: wrong channels, grid or batch would be broadcast against the target.
    """
    prediction = apply_fn(params, model_inputs, scale)
    check_prediction(equation, prediction, model_inputs.shape[:-1])
    return prediction


def check_prediction(equation: Equation, prediction: Any, points: Sequence[int]) -> None:
    """Raises a ValueError unless this can be a prediction for ``points = (batch, *grid)``."""
    complex_given = jnp.iscomplexobj(prediction)
    count = equation.solution_channels if complex_given else equation.output_channels
    expected = (*points, count)
    wanted = f"apply_fn must return a real array of shape {(*points, equation.output_channels)}"
    if equation.complex_valued:
        wanted += f" with (re, im) channels or a complex one of {(*points, count)}"
    shape, dtype = getattr(prediction, "shape", None), getattr(prediction, "dtype", None)
    if shape is None or dtype is None:
        raise ValueError(f"{wanted} for {equation.name}, got {type(prediction).__name__}")
    if shape != expected or (complex_given and not equation.complex_valued):
        raise ValueError(f"{wanted} for {equation.name}, got shape {shape} of {dtype}")
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise ValueError(f"{wanted} for {equation.name}, got {dtype} values")


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
    equation.check_coefficient("coefficient", instance.coefficient)
    if min(first.shape[1:-1]) < smallest_grid:
        raise ValueError(
            f"{' and '.join(fields)} must have at least {smallest_grid} points on each grid axis, "
            f"got a grid of {first.shape[1:-1]}"
        )
    return instance, single


def _field(equation: Equation, name: str, field: Any, count: int) -> Array:
    grid = ", ".join(axis.name for axis in equation.axes)
    shapes = f"[{grid}, {count}] for one problem or [batch, {grid}, {count}] for many"
    if field is None:
        raise ValueError(f"{name} is needed by {equation.name}: {shapes}; got None")
    array = as_array(name, field)
    if array.ndim - len(equation.axes) not in (1, 2) or array.shape[-1] != count:
        raise ValueError(f"{name} must be {shapes}, got shape {array.shape}")
    # Real boundary data is complex data with imaginary part zero.
    to_complex = equation.complex_valued and name != "coefficient"
    floating = jnp.issubdtype(array.dtype, jnp.floating)
    return channels.as_complex(array) if to_complex and floating else array


def as_array(name: str, values: Any) -> Array:
    """Numbers as an array of JAX, from any layout and byte order; anything else is refused."""
    if isinstance(values, jax.Array):
        return values
    try:
        array = np.asarray(values)
        # JAX takes native numbers only.
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, got {error}") from None
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == jnp.bfloat16):
        raise ValueError(f"{name} must be an array of numbers, got {array.dtype}")
    return jnp.asarray(array)


def _is_single(equation: Equation, fields: Mapping[str, Array]) -> bool:
    ranks = {field.ndim for field in fields.values()}
    if len(ranks) > 1:
        shapes = {name: field.shape for name, field in fields.items()}
        raise ValueError(f"{' and '.join(fields)} must all be one problem or many, got {shapes}")
    return ranks == {len(equation.axes) + 1}


def _scale(scale: Any, field: Array, *, single: bool) -> Array:
    real = field.real.dtype if jnp.issubdtype(field.dtype, jnp.inexact) else jnp.float32
    array = as_array("scale", scale).astype(real)
    allowed = [(), (len(field),)] if not single else [()]
    if array.shape not in allowed:
        raise ValueError(
            "scale must be one number"
            + ("" if single else f" or one for each of the {len(field)} problems")
            + f", got shape {array.shape}"
        )
    return jnp.broadcast_to(array, (len(field),))
