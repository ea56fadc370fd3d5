"""Predictions that need no training, in the form of a model: ``apply_fn(params, inputs, scale)``.

They see what a trained model sees and `params` is None, so that whatever evaluates a model
evaluates them. `experiments.baselines` makes rows of the tables of them.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sino_jax import base, channels
from sino_jax.equations import Equation
from sino_jax.types import ApplyFn
from solvers import darcy, helmholtz


def extrapolation(equation: Equation, order: int) -> ApplyFn:
    """The polynomial in time through the last ``order + 1`` frames; order 0 is persistence.

    Past frames are channels, one of which is predicted, or lie on the anchored axis of time, on
    which as many are predicted as are known.
    """
    by_axis = any(axis.anchored for axis in equation.axes)

    def apply_fn(params, inputs, scale):
        del params, scale
        past = inputs[..., : equation.coefficient_channels]
        if not by_axis:
            return base.extrapolation(past[..., None], order, ahead=1)[..., 0]
        return base.extrapolation(past, order, ahead=past.shape[-2])

    return apply_fn


def first_frame(equation: Equation) -> ApplyFn:
    """What a space-time window starts from, at all its times."""

    def one(inputs):
        _, field = equation.split(inputs)
        return jnp.broadcast_to(field[:1], field.shape)

    return lambda params, inputs, scale: jax.vmap(one)(inputs)


def heat_solution(equation: Equation, *, extent: Sequence[float]) -> ApplyFn:
    """What initial and boundary values diffuse to on a window of this extent, without advection."""

    def one(inputs, scale):
        _, field = equation.split(inputs)
        return base.heat(field, scale, extent=extent)

    return lambda params, inputs, scale: jax.vmap(one)(inputs, scale)


def base_solution(equation: Equation, name: str, *, shift: float = 0.05) -> ApplyFn:
    """A solution of `sino_jax.base` alone: "coons", "harmonic", or "helmholtz"."""

    def one(inputs, scale):
        coefficient, field = equation.split(inputs)
        extent = base.square_cells(field.shape[:-1])
        if name == "coons":
            solution = base.coons(field)
        elif name == "harmonic":
            solution = base.harmonic(field, extent=extent)
        else:
            solution = base.helmholtz(field, scale, coefficient.mean(), shift=shift, extent=extent)
        return channels.to_channels(solution)

    return lambda params, inputs, scale: jax.vmap(one)(inputs, scale)


def elliptic_solver(
    equation: Equation, *, every: int = 1, wave_numbers: Sequence[float] = ()
) -> ApplyFn:
    """The finite element solver on every so many nodes, interpolated linearly to all of them.

    In double precision where `jax.enable_x64` allows it: single precision fails near a resonance.
    With `wave_numbers`, a Helmholtz problem is solved at the nearest one of them (by its ratio)
    instead of its own: what a perfect model does that knows nothing but the scales it has seen.
    """

    def one(inputs, scale):
        given = inputs.dtype
        inputs, scale = (jnp.asarray(values, jnp.zeros(()).dtype) for values in (inputs, scale))
        coefficient, field = (part[..., 0] for part in equation.split(inputs))
        coarse = (coefficient[::every, ::every], field[::every, ::every])
        if equation.name == "darcy":
            solution = darcy.solve(*coarse)
        else:
            if wave_numbers:
                known = jnp.asarray(wave_numbers, scale.dtype)
                scale = known[jnp.argmin(jnp.abs(jnp.log(known / scale)))]
            solution = helmholtz.solve(coarse[0], scale, dirichlet=coarse[1])
        for axis, points in enumerate(field.shape):
            weights = jnp.asarray(linear_interpolation(points, every), solution.dtype)
            solution = jnp.moveaxis(jnp.tensordot(weights, solution, (1, axis)), 0, axis)
        # The boundary is known at all nodes.
        solution = field.at[1:-1, 1:-1].set(solution[1:-1, 1:-1].astype(field.dtype))
        return channels.to_channels(solution[..., None]).astype(given)

    # One at a time: direct solves of a batch do not fit into the cache.
    return lambda params, inputs, scale: jax.lax.map(lambda pair: one(*pair), (inputs, scale))


def linear_interpolation(points: int, every: int) -> Float[np.ndarray, "fine coarse"]:
    """From every so many nodes, both ends included, to all of them."""
    if (points - 1) % every:
        raise ValueError(f"every must divide the {points - 1} cells of a side, got {every}")
    coarse = (points - 1) // every + 1
    position = np.arange(points) / every
    return np.maximum(0, 1 - np.abs(position[:, None] - np.arange(coarse)[None, :]))
