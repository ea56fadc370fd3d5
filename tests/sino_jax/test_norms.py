"""Norms over the whole range of a dtype, and NaN through everything that measures an error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import (
    base,
    boundary,
    checkpoint,
    decomposition,
    diagnostics,
    equations,
    loss,
    models,
    norms,
)
from sino_jax.diagnostics import error_estimate, theorem
from sino_jax.train import evaluate
from sino_jax.types import Instance

KEY = jax.random.key(0)
SHAPE = (2, 17, 17, 1)


def positive_field(seed=0, shape=SHAPE):
    return jnp.asarray(np.exp(0.3 * np.random.default_rng(seed).normal(size=shape)), "f4")


def scaled_traces(factor, inputs, scale):
    """A model: its first trace times a factor, which may be NaN as trained weights may be."""
    return factor * inputs[..., 1:2]


def problems(solution):
    return Instance(positive_field(1), None, jnp.ones(2), solution)


def unlabelled(factor):
    return Instance(positive_field(1), factor * positive_field(), jnp.ones(2))


def frames(factor):
    """Metrics of a rollout of a model that multiplies the newest frame."""
    instance = Instance(
        positive_field(2, (2, 8, 8, 10)), None, jnp.ones(2), positive_field(3, (2, 8, 8, 3))
    )
    metrics_fn = evaluate.rollout_metrics(
        lambda p, inputs, scale: p * inputs[..., -1:], equations.get("navier_stokes"), 3
    )
    return metrics_fn(factor, instance)


def estimate(factor):
    given = problems(factor * positive_field())._replace(boundary=positive_field())
    return error_estimate.indicator(given, equation=equations.get("darcy"))


def refined(factor):
    return decomposition.refine_history(
        scaled_traces, factor, positive_field(1), positive_field(), jnp.ones(2),
        equation="darcy", patches=2, overlap=5, iterations=2, start="zeros",
    )  # fmt: skip


def with_base(factor):
    model = models.build(
        {"name": "fno", "n_modes": (2, 2), "hidden_channels": 2, "n_layers": 1, "out_channels": 1,
         "in_channels": 5, "boundary_channels": 4, "base": "harmonic"}
    )  # fmt: skip
    inputs = jnp.concatenate([positive_field(1), *4 * [positive_field()]], axis=-1)
    variables = model.init(KEY, inputs, jnp.ones(2))
    return model.apply(variables, inputs.at[..., :1].multiply(factor), jnp.ones(2))


# Each takes a factor of what it measures, and gives numbers that are finite for a finite factor.
MEASURES = {
    "l2_norm": lambda x: norms.l2_norm(x * positive_field()),
    "l2_norm, complex": lambda x: norms.l2_norm(
        jax.lax.complex(positive_field(), x * positive_field())
    ),
    "bilinear_l2_norm": lambda x: norms.bilinear_l2_norm(x * positive_field()[0], (1.0, 1.0)),
    "relative, error": lambda x: norms.relative(x * jnp.ones(2), jnp.ones(2)),
    "relative, size": lambda x: norms.relative(jnp.ones(2), x * jnp.ones(2)),
    "relative_l2, prediction": lambda x: loss.relative_l2(x * positive_field(), positive_field(1)),
    "relative_l2, target": lambda x: loss.relative_l2(positive_field(1), x * positive_field()),
    "relative_h1": lambda x: loss.relative_h1(
        x * positive_field(), positive_field(1), centrings=("node", "node")
    ),
    "central half": lambda x: loss.relative_l2_central_half(
        x * positive_field(), positive_field(1)
    ),
    "magnitude": lambda x: boundary.magnitude(x * positive_field()),
    "scale_consistency": lambda x: loss.scale_consistency(
        scaled_traces, x, problems(positive_field()), equation="darcy", size=9, key=KEY
    ),
    "scale_consistency, self-supervised": lambda x: loss.scale_consistency(
        scaled_traces, x, unlabelled(1.0), equation="darcy", size=9, key=KEY
    ),
    "infinitesimal": lambda x: loss.infinitesimal_scale_consistency(
        scaled_traces, x, problems(positive_field()), equation="darcy"
    ),
    "training_loss": lambda x: loss.training_loss(
        scaled_traces, x, problems(positive_field()), equation="darcy", key=KEY, progress=1.0,
        sub_sizes=(9,), super_rates=(2.0,),
    ),
    "error_metrics": lambda x: evaluate.error_metrics(scaled_traces, equations.get("darcy"))(
        x, problems(positive_field())
    ),
    "rollout_metrics": frames,
    "boundary_error": lambda x: diagnostics.boundary_error(
        x * positive_field(), positive_field(1), equation="darcy"
    ),
    "self_consistency_error": lambda x: diagnostics.self_consistency_error(
        scaled_traces, x, unlabelled(1.0), equation="darcy", size=9, key=KEY, draws=2
    ),
    "residual_norm": lambda x: diagnostics.residual_norm(
        positive_field(1)[0], x * positive_field()[0]
    ),
    "darcy_error_bounds": lambda x: diagnostics.darcy_error_bounds(
        positive_field(1)[0], x * positive_field()[0]
    ),
    "varied_terms": lambda x: theorem.varied_terms(
        scaled_traces, x, problems(positive_field()), equation="darcy", size=9, key=KEY, draws=2
    ),
    "theorem's error": lambda x: theorem.error(
        scaled_traces, x, problems(positive_field()), equation="darcy"
    ),
    "indicator": lambda x: [estimate(x).relative, estimate(x).bound],
    "refine_history": lambda x: [refined(x).change, refined(x).residual[1:]],
    "gate of a base": with_base,
    "harmonic base": lambda x: base.harmonic(x * positive_field()[0]),
}  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES)
def test_nan_is_never_a_number(measure):
    """Compiled, so that no check of concrete values stands before the arithmetic."""
    compiled = jax.jit(lambda x: jax.tree.leaves(MEASURES[measure](x)))
    assert all(np.isnan(leaf).all() for leaf in compiled(jnp.float32(np.nan))), measure
    finite = compiled(jnp.float32(1.25))
    # A bound may be infinite, where nothing is guaranteed; it is not NaN.
    assert not any(np.isnan(leaf).any() for leaf in finite), measure


@pytest.mark.parametrize("criterion", decomposition.CRITERIA)
def test_a_tolerance_is_not_met_by_nan(criterion):
    result = decomposition.refine_history(
        scaled_traces, np.nan, positive_field(1), positive_field(), jnp.ones(2), equation="darcy",
        patches=2, overlap=5, iterations=3, start="zeros", tolerance=1e3, criterion=criterion,
    )  # fmt: skip
    assert len(result.change) == 3
    assert np.isnan(result.change).all()


def test_one_bad_example_leaves_the_others_alone():
    prediction = positive_field().at[1, 3, 3].set(np.nan)
    errors = loss.relative_l2(prediction, positive_field(1))
    assert np.isnan(errors[1])
    assert errors[0] == loss.relative_l2(positive_field(), positive_field(1))[0]


def test_rankings_refuse_or_propagate_nan():
    with pytest.raises(ValueError, match="second must not hold NaN, got 1"):
        error_estimate.rank_correlation(np.arange(3.0), np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="finite"):
        error_estimate.calibrate(np.ones(3), np.array([1.0, np.nan, 2.0]))
    results = {"a": {"relative_l2": 0.1}, "b": {"relative_l2": float("nan")}}
    assert checkpoint.mean_error(results) == np.inf  # ranked behind every finite error


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float16", 1e-4), ("float16", 3e4), ("bfloat16", 1e30), ("float32", 1e-30),
     ("float32", 1e-36), ("float32", 1e30), ("float32", 1e37), ("complex64", 1e-30),
     ("complex64", 1e30)],
)  # fmt: skip
def test_the_norm_is_right_wherever_its_value_is_a_number(dtype, size):
    field = jnp.asarray(size * np.random.default_rng(0).uniform(0.1, 1, size=(2, 5, 4, 1)), dtype)
    expected = np.linalg.norm(np.asarray(field).astype("c16").reshape(2, -1), axis=1)
    np.testing.assert_allclose(norms.l2_norm(field), expected, rtol=1e-6)
    np.testing.assert_allclose(loss.relative_l2(1.5 * field, field), 0.5, rtol=2e-2)
    gradient = jax.grad(lambda x: norms.l2_norm(x).sum())(field)
    unit = np.asarray(field).astype("c16") / expected.reshape(2, 1, 1, 1)
    np.testing.assert_allclose(np.conj(gradient.astype("c8")), unit, rtol=1e-2, atol=1e-3)


def test_scaling_changes_no_digit_of_an_ordinary_norm():
    field = positive_field()
    plain = jnp.sqrt(jnp.sum(field.reshape(len(field), -1) ** 2, axis=1))
    np.testing.assert_array_equal(norms.l2_norm(field), plain)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_magnitude_and_dual_norm_are_homogeneous_over_the_range(factor):
    field, load = positive_field(), positive_field(shape=(5, 5, 1))
    np.testing.assert_allclose(
        boundary.magnitude(factor * field), factor * boundary.magnitude(field), rtol=1e-6
    )
    potential = base.poisson(load)
    np.testing.assert_allclose(
        diagnostics.dual_norm(factor * load, factor * potential),
        factor * diagnostics.dual_norm(load, potential),
        rtol=1e-6,
    )


def test_infinity_is_an_infinite_norm():
    field = positive_field().at[0, 0, 0].set(np.inf)
    np.testing.assert_array_equal(norms.l2_norm(field)[0], np.inf)
