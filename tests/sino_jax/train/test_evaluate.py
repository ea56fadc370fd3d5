"""Evaluation and rollouts: averages over whole data sets, and frames against a closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import checkpoint, data, equations
from sino_jax.rollout import rollout
from sino_jax.train import config as configs
from sino_jax.train import evaluate, parallel
from sino_jax.train import task as tasks
from sino_jax.types import Instance
from tests import training_runs as runs

DECAY = 0.9


def last_frame_times_decay(params, inputs, scale):
    """The exact operator of frames that shrink by a constant factor."""
    del scale
    return params * inputs[..., -1:]


@pytest.mark.parametrize("points", [1, 7 * 9 * 9, 10**6])
def test_every_example_counts_once_whatever_fits_into_memory(tmp_path, points):
    dataset = data.load(runs.write_darcy(tmp_path / "test-4", split="test"))
    instance = dataset.examples(np.arange(len(dataset)))
    errors = jnp.linalg.norm((instance.coefficient - instance.solution).reshape(10, -1), axis=1)
    expected = errors / jnp.linalg.norm(instance.solution.reshape(10, -1), axis=1)

    metrics_fn = evaluate.error_metrics(lambda p, x, s: p * x[..., :1], equations.get("darcy"))
    evaluator = evaluate.Evaluator(metrics_fn, parallel.data_mesh(), points_per_batch=points)
    result = evaluator(jnp.ones(()), dataset)
    np.testing.assert_allclose(result["relative_l2"], expected.mean(), rtol=1e-5)
    assert evaluator.batch_size(dataset) == min(max(1, points // 81), 10)


def test_names_of_data_sets_are_as_short_as_they_can_be(tmp_path):
    paths = [tmp_path / name for name in ("a/test-4", "b/test-4", "b/test-8")]
    sets = [data.load(runs.write_darcy(path, samples=2)) for path in paths]
    assert evaluate.names(sets[1:]) == ["test-4", "test-8"]
    assert evaluate.names(sets) == ["a/test-4", "b/test-4", "b/test-8"]
    assert checkpoint.mean_error({"a": {"relative_l2": 1.0}, "b": {"relative_l2": 2.0}}) == 1.5


def test_a_rollout_of_the_exact_operator_is_the_trajectory():
    past = jnp.ones((2, 4, 5, 10)) * DECAY ** jnp.arange(10.0).reshape(1, 1, 1, -1)
    instance = Instance(past, None, jnp.ones(2))
    frames = rollout(
        last_frame_times_decay,
        jnp.float32(DECAY),
        instance,
        equation=equations.get("navier_stokes"),
        steps=6,
    )
    assert frames.shape == (2, 4, 5, 6)
    np.testing.assert_allclose(frames[1, 2, 3], DECAY ** np.arange(10, 16), rtol=1e-5)


def test_a_space_time_rollout_reads_the_boundary_of_its_own_block():
    equation = equations.get("navier_stokes_spacetime")
    key_past, key_future = jax.random.split(jax.random.key(0))
    past = jax.random.normal(key_past, (2, 5, 4, 3, 2))
    future = jax.random.normal(key_future, (2, 5, 4, 9, 2))

    def sum_of_past_and_low_side(params, inputs, scale):
        del params, scale
        return inputs[..., :2] + inputs[..., 2:4]

    instance = Instance(past, future, jnp.ones(2))
    frames = rollout(sum_of_past_and_low_side, None, instance, equation=equation, steps=3)
    sides = jnp.broadcast_to(future[:, :1], future.shape)
    expected, block = [], past
    for start in (0, 3, 6):
        block = block + sides[..., start : start + 3, :]
        expected.append(block)
    np.testing.assert_allclose(frames, jnp.concatenate(expected, axis=-2), rtol=1e-5)
    with pytest.raises(ValueError, match="needs the boundary of 12 frames"):
        rollout(sum_of_past_and_low_side, None, instance, equation=equation, steps=4)


def write_decay(path, factors, *, split="test"):
    """Three trajectories of 40 frames, each of which is the one before times a factor."""
    start = np.random.default_rng(0).uniform(1, 2, (3, 1, 6, 6))
    trajectory = start * np.cumprod([1.0, *factors]).reshape(1, -1, 1, 1)
    window = {"history": 10, "horizon": 1, "stride": 1, "frames": "channel", "dt": 0.1}
    return runs.write_dataset(
        path,
        {"trajectory": trajectory},
        equation="navier_stokes",
        scale=500.0,
        split=split,
        window=window,
    )


def test_rollout_errors_grow_as_the_closed_form_says(tmp_path):
    path = write_decay(tmp_path / "test-500", [DECAY] * 39)
    dataset = data.load(path).with_window(horizon=5, stride=5)
    wrong = 0.95
    metrics_fn = evaluate.rollout_metrics(
        last_frame_times_decay, equations.get("navier_stokes"), steps=5
    )
    evaluator = evaluate.Evaluator(metrics_fn, parallel.data_mesh(), points_per_batch=100)
    result = evaluator(jnp.float32(wrong), dataset)
    growth = (wrong / DECAY) ** np.arange(1, 6) - 1
    np.testing.assert_allclose(result["relative_l2"], growth.mean(), rtol=1e-4)
    np.testing.assert_allclose(result["relative_l2_last"], growth[-1], rtol=1e-4)
    # The factor is the same everywhere, and so are relative errors.
    for part in ("", "_last"):
        central, whole = (result[f"relative_l2{part}{region}"] for region in ("_central_half", ""))
        np.testing.assert_allclose(central, whole, rtol=1e-4)


def test_one_step_is_scored_on_every_window_beside_rollouts(tmp_path):
    factors = np.random.default_rng(1).uniform(0.5, 0.9, 39)
    paths = [[write_decay(tmp_path / split, factors, split=split)] for split in ("train", "test")]
    model = {"name": "fno", "n_modes": (2, 2), "hidden_channels": 4, "n_layers": 1}
    model |= {"base": "last_frame", **equations.get("navier_stokes").model_fields()}
    config = runs.config(*paths, model=model, evaluation={"rollout_frames": 10})
    config["equation"] = "navier_stokes"
    task = tasks.build(configs.complete(config))
    # With all weights zero the model repeats the last frame.
    params = jax.tree.map(jnp.zeros_like, task.init(jax.random.key(0)))
    (result,) = task.evaluate(params, parallel.data_mesh(), last=True).values()
    predicted = factors[9:]
    one_step = np.mean(1 / predicted - 1)
    np.testing.assert_allclose(result["relative_l2_first"], one_step, rtol=1e-4)
    np.testing.assert_allclose(result["relative_l2_first_central_half"], one_step, rtol=1e-4)
    last = np.mean([1 / np.prod(predicted[start : start + 10]) - 1 for start in (0, 10, 20)])
    np.testing.assert_allclose(result["relative_l2_last"], last, rtol=1e-4)


def test_a_rollout_needs_a_past():
    burgers = equations.get("burgers")
    with pytest.raises(ValueError, match="needs past frames as the coefficient; burgers has none"):
        rollout(
            last_frame_times_decay,
            jnp.ones(()),
            Instance(None, jnp.ones((1, 4, 4, 1)), jnp.ones(1)),
            equation=burgers,
            steps=2,
        )
    with pytest.raises(ValueError, match="steps must be at least 1"):
        rollout(
            last_frame_times_decay,
            jnp.ones(()),
            Instance(jnp.ones((1, 4, 4, 10)), None, jnp.ones(1)),
            equation=equations.get("navier_stokes"),
            steps=0,
        )
