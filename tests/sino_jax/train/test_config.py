"""Configs: completed, compared, refused; and the optimisers and precision they choose."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from sino_jax.train import config as configs
from sino_jax.train import optimizer, precision


def test_completing_keeps_what_is_given_and_is_idempotent():
    full = configs.complete(ConfigDict({"steps": 7, "data": {"batch_size": 3}}))
    assert (full.steps, full.data.batch_size, full.optimizer.name) == (7, 3, "adam")
    assert configs.complete(full) == full
    assert configs.differences(full, configs.from_json(configs.to_json(full))) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 1, "sed": 3}, "config has no field 'sed'; did you mean 'seed'"),
        (
            {"steps": 1, "optimizer": {"learning_rat": 1}},
            "config.optimizer has no field 'learning_rat'; did you mean 'learning_rate'",
        ),
        ({"steps": 1, "optimizer": "adam"}, "config.optimizer is a section of fields, got 'adam'"),
        ({"steps": "many"}, "config.steps: "),
        ({}, "exactly one of steps and epochs must be positive, got steps=0, epochs=0"),
        ({"steps": 1, "epochs": 1}, "exactly one of steps and epochs"),
        ({"steps": 1, "on_nonfinite": "pray"}, "on_nonfinite must be one of stop, halve_rate"),
        ({"steps": 1, "accumulate": 0}, "config.accumulate must be at least 1, got 0"),
        ({"steps": 1, "ema_decay": 1.0}, r"ema_decay must be in \[0, 1\), got 1.0"),
    ],
)
def test_bad_configs_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        configs.complete(given)


def test_differences_name_the_field_and_both_values():
    old = configs.complete({"steps": 7, "model": {"name": "fno"}})
    new = configs.complete(
        {"steps": 8, "model": {"name": "fno", "width": 3}, "logging": {"every": 1}}
    )
    assert configs.differences(old, new, ignore=configs.RUNTIME_SECTIONS) == [
        "model.width: '(absent)' -> 3",
        "steps: 7 -> 8",
    ]


def section(**changes):
    return configs.complete({"steps": 1, "optimizer": changes}).optimizer


def test_cosine_decays_to_zero_after_a_linear_warm_up():
    rate = optimizer.learning_rate(section(learning_rate=2.0, warmup_steps=10), 110)
    values = [float(rate(step)) for step in (0, 5, 10, 60, 110)]
    np.testing.assert_allclose(values, [0, 1, 2, 1, 0], atol=1e-6)
    constant = optimizer.learning_rate(section(learning_rate=2.0, schedule="constant"), 110)
    assert float(constant(100)) == 2.0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # The first step of Adam has the size of the rate, whatever the gradient's size is.
        ({"name": "adamw", "weight_decay": 0.5}, -0.1 * (1 + 0.5 * 2)),
        ({"name": "adam", "weight_decay": 0.5}, -0.1),
        ({"name": "sgd", "weight_decay": 0.5}, -0.1 * (8 + 0.5 * 2)),
        ({"name": "sgd", "weight_decay": 0.0, "clip_norm": 1.0}, -0.1),
        # By name from optax: with a weight decay of its own, or with one added to the gradient.
        ({"name": "lion", "weight_decay": 0.5}, -0.1 * (1 + 0.5 * 2)),
        ({"name": "sign_sgd", "weight_decay": 0.5}, -0.1),
    ],
)
def test_the_first_update(changes, expected):
    transformation = optimizer.build(
        section(learning_rate=0.1, schedule="constant", **changes), total_steps=10
    )
    weight, gradient = jnp.array([2.0]), jnp.array([8.0])
    with jax.numpy_dtype_promotion("standard"):
        update, _ = transformation.update(gradient, transformation.init(weight), weight)
    np.testing.assert_allclose(update, [expected], rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "lyon"}, "adam, adamw, sgd or a method of optax, got 'lyon'"),
        ({"name": "schedule_free_adamw"}, "that steps along a given gradient"),
        ({"schedule": "steps"}, "cosine or constant, got 'steps'"),
        ({"warmup_steps": 10}, "warmup_steps must be between 0 and the run's 10 steps, got 10"),
    ],
)
def test_unknown_optimisers_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        optimizer.build(section(**changes), total_steps=10)


class Spectral(nn.Module):
    """A pointwise layer and a Fourier transform."""

    @nn.compact
    def __call__(self, x):
        weights = self.param("modes", nn.initializers.normal(), (5,))
        return jnp.fft.irfft(
            jnp.fft.rfft(x) * weights.reshape(1, -1).astype(jnp.complex64), 8
        ) + nn.Dense(8)(x)


def test_bfloat16_is_for_pointwise_layers_only():
    x = jax.random.normal(jax.random.key(0), (3, 8))
    model = Spectral()
    params = model.init(jax.random.key(1), x)

    def apply(params, mode):
        with precision.policy(mode):
            return model.apply(params, x)

    # Each factor is rounded to 8 bits, the sum of products is not.
    kernel, bias = params["params"]["Dense_0"]["kernel"], params["params"]["Dense_0"]["bias"]
    rounded = [a.astype(jnp.bfloat16).astype(jnp.float32) for a in (x, kernel)]
    pointwise = apply(params, "float32") - (x @ kernel + bias.reshape(1, -1))
    expected = pointwise + rounded[0] @ rounded[1] + bias.reshape(1, -1)
    np.testing.assert_allclose(apply(params, "bfloat16"), expected, atol=1e-5)
    assert np.abs(expected - apply(params, "float32")).max() > 1e-4
    gradient = jax.grad(lambda p: apply(p, "bfloat16").sum())(params)
    assert {leaf.dtype for leaf in jax.tree.leaves(gradient)} == {jnp.dtype("float32")}
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16"):
        precision.policy("float16")
