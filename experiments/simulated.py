"""The numerical solver in place of a model, for flows on a periodic domain that models see part of.

It starts from the whole periodic state, which models do not see, at another parameter or on a
coarser grid than the data. `Flow` gives the starts of the test problems, and what the solver makes
of them; `experiments.baselines` makes rows of the tables of that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from sino_jax import loss
from sino_jax.equations import Equation
from solvers import burgers, fourier, navier_stokes, recipes


class Flow(NamedTuple):
    """The problems in one sample of a data set.

    Attributes:
      starts: ``(key, scale)`` -> whole states ``[problem, *grid]``, from which problems start.
      advance: ``(start, scale, points)`` -> what models see of the solution of one problem, by the
        solver on `points` points a side; as the data has it, ``[*grid, channel]``.
      predictions: how many consecutive predictions a model makes to get there.
    """

    starts: Callable[[PRNGKeyArray, Array], Float[Array, "problem *grid"]]
    advance: Callable[[Array, Array, int], Float[Array, "*seen channel"]]
    predictions: int = 1


def flow(settings: Mapping[str, Any], *, rollout_frames: int = 1) -> Flow:
    """The problems of a test set with these settings (see `solvers.generate.data_sets`)."""
    if settings["equation"] == "burgers":
        return _burgers(settings)
    return _navier_stokes(settings, rollout_frames)


def _burgers(settings: Mapping[str, Any]) -> Flow:
    n, times = settings["points"], recipes.burgers_times(settings)

    def starts(key, scale):
        del scale
        return burgers.sample_initial(key, n, law=settings["initial_law"])[None]

    def advance(start, scale, points):
        start = fourier.resample(start, (points,))
        frames = burgers.simulate(start, 1 / scale, times).frames
        frames = jax.vmap(lambda frame: fourier.resample(frame, (n,)))(frames)
        return burgers.window(frames)[:, :: settings["thin"], None]

    return Flow(starts, advance)


def _navier_stokes(settings: Mapping[str, Any], rollout_frames: int) -> Flow:
    n, dt, history = settings["points"], settings["dt"], settings["history"]
    by_axis = settings["equation"] == "navier_stokes_spacetime"
    rolled = rollout_frames > 1
    horizon = rollout_frames if rolled else settings["horizon"]
    stride = rollout_frames if rolled else settings["stride"]
    first = np.arange(0, settings["frames"] - history - horizon + 1, stride)

    def starts(key, scale):
        frames, _ = recipes.turbulence(key, {**settings, "scale": scale})
        return frames[first + history - 1]

    def advance(start, scale, points):
        start = fourier.resample(start, (points, points))
        frames = navier_stokes.simulate(
            start, scale, dt * np.arange(1, horizon + 1), cfl=settings["cfl"]
        ).frames
        frames = jax.vmap(lambda frame: fourier.resample(frame, (n, n)))(frames)
        if by_axis:
            return navier_stokes.velocity_window(frames)
        return jnp.moveaxis(navier_stokes.vorticity_window(frames), 0, -1)

    return Flow(starts, advance, 1 if by_axis else horizon)


def metrics(
    prediction: Float[Array, "problem *grid channel"],
    target: Float[Array, "problem *grid channel"],
    *,
    equation: Equation,
    predictions: int,
) -> dict[str, Float[Array, "problem"]]:
    """Those of `sino_jax.train.evaluate`, of predicted frames that are channels if several."""
    parts = zip(*(jnp.split(f, predictions, axis=-1) for f in (prediction, target)), strict=True)
    errors: dict[str, Sequence[Array]] = {"": [], "_central_half": []}
    for p, t in parts:
        errors[""].append(loss.relative_l2(p, t))
        errors["_central_half"].append(
            loss.relative_l2_central_half(p, t, axes=equation.spatial_axes)
        )
    result = {}
    for region, values in errors.items():
        result[f"relative_l2{region}"] = jnp.stack(values).mean(axis=0)
        if predictions > 1:
            result[f"relative_l2_last{region}"] = values[-1]
    return result
