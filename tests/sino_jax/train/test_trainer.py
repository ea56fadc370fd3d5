"""Whole runs: one device against eight and against two processes, resuming, several grids."""

import dataclasses
import pathlib
import random
import shutil
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import checkpoint, data, equations, models, operator, train
from sino_jax.train import logging as logs
from sino_jax.train import parallel
from tests import training_runs as runs


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def darcy(tmp_path_factory):
    """Ten samples: batches of four leave an uneven last one."""
    return runs.write_darcy(tmp_path_factory.mktemp("data") / "train-4")


def largest_difference(one, other):
    sizes = jax.tree.map(lambda a, b: np.abs(a - b).max() / np.abs(a).max(), one, other)
    return max(jax.tree.leaves(sizes))


def wait_for_step(process, workdir, step):
    """Until the metrics show `step`; fails with the output of a process that ends before."""
    while last_step(workdir) < step:
        assert process.poll() is None, f"ended before step {step}:\n{process.communicate()[0]}"
        time.sleep(0.01)


def last_step(workdir):
    return max((entry["step"] for entry in logs.read(workdir, "train")), default=0)


def test_devices_and_processes_do_not_change_the_result(darcy, tmp_path, cache):
    configs = {
        name: runs.config([darcy], optimizer={"name": name, "learning_rate": rate})
        for name, rate in [("sgd", 0.05), ("adamw", 0.01)]
    }
    eight = runs.start(
        *((config, tmp_path / "eight" / name) for name, config in configs.items()),
        devices=8,
        cache=cache,
    )
    address = runs.free_address()
    two = [
        runs.start(
            *(
                (
                    {
                        **config,
                        "distributed": {"coordinator": address, "processes": 2, "process": process},
                    },
                    tmp_path / "two" / name,
                )
                for name, config in configs.items()
            ),
            cache=cache,
        )
        for process in range(2)
    ]
    for name, config in configs.items():
        runs.train_stand_in(config, tmp_path / "one" / name)
    for process in (eight, *two):
        runs.finish(process)
    for name, config in configs.items():
        one = runs.weights(tmp_path / "one" / name)
        assert largest_difference(one, runs.weights(tmp_path / "eight" / name)) < 1e-5
        assert largest_difference(one, runs.weights(tmp_path / "two" / name)) < 1e-5
        # The second half again, on one device, from what eight devices saved half-way.
        shutil.rmtree(tmp_path / "eight" / name / checkpoint.DIRECTORY / "20")
        runs.train_stand_in(config, tmp_path / "eight" / name)
        assert largest_difference(one, runs.weights(tmp_path / "eight" / name)) < 1e-5


def test_eight_devices_draw_what_eight_accumulated_parts_draw(darcy, tmp_path, cache):
    config = runs.config(
        [darcy],
        data={"batch_size": 10},  # filled up to two examples a device
        experiment={"noise": 0.1},
        optimizer={"name": "sgd"},
    )
    eight = runs.start(
        (config, tmp_path / "eight"),
        ({**config, "points_at_once": 9**2}, tmp_path / "eight-piecewise"),
        devices=8,
        cache=cache,
    )
    runs.train_stand_in({**config, "accumulate": 8}, tmp_path / "one")
    runs.train_stand_in({**config, "accumulate": 8, "points_at_once": 1}, tmp_path / "piecewise")
    runs.finish(eight)
    one = runs.weights(tmp_path / "one")
    for other in ("eight", "eight-piecewise", "piecewise"):
        assert largest_difference(one, runs.weights(tmp_path / other)) < 1e-5


def test_a_piecewise_run_resumes_bit_identical(darcy, tmp_path):
    config = runs.config(
        [darcy], experiment={"noise": 0.1}, accumulate=2, points_at_once=9**2, ema_decay=0.9
    )
    runs.train_stand_in(config, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / checkpoint.DIRECTORY / "20")
    runs.train_stand_in(config, tmp_path / "resumed")
    messages = logs.read(tmp_path / "resumed", "message")
    assert any("resuming at step 15" in entry["text"] for entry in messages)
    jax.tree.map(
        np.testing.assert_array_equal,
        *(checkpoint.read(tmp_path / name, 20)[0] for name in ("whole", "resumed")),
    )


