"""The compiled step: exact gradients for uneven batches, accumulation, averages, failed steps."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sino_jax.train import parallel
from sino_jax.train.step import NONFINITE, STOP, Control, init_state, make_step
from sino_jax.types import Instance

RATE = 0.5


def linear_loss(params, batch, key, progress):
    """(w·x − y)² per example, plus a random term whose gradient is the mean of `noise`."""
    del progress
    errors = jnp.einsum("bxc,c->b", batch.coefficient, params["w"]) - batch.solution[:, 0, 0]
    noise = jax.random.normal(key, ())
    return errors**2 + params["noise"] * noise, {"size": jnp.abs(errors)}


def problem(examples, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(examples, 1, 3)).astype(np.float32)
    y = rng.normal(size=(examples, 1, 1)).astype(np.float32)
    return Instance(x, None, np.ones(examples, np.float32), y)


def start(optimizer=None, *, averaged=False):
    params = {"w": jnp.array([1.0, -2.0, 0.5]), "noise": jnp.zeros(())}
    optimizer = optax.sgd(RATE) if optimizer is None else optimizer
    state = init_state(params, optimizer, jax.random.key(3), averaged=averaged)
    return optimizer, parallel.replicate(state, parallel.data_mesh())


def padded(instance, size, parts):
    ids, weight = parallel.pad(np.arange(len(instance.scale)), size, parts)
    return jax.tree.map(lambda x: x[ids], instance), weight


def control(number, stop=0):
    return Control(jnp.array([number], jnp.int32), jnp.array([stop], jnp.int32))


@pytest.mark.parametrize(("size", "accumulate"), [(3, 1), (4, 1), (3, 2), (8, 4)])
def test_the_step_descends_along_the_mean_over_the_real_examples(size, accumulate):
    instance = problem(3)
    optimizer, state = start()
    step = make_step(
        linear_loss, optimizer, parallel.data_mesh(), total_steps=9, accumulate=accumulate
    )
    before = np.array(state.params["w"])
    x, y = instance.coefficient[:, 0], instance.solution[:, 0, 0]
    errors = x @ before - y
    state, metrics = step(state, padded(instance, size, accumulate), control(0))
    np.testing.assert_allclose(
        state.params["w"], before - RATE * (2 * errors @ x) / 3, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(metrics["size"], np.abs(errors).mean(), rtol=1e-5)
    assert int(state.step) == 1
    assert int(metrics["status"]) == 0


def test_random_numbers_depend_on_the_step_and_on_the_part():
    instance = problem(4)
    keys = jax.random.key(3)
    for accumulate in (1, 2):
        optimizer, state = start()
        step = make_step(
            linear_loss, optimizer, parallel.data_mesh(), total_steps=9, accumulate=accumulate
        )
        expected = 0.0
        for number in range(2):
            state, _ = step(state, padded(instance, 4, accumulate), control(number))
            key = jax.random.fold_in(keys, number)
            drawn = [jax.random.normal(jax.random.fold_in(key, i)) for i in range(accumulate)]
            expected -= RATE * np.mean(drawn)
        np.testing.assert_allclose(state.params["noise"], expected, rtol=1e-5)


def test_averages_follow_their_recurrence():
    optimizer, state = start(averaged=True)
    step = make_step(linear_loss, optimizer, parallel.data_mesh(), total_steps=9, ema_decay=0.75)
    average = np.array(state.params["w"])
    for number in range(3):
        state, _ = step(state, padded(problem(3, number), 3, 1), control(number))
        average = 0.75 * average + 0.25 * np.array(state.params["w"])
    np.testing.assert_allclose(state.averages["w"], average, rtol=1e-6)
    assert state.evaluated is state.averages


def test_a_failed_step_changes_nothing_and_neither_do_those_after_it():
    optimizer, state = start(optax.adam(0.1))
    step = make_step(linear_loss, optimizer, parallel.data_mesh(), total_steps=9)
    state, _ = step(state, padded(problem(3), 3, 1), control(0))
    before = jax.device_get(state._replace(key=jax.random.key_data(state.key)))
    bad = problem(3)
    bad.solution[1] = np.inf
    for number, instance in [(1, bad), (2, problem(3))]:
        state, metrics = step(state, padded(instance, 3, 1), control(number))
        assert int(metrics["status"]) == NONFINITE
    after = jax.device_get(state._replace(key=jax.random.key_data(state.key)))
    jax.tree.map(np.testing.assert_array_equal, after, before)


def test_the_wish_to_stop_comes_back():
    optimizer, state = start()
    step = make_step(linear_loss, optimizer, parallel.data_mesh(), total_steps=9)
    _, metrics = step(state, padded(problem(3), 3, 1), control(0, stop=1))
    assert int(metrics["status"]) == STOP


def test_pad_repeats_real_examples_with_weight_zero():
    ids, weight = parallel.pad(np.array([5, 7, 9]), 6, 4)
    np.testing.assert_array_equal(ids, [5, 7, 9, 5, 7, 9, 5, 7])
    np.testing.assert_array_equal(weight, [1, 1, 1, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="ids must hold between 1 and size=2"):
        parallel.pad(np.arange(3), 2, 1)


@pytest.mark.parametrize("error", [RuntimeError("Unknown backend cuda"), AssertionError()])
def test_a_platform_without_devices_is_named(monkeypatch, error):
    def no_devices():
        raise error

    monkeypatch.setattr(jax, "devices", no_devices)
    with pytest.raises(RuntimeError, match="JAX_PLATFORMS is .*no such device.*Error"):
        parallel.data_mesh()
