"""What a run learns: sub-domains that fit the data set of a step, and the range of scales."""

import jax
import numpy as np
import pytest

from sino_jax import scale_range
from sino_jax.scale_range import ScaleWarning
from sino_jax.train import config as configs
from sino_jax.train import parallel
from sino_jax.train import task as tasks
from sino_jax.train.plan import Plan
from sino_jax.train.step import Control
from tests import training_runs as runs


@pytest.fixture(scope="module")
def two_grids(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    return [
        runs.write_darcy(root / "train-2", scale=2.0, grid=(9, 9)),
        runs.write_darcy(root / "train-4", scale=4.0, grid=(17, 17)),
    ]


def build(paths, **loss):
    return tasks.build(configs.complete(runs.fno_config(paths, loss=loss)))


def test_a_step_crops_sizes_that_fit_its_data_set(two_grids, monkeypatch):
    seen = {9: set(), 17: set()}
    monkeypatch.setattr(
        tasks,
        "training_terms",
        lambda apply_fn, batch, **options: seen[batch].add(options["sub_sizes"]),
    )
    task = build(two_grids, sub_sizes=(5, 13))
    for step in range(40):
        task.loss_at(step % 2, step, 40).terms(task.train[step % 2].grid[0], None, None)
    assert seen == {9: {(5,)}, 17: {(5,), (13,)}}


def test_weights_and_steps_stay_single_where_double_is_the_default(two_grids):
    config = configs.complete(runs.fno_config(two_grids, loss={"sub_sizes": (5,)}, ema_decay=0.5))
    task = tasks.build(config)
    expected = jax.tree.leaves(jax.eval_shape(task.init, jax.random.key(0)))
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        found = jax.tree.leaves(jax.eval_shape(task.init, jax.random.key(0)))
        assert [leaf.dtype for leaf in found] == [leaf.dtype for leaf in expected]
        plan = Plan.of(task, config)
        before = jax.eval_shape(plan.new_state)
        step, batch, numbers = plan.prepare(0)
        after, _ = step.eval_shape(before, batch, Control(numbers, numbers))
    assert jax.tree.map(lambda x: x.dtype, after) == jax.tree.map(lambda x: x.dtype, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": {"sub_size": (5,)}}, "config.loss has no field 'sub_size'; did you mean 'sub_s"),
        ({"loss": {"key": 3}}, "config.loss has no field 'key'"),
        ({"equation": "darzy"}, "equation must be one of .*did you mean 'darcy'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_data_is_read(changes, message):
    config = configs.complete(runs.fno_config(["no such data"], **changes))
    with pytest.raises(ValueError, match=message):
        tasks.build(config)


@pytest.mark.parametrize("base", ["harmonic", "helmholtz"])
def test_a_base_that_reads_the_coefficient_has_it_as_it_is(two_grids, base):
    config = runs.fno_config(two_grids, data={"normalise": True})
    config["model"] |= {"base": base}
    if base == "helmholtz":
        config["model"] |= {"out_channels": 2, "boundary_channels": 8}
    with pytest.raises(ValueError, match=f"data.normalise must be False for the base '{base}'"):
        tasks.build(configs.complete(config))


def test_sizes_that_fit_no_grid_are_refused(two_grids):
    with pytest.raises(ValueError, match="no sub-domain of .* fits into the training grid"):
        build(two_grids, sub_sizes=(9, 13))


def test_the_range_of_scales_is_that_of_all_losses(two_grids):
    """Crops of 5 and 13 nodes of 9 and 17; super-domains twice as large."""
    assert build(two_grids).meta["scale_range"] == [2.0, 4.0]
    task = build(two_grids, sub_sizes=(5, 13), super_rates=(1.5, 2.0))
    np.testing.assert_allclose(task.meta["scale_range"], [2 * 4 / 8, 8.0])
    assert task.meta["scales"] == [2.0, 4.0]


def test_evaluation_outside_of_the_range_warns_once_and_names_it(two_grids, tmp_path):
    test = [
        runs.write_darcy(tmp_path / f"test-{scale:g}", scale=scale, samples=2, split="test")
        for scale in (1.0, 3.0, 8.0)
    ]
    val = runs.write_darcy(tmp_path / "val-3", scale=3.0, samples=2, split="val")
    config = configs.complete(runs.fno_config(two_grids, test, data={"val": (val,)}))
    task = tasks.build(config)
    mesh = parallel.data_mesh()
    params = task.init(jax.random.key(0))
    with pytest.warns(ScaleWarning, match="scale 1, 8 is outside the range 2 to 4") as record:
        during, final = (task.evaluate(params, mesh, last=last) for last in (False, True))
    assert len(record) == 1
    # Test data is evaluated at the end only, and never ranks a checkpoint.
    assert list(during) == task.meta["validation"] == ["val-3"]
    assert list(final) == ["val-3", "test-1", "test-3", "test-8"]


@pytest.mark.parametrize(
    ("trained", "asked", "message"),
    [
        ((4.0,), 4.0, None),
        ((5.0, 25.0, 10.0), [5.0, 7.0, 25.0], None),
        ((4.0,), 2.0, "scale 2 is outside the scale 4"),
        ((5.0, 25.0), np.array([50.0, 1.0, 50.0]), "scale 1, 50 is outside the range 5 to 25"),
    ],
)
def test_scales_outside_of_the_trained_range(trained, asked, message):
    sentence = scale_range.outside(asked, trained)
    assert sentence is None if message is None else sentence.startswith(message)


def test_windows_of_trajectories_are_as_far_apart_as_the_config_says(tmp_path):
    window = {"history": 10, "horizon": 1, "stride": 1, "frames": "channel", "dt": 0.1}
    path = runs.write_dataset(
        tmp_path / "train-500",
        {"trajectory": np.random.default_rng(0).normal(size=(2, 17, 6, 6))},
        equation="navier_stokes",
        scale=500.0,
        split="train",
        window=window,
    )
    lengths = {}
    for stride in (0, 3):
        data = {"data": {"stride": stride}, "equation": "navier_stokes"}
        config = runs.fno_config([path], **data)
        lengths[stride] = len(tasks.build(configs.complete(config)).train[0])
    assert lengths == {0: 2 * 7, 3: 2 * 3}  # frames 11 to 17 of each, and every third of these