def check_kills(darcy, tmp_path, cache, *, kills, steps, within=0.0):
    """Kills -9 at random moments: after a step, or `within` of them anywhere in the start."""
    test = runs.write_darcy(tmp_path / "test-4", samples=3, split="test", seed=2)
    config = runs.config(
        [darcy],
        [test],
        steps=steps,
        experiment={"noise": 0.1, "pause": 0.004},
        ema_decay=0.9,
        evaluation={"every": 20},
        checkpoint={"every": 3},
        logging={"every": 1},
    )
    draw, workdir = random.Random(5), tmp_path / "killed"
    runs.train_stand_in(config, tmp_path / "whole")
    began = time.monotonic()
    process = runs.start((config, workdir), cache=cache)
    wait_for_step(process, workdir, 1)
    start_time = time.monotonic() - began
    for _ in range(kills):
        if draw.random() < within:
            time.sleep(draw.uniform(0, start_time))
        else:
            # Beyond what the process before it logged, which stays there until the run resumes.
            further = draw.randint(1, 6)
            wait_for_step(process, workdir, last_step(workdir) + further)
        assert process.poll() is None, f"ended before its last kill:\n{process.communicate()[0]}"
        process.kill()
        process.communicate()
        process = runs.start((config, workdir), cache=cache)
    runs.finish(process)
    resumed = [e for e in logs.read(workdir, "message") if "resuming at step" in e["text"]]
    assert len(resumed) >= (1 - within) * kills / 2  # not all of them in the start
    jax.tree.map(
        np.testing.assert_array_equal,
        *(checkpoint.read(tmp_path / name, steps)[0] for name in ("whole", "killed")),
    )
    assert checkpoint.best(workdir) == checkpoint.best(tmp_path / "whole")
    for kind in ("train", "evaluation"):
        whole, killed = (
            [
                {name: value for name, value in entry.items() if name not in TIMES}
                for entry in logs.read(tmp_path / name, kind)
            ]
            for name in ("whole", "killed")
        )
        assert whole == killed


# What differs between two runs of one config.
TIMES = ("time", "steps_per_second")


def test_killed_runs_end_bit_identical(darcy, tmp_path, cache):
    check_kills(darcy, tmp_path, cache, kills=3, steps=60)


@pytest.mark.slow  # with those of generation and of campaigns a hundred kills
def test_a_run_killed_fifty_times_ends_bit_identical(darcy, tmp_path, cache):
    check_kills(darcy, tmp_path, cache, kills=50, steps=400, within=0.3)


def test_batches_of_several_grids_take_turns(darcy, tmp_path):
    other = runs.write_darcy(tmp_path / "train-8", samples=8, grid=(13, 7), scale=8.0, seed=1)
    unseen = runs.write_darcy(tmp_path / "test-2", samples=5, grid=(7, 7), split="test", seed=2)
    config = runs.config([darcy, other], [unseen], steps=40, evaluation={"every": 20})
    runs.train_stand_in(config, tmp_path / "run")
    losses = [entry["error"] for entry in logs.read(tmp_path / "run", "train")]
    assert losses[-1] < 0.6 * losses[0]
    evaluations = logs.read(tmp_path / "run", "evaluation")
    assert [entry["step"] for entry in evaluations] == [20, 40]
    assert evaluations[1]["test-2/relative_l2"] < evaluations[0]["test-2/relative_l2"]


