"""Losses refuse what they cannot measure, with the argument, what came and what is expected."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import loss
from sino_jax.loss import crops
from sino_jax.types import Instance

KEY = jax.random.key(0)
ONES = jnp.ones((2, 17, 17, 1))
DARCY = Instance(ONES, None, jnp.ones(2), ONES)
WAVE = Instance(ONES, None, jnp.ones(2), ONES.astype("c8"))


def first_trace(params, inputs, scale):
    return inputs[..., 1:2]


def training(instance=DARCY, apply_fn=first_trace, **options):
    given = {"equation": "darcy", "key": KEY, "progress": 0.5, **options}
    return loss.training_loss(apply_fn, None, instance, **given)


def consistency(instance=DARCY, apply_fn=first_trace, **options):
    given = {"equation": "darcy", "key": KEY, "size": 9, **options}
    return loss.scale_consistency(apply_fn, None, instance, **given)


def infinitesimal(instance=DARCY, apply_fn=first_trace, **options):
    return loss.infinitesimal_scale_consistency(
        apply_fn, None, instance, equation=options.get("equation", "darcy")
    )


LOSSES = {"training": training, "consistency": consistency, "infinitesimal": infinitesimal}
WRONG_OUTPUTS = {
    "channels": (lambda p, x, s: x[..., :2], r"shape \(2, 17, 17, 1\) for darcy, got shape"),
    "grid": (lambda p, x, s: x[:, :1, :, 1:2], r"got shape \(2, 1, 17, 1\)"),
    "batch": (lambda p, x, s: x[:1, ..., 1:2], r"got shape \(1, 17, 17, 1\)"),
    "rank": (lambda p, x, s: x[..., 1], r"got shape \(2, 17, 17\)"),
    "complex": (lambda p, x, s: x[..., 1:2].astype("c8"), "of complex64"),
    "integers": (lambda p, x, s: x[..., 1:2].astype(int), "got int32 values"),
    "no array": (lambda p, x, s: 1.0, "got float"),
}


@pytest.mark.parametrize(
    ("name", "solution"),
    [*((name, ONES) for name in LOSSES), ("consistency", None), ("infinitesimal", None)],
    ids=[*LOSSES, "self-consistency", "infinitesimal self-consistency"],
)
@pytest.mark.parametrize("wrong", WRONG_OUTPUTS)
def test_outputs_of_another_shape_are_never_broadcast(name, wrong, solution):
    apply_fn, message = WRONG_OUTPUTS[wrong]
    instance = Instance(ONES, ONES, jnp.ones(2), solution)
    # The first call of a supervised consistency loss is on the sub-domain.
    with pytest.raises(ValueError, match=message.replace("17", "[0-9]+")):
        LOSSES[name](instance, apply_fn)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solution": ONES[:, :9]}, "one grid"),
        ({"solution": ONES[..., 0]}, "solution of shape"),
        ({"coefficient": None}, "coefficient is needed"),
        ({"coefficient": ONES.astype(int)}, "floating dtype"),
        ({"scale": jnp.ones(3)}, r"scale must have shape \(2,\)"),
        ({"scale": jnp.array([1.0, -1.0])}, "positive"),
        ({"coefficient": ONES.at[1, 2, 3].set(jnp.nan)}, r"finite, got NaN.*\[1\]"),
        ({"coefficient": ONES[:0], "solution": ONES[:0], "scale": jnp.ones(0)}, "at least one"),
    ],
)
def test_instances_that_cannot_be_are_refused(name, changed, message):
    with pytest.raises(ValueError, match=message):
        LOSSES[name](DARCY._replace(**changed))


@pytest.mark.parametrize("name", LOSSES)
def test_a_real_solution_of_helmholtz_is_refused(name):
    with pytest.raises(ValueError, match="complex values, got float32"):
        LOSSES[name](DARCY, equation="helmholtz")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("detach", "inputs", "detach must be one of.*did you mean 'input'"),
        ("progress", float("nan"), "progress must be finite, at least 0, at most 1, got nan"),
        ("progress", 1.5, "progress must be"),
        ("progress", "half", "progress must be one number, got 'half'"),
        ("sub_count", 0, "sub_count must be at least 1, got 0"),
        ("sub_count", 1.5, "sub_count must be a whole number, got 1.5"),
        ("super_count", 0, "super_count must be at least 1"),
        ("sub_weight", float("inf"), "sub_weight must be finite"),
        ("super_start", 2, "super_start must be"),
        ("sub_sizes", (99,), "99"),
        ("sub_sizes", (True,), "size must be a whole number, got True"),
        ("sub_sizes", (9.0,), "size must be a whole number, got 9.0"),
        ("super_rates", (0.5,), "super_rates must be finite, at least 1, got 0.5"),
        ("super_rates", (float("nan"),), "super_rates must be"),
        ("error_fn", lambda p, t: jnp.mean(p - t), "error_fn must return one value for each of 2"),
    ],
)
def test_options_are_checked_whether_or_not_they_are_used(option, value, message):
    # The tests check annotations, too, which name the argument as well.
    with pytest.raises((ValueError, TypeError), match=f"{message}|parameter '{option}'"):
        training(**{option: value})


def test_a_size_of_numpy_is_a_size():
    wanted = consistency(size=9)
    np.testing.assert_array_equal(consistency(size=np.int64(9)), wanted)
    np.testing.assert_array_equal(consistency(size=(np.int32(9), 9)), wanted)


def test_traced_progress_is_not_lost():
    compiled = jax.jit(lambda progress: training(progress=progress, super_rates=(2.0,))[0])
    assert np.isnan(compiled(jnp.float32(np.nan))).all()
    assert np.isfinite(compiled(jnp.float32(0.5))).all()


def test_sizes_may_be_one_number_and_must_be_numbers():
    assert crops.fitting_sizes(9, (17, 17)) == (9,)
    assert crops.fitting_sizes([9, (5, 17), 17], (17, 17)) == (9, (5, 17))
    with pytest.raises(
        ValueError, match=r"sub_sizes must be whole numbers, as in 9\+17, got '9\+'"
    ):
        crops.fitting_sizes("9+", (17, 17))
