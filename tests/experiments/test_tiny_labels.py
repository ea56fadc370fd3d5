"""Labels from tiny problems: the rows of the campaign, what is measured, the table."""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import naming, queue, tiny_labels, tiny_labels_report, training
from experiments.configs import tiny_labels as configs
from sino_jax import base, equations
from sino_jax.operator import Operator
from sino_jax.types import Instance

ROOT = pathlib.Path(__file__).parents[2]
DARCY = equations.get("darcy")
META = {"scales": [1.0], "grids": [[9, 9]], "scale_range": [0.1, 8.0]}


def test_rows_have_homes_of_their_own_and_commands_that_make_them():
    places = argparse.Namespace(runs=pathlib.Path("runs"), results=pathlib.Path("results"))
    rows = queue.read(ROOT / "experiments/campaigns/tiny_labels.txt", places)
    assert all(row.workdir.parts[:3] == ("runs", "tiny_labels", "small") for row in rows)
    for row in rows:
        assert row.config.equation == "darcy"
        assert configs.get_config(naming.config_text(row.config)) == row.config
        assert "experiments.tiny_labels " in naming.command(row.config)
    with pytest.raises(ValueError, match="experiment is 'tiny_labels' here and cannot be changed"):
        configs.get_config("small,experiment=darcy")


def test_the_judge_sees_halves_of_growing_super_domains():
    options = training.loss_options(configs.get_config("small"))
    assert options["super_rates"] == (2.0, 4.0, 8.0)
    assert (options["super_crop"], options["super_growing"]) == (0.5, True)
    assert options["detach"] == "prediction"
    assert options["sub_sizes"] == ()


def harmonic(params, inputs, scale):
    """Exact on constant coefficients, times one plus the parameter."""
    field = jax.vmap(lambda sample: base.harmonic(DARCY.split(sample)[1]))(inputs)
    return field.at[:, 1:-1, 1:-1].multiply(1 + params)


def test_a_right_operator_has_no_error_on_patches_and_a_wrong_one_its_own():
    x = jnp.linspace(0, 1, 17)
    field = (10 + x[:, None] * x[None, :])[None, ..., None]  # harmonic, also on the grid
    given = Instance(jnp.ones_like(field), field, jnp.ones(1), field)
    right, wrong = (Operator(DARCY, harmonic, params, META) for params in (0.0, 0.01))
    assert tiny_labels.patch_error(right, given, 9) < 1e-5
    assert tiny_labels.schwarz_error(right, given, 9) < 1e-5
    # One percent of ten is as much as the field varies on a patch.
    assert tiny_labels.patch_error(wrong, given, 9) > 0.3
    assert 0.005 < tiny_labels.schwarz_error(wrong, given, 9) < 0.1


def test_an_added_constant_changes_no_error():
    rng = np.random.default_rng(0)
    target, noise = (jnp.asarray(rng.normal(size=(2, 5, 5, 1))) for _ in range(2))
    errors = [
        tiny_labels.relative_to_variation(target + c + 0.1 * noise, target + c) for c in (0, 100)
    ]
    np.testing.assert_allclose(*errors, rtol=1e-3)


def test_the_table_has_means_over_seeds_and_what_the_judge_knows():
    def result(row, seed, error, **more):
        errors = {f"test-{s}": {"relative_l2": error * s} for s in (1, 2)}
        return {"row": row, "seed": seed, "errors": errors, "trained_scales": [1.0], **more}

    measures = {"patches": {"2": 0.04}, "schwarz": {"2": 0.05}}
    trained = [result("FNO", s, 0.01 * (s + 1), measures=measures, core_minutes=2) for s in (0, 1)]
    text = tiny_labels_report.markdown([*trained, result("base", 0, 0.1, untrained=True)])
    assert "| FNO | 1 | 2 | 1.50 | 3.00 | 2: 4.0 | 2: 5.0 | 2.0 |" in text
    assert "| base | – | – | 10.00 | 20.00 | – | – | – |" in text