def test_the_operator_of_a_fit_needs_nothing_but_the_workdir_and_its_equation(tmp_path):
    """Here the equation is one that the package does not know."""
    screened = dataclasses.replace(
        equations.get("darcy"), name="screened", rescale=equations.power_law(-1)
    )
    path = runs.write_darcy(tmp_path / "train-4", samples=4, equation=screened)
    config = runs.fno_config([path], steps=3, data={"normalise": True}, ema_decay=0.5)
    with pytest.raises(ValueError, match="config.equation must be 'screened', .* got 'darcy'"):
        train.fit(config, tmp_path / "run", equation=screened)
    del config["equation"]
    state = train.fit(config, tmp_path / "run", equation=screened)
    entry = logs.read(tmp_path / "run", "train")[-1]
    assert entry["loss"] == entry["supervised"]

    statistics = data.statistics([data.load(path)])["coefficient"]
    shutil.rmtree(path)
    with pytest.raises(ValueError, match="equation must be one of .*, got 'screened'"):
        operator.load(tmp_path / "run")
    loaded = operator.load(tmp_path / "run", equation=screened)
    assert loaded.equation is screened
    assert loaded.meta["config"]["equation"] == "screened"
    with pytest.raises(checkpoint.CheckpointError, match="evaluated on validation data"):
        operator.load(tmp_path / "run", step="best", equation=screened)
    assert loaded.scales == (4.0,)
    assert loaded.meta["config"]["model"]["hidden_channels"] == 4
    assert set(loaded.meta) >= {"datasets", "revision", "versions", "evaluation", "statistics"}
    coefficient, boundary = np.random.default_rng(0).uniform(1, 2, (2, 3, 7, 9, 1))
    standard = (coefficient - statistics["mean"]) / statistics["std"]
    inputs = jnp.asarray(np.concatenate([standard, _sides(boundary)], axis=-1), jnp.float32)
    model = models.build(loaded.meta["config"]["model"])
    np.testing.assert_allclose(
        loaded.solve(np.float32(coefficient), np.float32(boundary), 4.0),
        model.apply(state.averages, inputs, jnp.full(3, 4.0)),
        rtol=1e-4,
        atol=1e-5,
    )


def _sides(field):
    """Traces on x low, x high, y low, y high, each repeated over the grid."""
    sides = [field[:, :1], field[:, -1:], field[:, :, :1], field[:, :, -1:]]
    return np.concatenate([np.broadcast_to(side, field.shape) for side in sides], axis=-1)


def test_a_finished_run_is_not_repeated(darcy, tmp_path, capsys):
    config = runs.config([darcy], steps=6)
    runs.train_stand_in(config, tmp_path / "run")
    before = (tmp_path / "run" / logs.FILE).read_text()
    capsys.readouterr()
    state = runs.train_stand_in(config, tmp_path / "run")
    assert int(state.step) == 6
    assert (tmp_path / "run" / logs.FILE).read_text() == before
    assert "finished: 6 steps in" in capsys.readouterr().err


def test_a_finished_run_is_trained_further_from_its_weights(darcy, tmp_path):
    runs.train_stand_in(runs.config([darcy], steps=6), tmp_path / "run")
    longer = runs.config([darcy], steps=2)
    with pytest.raises(ValueError, match="start_from naming this one: from its weights"):
        runs.train_stand_in(longer, tmp_path / "run")
    other = {**longer, "start_from": str(tmp_path / "nothing")}
    with pytest.raises(checkpoint.CheckpointError, match="nothing holds no checkpoint"):
        runs.train_stand_in(other, tmp_path / "longer")
    assert not (tmp_path / "longer").exists()
    longer["start_from"] = str(tmp_path / "run")
    runs.train_stand_in(longer, tmp_path / "longer")
    begin, _ = checkpoint.read(tmp_path / "longer", 0)
    jax.tree.map(np.testing.assert_array_equal, begin["params"], runs.weights(tmp_path / "run"))


def test_epochs_count_uneven_batches(darcy, tmp_path):
    state = runs.train_stand_in(runs.config([darcy], steps=0, epochs=2), tmp_path / "run")
    assert int(state.step) == 2 * 3


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}, False),
        (
            {
                "SLURM_JOB_ID": "1",
                "SLURM_STEP_NODELIST": "n[1-2]",
                "SLURM_PROCID": "1",
                "SLURM_LOCALID": "0",
                "SLURM_NTASKS": "4",
            },
            True,
        ),
    ],
)
def test_slurm_is_recognised_inside_a_step_of_several_tasks(variables, expected):
    assert parallel.started_by_slurm(variables) is expected


def test_no_pickle_is_written_or_read(darcy, tmp_path):
    runs.train_stand_in(runs.config([darcy], steps=2), tmp_path / "run")
    for path in (tmp_path / "run").rglob("*"):
        # Every pickle since Python 3.0 begins with the byte 0x80 and its protocol.
        assert path.is_dir() or path.read_bytes()[:1] != b"\x80", path
    for path in (pathlib.Path(train.__file__).parent).rglob("*.py"):
        assert "import pickle" not in path.read_text(), path
