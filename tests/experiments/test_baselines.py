"""Predictions without training, and that validation data is neither trained nor tested on."""

import importlib
import json

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import baselines, classical, outcome, tables, training
from sino_jax import equations, problem
from sino_jax.types import Instance
from solvers import darcy, fourier, generate, recipes

NAMES = ("darcy", "helmholtz", "burgers", "navier_stokes", "navier_stokes_spacetime")


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["navier_stokes", "navier_stokes_spacetime"])
def test_extrapolation_is_exact_for_polynomials_in_time(name, order):
    equation = equations.get(name)
    by_axis = name.endswith("spacetime")
    frames, ahead = (6, 6) if by_axis else (10, 1)
    time = np.arange(frames + ahead) / 10
    values = np.stack([(time + 1) ** order, 2 - time**order], axis=-1).astype(np.float32)
    field = np.broadcast_to(values, (1, 4, 5, *values.shape))
    if not by_axis:
        field = field[..., 0]
        past, future = field[..., :frames], field[..., frames:]
    else:
        past, future = field[..., :frames, :], field[..., frames:, :]
    instance = Instance(jnp.asarray(past), None, jnp.ones(1), jnp.asarray(future))
    inputs = problem.inputs(equation, instance)
    predicted = classical.extrapolation(equation, order)(None, inputs, instance.scale)
    np.testing.assert_allclose(predicted, future, atol=2e-3)
    wrong = classical.extrapolation(equation, order - 1 if order else 1)(None, inputs, None)
    if order:
        assert np.abs(wrong - future).max() > 1e-3


def darcy_batch(n):
    x = jnp.linspace(0, 1, n)
    coefficient = 1 + 0.5 * jnp.sin(3 * x)[:, None] * jnp.cos(2 * x)[None, :]
    boundary = jnp.cos(4 * x)[:, None] * x[None, :] + x[:, None]
    solution = darcy.solve(coefficient, boundary)
    return Instance(coefficient[None, ..., None], None, jnp.full(1, 4.0), solution[None, ..., None])


def test_the_solver_on_a_coarser_grid_converges_to_the_data():
    equation, instance = equations.get("darcy"), darcy_batch(17)
    inputs = problem.inputs(equation, instance)
    errors = []
    for every in (1, 2, 4):
        apply_fn = classical.elliptic_solver(equation, every=every)
        difference = apply_fn(None, inputs, instance.scale) - instance.solution
        errors.append(float(jnp.linalg.norm(difference.ravel())))
        np.testing.assert_array_equal(difference[0, 0], 0)  # the boundary is known
    assert errors[0] < 1e-4
    assert errors[0] < errors[1] < errors[2]
    with pytest.raises(ValueError, match="every must divide the 16 cells"):
        classical.linear_interpolation(17, 3)


def test_linear_interpolation_is_exact_for_linear_functions():
    coarse = np.linspace(0, 1, 5)
    np.testing.assert_allclose(
        classical.linear_interpolation(17, 4) @ coarse, np.linspace(0, 1, 17)
    )


def test_the_first_frame_stands_still():
    equation = equations.get("burgers")
    field = jnp.arange(12.0).reshape(1, 3, 4, 1)
    inputs = problem.inputs(equation, Instance(None, None, jnp.ones(1), field))
    predicted = classical.first_frame(equation)(None, inputs, None)
    np.testing.assert_array_equal(predicted[0, :, :, 0], np.tile(np.arange(4.0), (3, 1)))


@pytest.mark.parametrize(("old", "new"), [((12,), (30,)), ((30,), (12,)), ((12, 15), (24, 10))])
def test_resampling_keeps_the_function(old, new, x64):
    def wave(shape):
        axes = np.meshgrid(*(np.arange(n) / n for n in shape), indexing="ij")
        return sum(np.cos(2 * np.pi * (d + 2) * x + d) for d, x in enumerate(axes))

    np.testing.assert_allclose(fourier.resample(jnp.asarray(wave(old)), new), wave(new), atol=1e-12)


def test_untrained_rows_stand_in_the_tables(tmp_path):
    config = importlib.import_module("experiments.configs.burgers").get_config("tiny")
    metrics = {"relative_l2": 0.2, "relative_l2_central_half": 0.1}
    row = baselines.Row("Solution at Re = 400", {100.0: metrics}, {100.0: 0.5})
    content = baselines.result(row, config, trained=(400,), samples=2)
    (tmp_path / outcome.RESULT).write_text(json.dumps(content))
    (found,) = tables.collect(tmp_path)
    text = tables.markdown([found], tables.PAPER["burgers"][0])
    assert "| Solution at Re = 400 | untrained | 10.00 |" in text
    report = baselines.report([row], "burgers")
    assert "10.00 (5e+02)" in report
    assert "28.60" in report


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("preset", ["tiny", "small", "long"])
def test_validation_data_is_neither_trained_nor_tested_on(name, preset):
    experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    config = importlib.import_module(f"experiments.configs.{name}").get_config(preset)
    settings = generate.data_sets(experiment.data_config(config.data))
    assert any(key.startswith("val-") for key in settings)
    used = training.training_config(experiment, config, {key: f"data/{key}" for key in settings})
    for path in (*used["data"]["train"], *used["data"]["test"]):
        assert "/val-" not in path
    streams = {key: generate.stream(entry) for key, entry in settings.items()}
    assert len(set(streams.values())) == len(streams), "every data set has samples of its own"


def test_the_window_of_burgers_starts_after_the_initial_condition():
    settings = importlib.import_module("solvers.configs.burgers").get_config("paper").to_dict()
    times = recipes.burgers_times(settings)
    np.testing.assert_allclose(times, np.arange(1, 101) / 100)
    assert recipes.burgers_times({**settings, "from_zero": True})[0] == 0


@pytest.mark.slow
def test_solves_of_turbulence_are_those_that_made_the_data(tmp_path):
    """At the right Re, from the states of the data, on the data's grid: the same frames."""
    found = baselines.rows("navier_stokes", "tiny", data_directory=tmp_path)
    row = {row.name: row for row, _ in found}["Solution at Re = 400"]
    first = {scale: metrics["relative_l2_first"] for scale, metrics in row.metrics.items()}
    assert first[400] < 1e-5
    assert first[100] > 1e-3
