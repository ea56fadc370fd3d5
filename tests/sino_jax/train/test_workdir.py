"""A run's directory: one writer, one config, and nothing that a crash tears blocks it for good."""

import json
import os
import shutil
import time

import numpy as np
import pytest

from sino_jax import checkpoint, train
from sino_jax.train import logging as logs
from sino_jax.train import workdir as workdirs
from sino_jax.train.store import DAMAGED
from tests import training_runs as runs


@pytest.fixture(scope="module")
def darcy(tmp_path_factory):
    return runs.write_darcy(tmp_path_factory.mktemp("data") / "train-4")


@pytest.fixture(scope="module")
def trained(darcy, tmp_path_factory):
    """A finished run of 4 steps with two checkpoints; tests copy it."""
    config = runs.config([darcy], steps=4, checkpoint={"every": 2}, logging={"every": 1})
    workdir = tmp_path_factory.mktemp("runs") / "trained"
    runs.train_stand_in(config, workdir)
    return config, workdir


@pytest.fixture
def copy(trained, tmp_path):
    config, workdir = trained
    shutil.copytree(workdir, tmp_path / "run")
    return config, tmp_path / "run"


def without_newest(workdir):
    shutil.rmtree(workdir / checkpoint.DIRECTORY / str(checkpoint.newest(workdir)))


def assert_same_weights(one, other):
    for name, weights in runs.weights(one).items():
        np.testing.assert_array_equal(weights, runs.weights(other)[name])


def test_a_second_writer_is_refused_at_once_and_changes_nothing(copy):
    config, workdir = copy
    before = {path: path.read_bytes() for path in workdir.rglob("*") if path.is_file()}
    start = time.monotonic()
    with (
        workdirs.lock(workdir),
        pytest.raises(workdirs.InUseError, match=f"in use by process {os.getpid()} on"),
    ):
        runs.train_stand_in(config, workdir)
    assert time.monotonic() - start < 10
    after = {path: path.read_bytes() for path in workdir.rglob("*") if path.is_file()}
    assert after == before


def test_the_lock_of_a_process_that_was_killed_blocks_nobody(copy):
    config, workdir = copy
    (workdir / workdirs.LOCK_FILE).write_text("process 1 on a machine that lost its power\n")
    assert int(runs.train_stand_in(config, workdir).step) == 4
    assert not (workdir / workdirs.LOCK_FILE).exists()


def test_a_directory_that_cannot_be_made_is_named(darcy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(workdirs.InUseError, match="run cannot be written: .*Not a directory"):
        runs.train_stand_in(runs.config([darcy]), tmp_path / "file" / "run")


def test_a_first_start_that_fails_leaves_no_directory(darcy, tmp_path):
    config = runs.config([darcy], steps=2)

    def broken(params, batch, key, progress):
        raise ValueError("this loss has no such option")

    task = runs.stand_in_task(config)._replace(loss_at=lambda *step: broken)
    with pytest.raises(ValueError, match="no such option"):
        train.run(task, config, tmp_path / "run")
    unfit = runs.stand_in_task(config)._replace(init=lambda key: {})
    with pytest.raises(KeyError):
        train.run(unfit, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    # So that a corrected config is a first start again.
    other = runs.config([darcy], steps=3)
    assert int(runs.train_stand_in(other, tmp_path / "run").step) == 3


def test_the_rehearsal_of_the_first_step_is_all_its_tracing(darcy, tmp_path):
    config = runs.config([darcy], steps=3)
    task, traced = runs.stand_in_task(config), []
    loss_fn = task.loss_at(0, 0, 3)

    def counted(*args):
        traced.append(args)
        return loss_fn(*args)

    train.run(task._replace(loss_at=lambda *step: counted), config, tmp_path / "run")
    assert len(traced) == 1


@pytest.mark.parametrize("torn", ["", '{"seed": 0, "equat', "[]"])
def test_a_torn_config_file_is_written_anew(trained, copy, torn):
    config, workdir = copy
    (workdir / workdirs.CONFIG_FILE).write_text(torn)
    with pytest.raises(ValueError, match="optimizer.learning_rate: 0.01 -> 0.5"):
        runs.train_stand_in({**config, "optimizer": {"learning_rate": 0.5}}, workdir)
    without_newest(workdir)
    runs.train_stand_in(config, workdir)
    assert_same_weights(workdir, trained[1])
    assert json.loads((workdir / workdirs.CONFIG_FILE).read_text())["steps"] == 4


def test_a_torn_config_file_without_checkpoints_is_none(darcy, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / workdirs.CONFIG_FILE).write_text("")
    assert int(runs.train_stand_in(runs.config([darcy], steps=2), tmp_path / "run").step) == 2


def test_a_config_of_the_release_before_resumes(trained, copy):
    """It had a field that is gone, and lacked some that are new."""
    config, workdir = copy
    path = workdir / workdirs.CONFIG_FILE
    old = json.loads(path.read_text())
    del old["optimizer"]["warmup_part"], old["data"]["verify"]
    old["experiment"] = {"row": "as it was called then"}  # recorded, and not compared
    path.write_text(json.dumps({**old, "precision": "float32"}))
    without_newest(workdir)
    runs.train_stand_in(config, workdir)
    assert_same_weights(workdir, trained[1])


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"seed": 1}, "seed: 0 -> 1"),
        ({"optimizer": {"learning_rate": 0.02}}, "optimizer.learning_rate: 0.01 -> 0.02"),
    ],
)
def test_a_checkpoint_of_another_config_is_refused(trained, copy, change, difference):
    config, workdir = copy
    other = {**config, **change}
    (workdir / workdirs.CONFIG_FILE).unlink()
    with pytest.raises(ValueError, match="checkpoint of step 4 .* different config") as caught:
        runs.train_stand_in(other, workdir)
    assert difference in str(caught.value)


