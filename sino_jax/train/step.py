"""One training step, compiled once for all devices.

The step is `jax.jit(jax.shard_map(...))` over the data axis: each device differentiates the loss of
its own examples, so that its Fourier transforms stay local, and the gradients are summed once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from sino_jax.train import gradient as gradients
from sino_jax.train.gradient import LossFn, Params
from sino_jax.train.parallel import AXIS, SAME, SPLIT, compiler_options
from sino_jax.types import Key

# step(state, (batch, weight), control) -> (state, metrics), see `make_step`.
Step = Callable[["TrainState", Any, "Control"], tuple["TrainState", dict[str, Array]]]

# Bits of a step's status.
NONFINITE, STOP = 1, 2


class TrainState(NamedTuple):
    """Everything that a run needs to continue.

    Attributes:
      step: number of steps done.
      params: the weights.
      optimizer: state of the optimiser.
      averages: exponential moving average of the weights, or None.
      rate: factor on the learning rate, 1 unless training had to be rescued.
      key: the random key of the run; step n draws from ``fold_in(key, n)``.
    """

    step: Int[Array, ""]
    params: Params
    optimizer: optax.OptState
    averages: Params | None
    rate: Float[Array, ""]
    key: Key

    def __repr__(self) -> str:
        weights = sum(leaf.size for leaf in jax.tree.leaves(self.params))
        averaged = "" if self.averages is None else ", averaged"
        return f"TrainState(step {self.step}: {weights:,} weights{averaged})"

    @property
    def evaluated(self) -> Params:
        """The weights to evaluate and to use: the averaged ones if there are any."""
        return self.params if self.averages is None else self.averages


class Control(NamedTuple):
    """What the host tells a step; each entry has shape ``[device]``.

    Attributes:
      number: the number of the step that the batch is meant for.
      stop: 1 if the device's process was asked to stop.
    """

    number: Int[Array, "device"]
    stop: Int[Array, "device"]


def init_state(
    params: Params, optimizer: optax.GradientTransformation, key: Key, *, averaged: bool
) -> TrainState:
    """The state before the first step."""
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        optimizer=optimizer.init(params),
        averages=jax.tree.map(jnp.array, params) if averaged else None,
        rate=jnp.ones((), jnp.float32),
        key=key,
    )


def make_step(
    loss_fn: LossFn,
    optimizer: optax.GradientTransformation,
    mesh: Mesh,
    *,
    total_steps: int,
    accumulate: int = 1,
    points_at_once: int = 0,
    ema_decay: float = 0.0,
) -> Step:
    """``step(state, batch, control) -> (state, metrics)``, compiled; `state` is consumed.

    With weights wᵢ (zero for examples that only fill up a batch) the step descends along the
    gradient of Σ wᵢ lossᵢ / Σ wᵢ over all devices. If that loss or its gradient is not finite, the
    state is returned unchanged, and so it is by all later steps, whose number is then not the
    state's. Hence a caller need not wait for a step before it starts the next one.

    Args:
      loss_fn: see `LossFn`. Its key differs between devices and accumulated parts: 8 devices draw
        what 1 device draws in 8 accumulated parts.
      optimizer: any optax transformation.
      mesh: see `sino_jax.train.parallel.data_mesh`.
      total_steps: length of the run, for the progress that the loss is told.
      accumulate: number of parts into which a device's examples are cut; they are differentiated
        one after another, with the memory of one.
      points_at_once: grid points that are differentiated at once, see `gradient.piecewise`: the
        same gradient with less memory. 0: the whole loss of a part.
      ema_decay: of `TrainState.averages`.

    Returns:
      A function of the state, the pair (batch, weight) and a `Control`, the latter two split over
      the mesh. The metrics are averages of the loss and its parts, the gradient's norm, and
      ``status``: bits `NONFINITE` and `STOP`, the same on all processes, so that all of them draw
      the same conclusion.
    """
    if points_at_once:
        differentiate = gradients.piecewise(loss_fn, points_at_once)
    else:
        differentiate = gradients.at_once(loss_fn)

    def device_sums(params, batch, weight, key, progress):
        """Gradient and values, summed over the examples of this device."""
        first = jax.lax.axis_index(AXIS) * accumulate
        if accumulate == 1:
            return differentiate(params, (batch, weight), jax.random.fold_in(key, first), progress)

        def add_part(total, numbered):
            number, part = numbered
            part_key = jax.random.fold_in(key, first + number)
            return jax.tree.map(jnp.add, total, differentiate(params, part, part_key, progress)), ()

        parts = jax.tree.map(lambda x: x.reshape(accumulate, -1, *x.shape[1:]), (batch, weight))
        one_part = jax.tree.map(lambda x: x[0], parts)
        zeros = jax.tree.map(
            jnp.zeros_like, jax.eval_shape(differentiate, params, one_part, key, progress)
        )
        numbers = jnp.arange(accumulate)
        return jax.lax.scan(add_part, zeros, (numbers, parts))[0]

    def step(state, weighted_batch, control):
        batch, weight = weighted_batch
        key = jax.random.fold_in(state.key, state.step)
        progress = state.step / total_steps
        weight = weight / jax.lax.psum(jnp.sum(weight), AXIS)
        # Weights that count as different on each device have local gradients, which are summed
        # once below. Otherwise every use of a weight would be summed, each accumulated part too.
        sums = device_sums(_varying(state.params), batch, weight, key, progress)
        gradient, values = jax.lax.psum(sums, AXIS)
        norm = optax.tree.norm(gradient)
        number, stop = jax.lax.pmax((jnp.max(control.number), jnp.max(control.stop)), AXIS)
        good = jnp.isfinite(values["loss"]) & jnp.isfinite(norm) & (state.step == number)
        updated = _update(state, gradient, optimizer, ema_decay)
        state = jax.tree.map(lambda new, old: jnp.where(good, new, old), updated, state)
        status = NONFINITE * (~good).astype(jnp.int32) + STOP * stop
        return state, {**values, "gradient_norm": norm, "status": status}

    sharded = jax.shard_map(step, mesh=mesh, in_specs=(SAME, SPLIT, SPLIT), out_specs=(SAME, SAME))
    return jax.jit(sharded, donate_argnums=0, compiler_options=compiler_options(mesh))


def _update(
    state: TrainState, gradient: Params, optimizer: optax.GradientTransformation, ema_decay: float
) -> TrainState:
    # Optax raises floats to integer powers, which strict promotion of dtypes forbids.
    with jax.numpy_dtype_promotion("standard"):
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.params)
    updates = jax.tree.map(lambda u: u * state.rate.astype(u.dtype), updates)
    params = optax.apply_updates(state.params, updates)
    averages = state.averages
    if averages is not None:
        averages = optax.incremental_update(params, averages, 1 - ema_decay)
    return TrainState(state.step + 1, params, optimizer_state, averages, state.rate, state.key)


def _varying(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.lax.pcast(x, AXIS, to="varying"), tree)
