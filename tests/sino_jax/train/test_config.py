"""Configs: completed, compared, refused, changed by text; and the optimisers they choose."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from ml_collections import ConfigDict

from sino_jax.train import config as configs
from sino_jax.train import optimizer, overrides


def test_completing_keeps_what_is_given_and_is_idempotent():
    full = configs.complete(ConfigDict({"steps": 7, "data": {"batch_size": 3}}))
    assert (full.steps, full.data.batch_size, full.optimizer.name) == (7, 3, "adam")
    assert configs.complete(full) == full
    assert configs.differences(full, json.loads(configs.to_json(full))) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 1, "sed": 3}, "config has no field 'sed'; did you mean 'seed'"),
        (
            {"steps": 1, "optimizer": {"learning_rat": 1}},
            "config.optimizer has no field 'learning_rat'; did you mean 'learning_rate'",
        ),
        ({"steps": 1, "optimizer": "adam"}, "config.optimizer is a section of fields, got 'adam'"),
        ({"steps": "many"}, "config.steps must be a whole number, got 'many'"),
        ({"steps": 1.5}, "config.steps must be a whole number, got 1.5"),
        ({"steps": True}, "config.steps must be a whole number, got True"),
        ({"steps": -1}, "config.steps must be zero or positive, got -1"),
        ({"steps": 1, "seed": -1}, "config.seed must be between 0 and 2"),
        ({"steps": 1, "model": "fno"}, "config.model is a section of fields, got 'fno'"),
        ({"steps": 1, "equation": 3}, "config.equation must be text, got 3"),
        ({"steps": 1, "data": {"train": "a/b"}}, "data.train must be a tuple of directories"),
        ({"steps": 1, "data": {"batch_size": 0}}, "data.batch_size must be at least 1, got 0"),
        ({"steps": 1, "data": {"normalise": "no"}}, "normalise must be True or False, got 'no'"),
        ({"steps": 1, "optimizer": {"learning_rate": 0}}, "learning_rate must be positive, got 0"),
        ({"steps": 1, "optimizer": {"learning_rate": "1"}}, "must be a finite number, got '1'"),
        (
            {"steps": 1, "optimizer": {"learning_rate": float("nan")}},
            "config.optimizer.learning_rate must be a finite number, got nan",
        ),
        ({"steps": 1, "optimizer": {"clip_norm": -1}}, "clip_norm must be zero or positive"),
        ({"steps": 1, "optimizer": {"schedule": "steps"}}, "one of cosine, constant, got 'steps'"),
        (
            {"steps": 1, "optimizer": {"warmup_steps": 1, "warmup_part": 0.1}},
            "at most one of optimizer.warmup_steps and optimizer.warmup_part",
        ),
        ({"steps": 1, "evaluation": {"rollout_frames": 0}}, "rollout_frames must be at least 1"),
        ({"steps": 1, "checkpoint": {"every": 0}}, "checkpoint.every must be at least 1, got 0"),
        ({"steps": 1, "precision": "bfloat16"}, "bfloat16 only reached dense layers"),
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


def test_configs_of_earlier_releases_are_completed():
    old = {"steps": 7, "precision": "float32", "optimizer": {"name": "adamw"}}
    assert configs.complete(old) == configs.complete({"steps": 7, "optimizer": {"name": "adamw"}})


def test_numbers_take_the_type_of_their_field():
    full = configs.complete(
        {"steps": np.int64(3), "optimizer": {"learning_rate": 1}, "data": {"train": ["a"]}}
    )
    assert [type(value) for value in (full.steps, full.optimizer.learning_rate)] == [int, float]
    assert full.data.train == ("a",)


def test_fields_are_changed_by_text():
    given = {"steps": 5, "model": {"name": "fno"}}
    changed = overrides.apply(
        given,
        [
            "train.optimizer.b1=0.5",
            "optimizer.name=lion",
            "optimizer.learning_rate=2",
            "accumulate=2",
            "logging.tensorboard=True",
            "data.test=a/b:c",
            "model.n_modes=(4, 4)",
            "loss.sub_sizes=(9, 17)",
            "train.experiment.note=first try",
        ],
    )
    assert given == {"steps": 5, "model": {"name": "fno"}}
    full = configs.complete(changed)
    assert (full.optimizer.name, full.optimizer.b1, full.optimizer.learning_rate) == (
        "lion",
        0.5,
        2,
    )
    assert (full.steps, full.accumulate, full.logging.tensorboard) == (5, 2, True)
    assert full.data.test == ("a/b", "c")
    assert (full.model.name, full.model.n_modes) == ("fno", (4, 4))
    assert (full.loss.sub_sizes, full.experiment.note) == ((9, 17), "first try")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("acumulate=2", "config has no field 'acumulate'; did you mean 'accumulate'"),
        ("train.optimizer.nme=lion", "config.optimizer has no field 'nme'; did you mean 'name'"),
        ("optimizer.b3=0.5", "config.optimizer has no field 'b3'; did you mean 'b"),
        ("optimizer=lion", "config.optimizer is a section of fields, got 'lion'"),
        ("accumulate=two", "config.accumulate must be a whole number, got 'two'"),
        ("accumulate.more=2", "config.accumulate is no section of fields"),
        ("logging.tensorboard=1", "config.logging.tensorboard must be True or False, got '1'"),
        ("steps", "a change has the form field=value, got 'steps'"),
        ("accumulate=2 train.accumulate=3", "accumulate is changed twice: to 2 and 3"),
        ("optimizer.name=lyon", "got 'lyon'; did you mean 'lion'"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        configs.complete(overrides.apply({"steps": 5}, change.split()))


def test_differences_name_the_field_and_both_values():
    old = configs.complete({"steps": 7, "model": {"name": "fno"}})
    new = configs.complete(
        {"steps": 8, "model": {"name": "fno", "width": 3}, "logging": {"every": 1}}
    )
    assert configs.differences(old, new, ignore=configs.RUNTIME_FIELDS) == [
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
    np.testing.assert_allclose(updates(transformation), [expected], rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"warmup_steps": 10}, "warmup_steps must be between 0 and the run's 10 steps, got 10"),
        ({"momentum": 0.9}, "momentum must be 0 for adam, which has none, got 0.9"),
        ({"name": "lion", "momentum": 0.9}, "momentum must be 0 for lion"),
    ],
)
def test_optimisers_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        optimizer.build(section(**changes), total_steps=10)


@pytest.mark.parametrize("name", ["lyon", "lbfgs", "schedule_free_adamw", "scale_by_adam", "chain"])
def test_methods_that_a_step_cannot_drive_are_refused_with_the_nearest(name):
    with pytest.raises(ValueError, match=f"a method of optax.*got '{name}'; did you mean"):
        section(name=name)


def updates(transformation, gradients=(8.0,)):
    """The updates for a weight of 2 that stays, one after another."""
    weight = jnp.array([2.0])
    state, result = transformation.init(weight), []
    with jax.numpy_dtype_promotion("standard"):
        for gradient in gradients:
            update, state = transformation.update(jnp.array([gradient]), state, weight)
            result.append(float(update[0]))
    return result


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "lion", "b1": 0.1}, lambda: optax.lion(0.1, b1=0.1, weight_decay=0.5)),
        (
            {"name": "prodigy", "betas": (0.8, 0.9)},
            lambda: optax.contrib.prodigy(0.1, betas=(0.8, 0.9), weight_decay=0.5),
        ),
        (
            {"name": "rmsprop", "decay": 0.5},  # it has no weight decay of its own
            lambda: optax.chain(optax.add_decayed_weights(0.5), optax.rmsprop(0.1, decay=0.5)),
        ),
        (
            {"name": "lars", "momentum": 0.5},
            lambda: optax.lars(0.1, weight_decay=0.5, momentum=0.5),
        ),
        ({"name": "adamw", "b1": 0.5}, lambda: optax.adamw(0.1, b1=0.5, weight_decay=0.5)),
    ],
)
def test_a_method_of_optax_takes_its_arguments_from_the_config(fields, expected):
    def built(**fields):
        fixed = {"learning_rate": 0.1, "schedule": "constant", "weight_decay": 0.5}
        return updates(optimizer.build(section(**fixed, **fields), 10), gradients)

    gradients = (8.0, 1.0, -0.5, 3.0)
    np.testing.assert_allclose(built(**fields), updates(expected(), gradients), rtol=1e-6)
    assert built(**fields) != built(name=fields["name"])


def test_lists_are_tuples_empty_ones_as_well():
    given = {"data": {"train": ["a"]}, "loss": {"sub_sizes": [], "super_rates": []}, "steps": 1}
    full = configs.complete(given)
    assert full.data.train == ("a",)
    assert full.loss.sub_sizes == full.loss.super_rates == ()