def test_a_run_never_starts_anew_when_its_checkpoints_are_damaged_or_gone(copy):
    config, workdir = copy
    steps = checkpoint.finished_steps(workdir)
    for step in steps:
        (workdir / checkpoint.DIRECTORY / str(step) / "meta" / "metadata").write_text("")
    for _ in range(2):
        with pytest.raises(checkpoint.CheckpointError, match="is readable.*delete the directory"):
            runs.train_stand_in(config, workdir)
        assert checkpoint.finished_steps(workdir) == steps
    for step in steps:
        shutil.rmtree(workdir / checkpoint.DIRECTORY / str(step))
    with pytest.raises(checkpoint.CheckpointError, match="metrics up to step 4, but no checkpoint"):
        runs.train_stand_in(config, workdir)
    (workdir / DAMAGED / "4-0").mkdir(parents=True)
    with pytest.raises(checkpoint.CheckpointError, match="set aside before as damaged: 4-0"):
        runs.train_stand_in(config, workdir)


def test_a_torn_line_of_metrics_is_dropped(trained, copy):
    config, workdir = copy
    without_newest(workdir)
    file = workdir / logs.FILE
    lines = file.read_text().splitlines(keepends=True)
    file.write_bytes("".join(lines[:2]).encode() + b'\x00\xff{"kind\n5\n' + lines[2][:20].encode())
    runs.train_stand_in(config, workdir)
    assert [entry["step"] for entry in logs.read(workdir, "train")] == [1, 2, 3, 4]
    for line in file.read_text().splitlines():
        json.loads(line)
    assert_same_weights(workdir, trained[1])


def test_torn_metrics_of_an_old_checkpoint_do_not_block(trained, copy):
    """Releases before wrote the error of a checkpoint beside it, for Orbax."""
    config, workdir = copy
    without_newest(workdir)
    for step in checkpoint.finished_steps(workdir):
        place = workdir / checkpoint.DIRECTORY / str(step) / "metrics"
        place.mkdir()
        (place / "metrics").write_text('{"err')
    runs.train_stand_in(config, workdir)
    assert_same_weights(workdir, trained[1])


def test_a_checkpoint_that_cannot_be_written_fails_at_once(darcy, tmp_path):
    config = runs.config([darcy], checkpoint={"every": 5})
    task = runs.stand_in_task(config)
    directory = tmp_path / "run" / checkpoint.DIRECTORY

    def block_the_checkpoints(step):
        if step == 12:
            directory.rename(tmp_path / "moved")
            directory.write_text("no directory")

    task.train[0] = runs.watched(task.train[0], block_the_checkpoints)
    start = time.monotonic()
    with pytest.raises(checkpoint.CheckpointError, match="could not write a checkpoint"):
        train.run(task, config, tmp_path / "run")
    assert time.monotonic() - start < 60  # Orbax alone waits for 300 seconds
