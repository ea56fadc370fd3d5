"""Autoregressive prediction: each prediction becomes part of the next step's past."""

import jax
import jax.numpy as jnp

from sino_jax import checks, problem
from sino_jax.equations import Equation
from sino_jax.types import ApplyFn, Batch, Instance


def rollout(
    apply_fn: ApplyFn, params, instance: Instance, *, equation: Equation, steps: int
) -> Batch:
    """Predicts `steps` times in a row from the past that `instance.coefficient` holds.

    Frames are channels (vorticity form: ``[batch, x, y, frame]``), or lie on an anchored time axis
    (space-time form: ``[batch, x, y, t, channel]``, as many frames a step as the past has).

    Args:
      apply_fn: ``apply_fn(params, inputs, scale)``.
      params: its weights.
      instance: the past, and for an equation with boundary data a `boundary` or `solution` that
        covers all predicted frames, of which only the boundary is read.
      equation: says how inputs are made and where time is.
      steps: number of predictions.

    Returns:
      All predicted frames, one after another on the axis of time, without the past.
    """
    steps = checks.integer("steps", steps)
    anchored = [i for i, axis in enumerate(equation.axes) if axis.anchored]
    time = 1 + anchored[0] if anchored else -1
    past = instance.coefficient
    if past is None:
        raise ValueError(
            f"a rollout needs past frames as the coefficient; {equation.name} has none"
        )
    frames = past.shape[time]

    blocks = None
    if equation.sides:
        field = instance.field
        if field is None or field.shape[time] != steps * frames:
            raise ValueError(
                f"a rollout of {steps} steps needs the boundary of {steps * frames} frames, "
                f"got {None if field is None else field.shape}"
            )
        blocks = jnp.stack(jnp.split(field, steps, axis=time))

    def advance(past, block):
        inputs = jax.vmap(equation.inputs)(past, block)
        prediction = problem.apply(apply_fn, params, inputs, instance.scale, equation)
        joined = jnp.concatenate([past, prediction], axis=time)
        newest = jnp.arange(joined.shape[time] - frames, joined.shape[time])
        return jnp.take(joined, newest, axis=time), prediction

    _, predictions = jax.lax.scan(advance, past, blocks, length=steps)
    return jnp.concatenate(list(predictions), axis=time)
