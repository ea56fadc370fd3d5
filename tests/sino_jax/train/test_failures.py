"""What can go wrong while training, and what is left afterwards."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import checkpoint, data, train
from sino_jax.train import interruption, loop
from sino_jax.train import logging as logs
from tests import training_runs as runs


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def darcy(tmp_path_factory):
    return runs.write_darcy(tmp_path_factory.mktemp("data") / "train-4")


def with_bad_sample(path):
    """A data set whose sample 3 is NaN."""
    dataset = data.load(runs.write_darcy(path.with_name("good")))
    fields = {name: np.array(field[..., 0]) for name, field in dataset.fields.items()}
    fields["solution"][3] = np.nan
    return runs.write_dataset(path, fields, equation="darcy", scale=4.0)


def messages(workdir):
    return [entry["text"] for entry in logs.read(workdir, "message")]


def test_nan_stops_with_step_samples_and_last_good_checkpoint(tmp_path):
    path = with_bad_sample(tmp_path / "train-4")
    config = runs.config([path], data={"batch_size": 2}, checkpoint={"every": 1})
    with pytest.raises(loop.NonFiniteError) as caught:
        runs.train_stand_in(config, tmp_path / "run")
    step, text = caught.value.step, str(caught.value)
    assert f"at step {step} " in text
    ids = [int(i) for i in text.split("samples [")[1].split("]")[0].split(",")]
    assert 3 in ids
    assert path in text
    assert f"checkpoint is of step {step} in" in text
    # Nothing of the bad step reached the checkpoint that is named.
    items, _ = checkpoint.read(tmp_path / "run", step)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(items))


def diverging_task(config):
    """The stand-in with one more weight, the loss -count, infinite in steps 8...11 if count > 4."""
    task = runs.stand_in_task(config)

    def loss_fn(params, batch, key, progress):
        del key
        step = 20 * progress
        bad = (step >= 8) & (step < 12) & (params["count"] > 4)
        loss = jnp.where(bad, jnp.inf, -params["count"])
        return jnp.broadcast_to(loss, batch.scale.shape), {}

    return task._replace(
        init=lambda key: {"count": jnp.zeros(())},
        loss_at=lambda dataset, step, total_steps: loss_fn,
    )


def test_nan_goes_back_and_halves_the_rate_if_the_config_says_so(darcy, tmp_path):
    descent = {
        "name": "sgd",
        "learning_rate": 0.6,
        "schedule": "constant",
        "weight_decay": 0.0,
    }
    config = runs.config([darcy], on_nonfinite="halve_rate", optimizer=descent)
    state = train.run(diverging_task(config), config, tmp_path / "run")
    # Each step adds 0.6 times the rate. From the checkpoint of step 5, where count is 3, steps 8,
    # 9, 10 and 11 begin with 4.8 at the full rate, 3.9 and 4.2 at half of it, at most 3.9 at 1/4.
    told = [text for text in messages(tmp_path / "run") if "of the learning rate" in text]
    assert [text.split(" (counted")[0].split("at ")[-1] for text in told] == ["step 8", "step 9"]
    assert "checkpoint is of step 5" in told[0]
    assert "going back to it with 0.5 of the learning rate" in told[0]
    assert "going back to it with 0.25 of the learning rate" in told[1]
    assert float(state.rate) == 0.25
    np.testing.assert_allclose(state.params["count"], 3 + 15 * 0.6 / 4, rtol=1e-5)


def test_a_hopeless_run_stops_though_it_may_halve_its_rate(tmp_path):
    path = with_bad_sample(tmp_path / "train-4")
    config = runs.config([path], data={"batch_size": 10}, on_nonfinite="halve_rate")
    with pytest.raises(loop.NonFiniteError):
        runs.train_stand_in(config, tmp_path / "run")
    assert len([t for t in messages(tmp_path / "run") if "of the learning rate" in t]) == 10


def wait_for_step(workdir, step, process):
    while not any(entry["step"] >= step for entry in logs.read(workdir, "train")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_exits_with_its_own_code(darcy, tmp_path, cache, number):
    config = runs.config(
        [darcy],
        steps=100,
        experiment={"pause": 0.01},
        checkpoint={"every": 1000},
        logging={"every": 1},
    )
    process = runs.start((config, tmp_path / "run"), cache=cache)
    wait_for_step(tmp_path / "run", 10, process)
    process.send_signal(number)
    output = runs.finish(process, code=interruption.EXIT_CODE)
    step = checkpoint.newest(tmp_path / "run")
    assert 10 < step < 100
    assert f"saved at step {step} of 100" in output
    # Nothing is lost: the next start goes on from there.
    assert int(runs.train_stand_in(config, tmp_path / "run").step) == 100
    assert f"resuming at step {step} of 100" in messages(tmp_path / "run")


def test_a_second_signal_exits_at_once(darcy, tmp_path, cache):
    waits = {"pause": 60.0, "pause_from": 4}  # the rehearsal loads a batch, too
    config = runs.config([darcy], experiment=waits, logging={"every": 1})
    process = runs.start((config, tmp_path / "run"), cache=cache)
    wait_for_step(tmp_path / "run", 3, process)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert process.poll() is None  # busy with a batch that takes its time
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    runs.finish(process, code=-signal.SIGTERM)
    assert time.monotonic() - began < 5


def test_two_processes_stop_at_the_same_step(darcy, tmp_path, cache):
    address = runs.free_address()
    processes = []
    for number in range(2):
        config = runs.config(
            [darcy],
            steps=400,
            experiment={"pause": 0.01},
            checkpoint={"every": 1000},
            logging={"every": 1},
            distributed={"coordinator": address, "processes": 2, "process": number},
        )
        processes.append(runs.start((config, tmp_path / "run"), cache=cache))
    wait_for_step(tmp_path / "run", 5, processes[0])
    processes[1].send_signal(signal.SIGTERM)  # one of them only
    for process in processes:
        runs.finish(process, code=interruption.EXIT_CODE)
    assert 5 < checkpoint.newest(tmp_path / "run") < 400


@pytest.fixture
def small_disk(tmp_path):
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", os.fspath(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", "-l", os.fspath(place)], check=True)


def test_a_full_disk_keeps_the_last_good_checkpoint(darcy, tmp_path, small_disk):
    workdir = small_disk / "run"
    config = runs.config([darcy], checkpoint={"every": 5, "keep": 1})
    filler = small_disk / "filler"
    task = runs.stand_in_task(config)

    def fill_after_the_checkpoint_of_step_10(step):
        if step == 13:
            # Older checkpoints are deleted in the background: the space they free must be filled.
            deadline = time.monotonic() + 60
            while {path.name for path in (workdir / "checkpoints").glob("[0-9]*")} != {"10"}:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            filler.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 4096))

    task.train[0] = runs.watched(task.train[0], fill_after_the_checkpoint_of_step_10)
    with pytest.raises(checkpoint.CheckpointError, match="last good one is of step 10"):
        train.run(task, config, workdir)
    assert checkpoint.newest(workdir) == 10
    filler.unlink()
    assert int(runs.train_stand_in(config, workdir).step) == 20
    runs.train_stand_in(config, tmp_path / "whole")
    jax.tree.map(
        np.testing.assert_array_equal, runs.weights(workdir), runs.weights(tmp_path / "whole")
    )


def test_a_workdir_of_a_different_config_is_refused_with_the_fields(darcy, tmp_path):
    config = runs.config([darcy], steps=2)
    runs.train_stand_in(config, tmp_path / "run")
    other = runs.config([darcy], steps=3, optimizer={"learning_rate": 0.5})
    with pytest.raises(ValueError, match="different config") as caught:
        runs.train_stand_in(other, tmp_path / "run")
    assert "steps: 2 -> 3" in str(caught.value)
    assert "optimizer.learning_rate: 0.01 -> 0.5" in str(caught.value)
    assert "seed" not in str(caught.value)
    # How a run is watched is no part of what it computes.
    runs.train_stand_in(runs.config([darcy], steps=2, logging={"every": 1}), tmp_path / "run")


def test_data_that_changed_under_a_run_is_refused(tmp_path):
    path = runs.write_darcy(tmp_path / "train-4")
    config = runs.config([path], steps=2)
    runs.train_stand_in(config, tmp_path / "run")
    shutil.rmtree(path)
    runs.write_darcy(tmp_path / "train-4", seed=1)
    with pytest.raises(ValueError, match="have changed since this run began"):
        runs.train_stand_in(config, tmp_path / "run")


def test_a_corrupted_newest_checkpoint_falls_back_and_says_so(darcy, tmp_path):
    config = runs.config([darcy], experiment={"noise": 0.1})
    runs.train_stand_in(config, tmp_path / "run")
    expected = runs.weights(tmp_path / "run")
    newest = tmp_path / "run" / checkpoint.DIRECTORY / "20"
    for file in (newest / "params").rglob("*"):
        if file.is_file():
            file.write_bytes(b"\0" * file.stat().st_size)
    runs.train_stand_in(config, tmp_path / "run")
    told = messages(tmp_path / "run")
    assert any("step 20" in text and "falling back" in text for text in told)
    assert "resuming at step 15 of 20" in told
    jax.tree.map(np.testing.assert_array_equal, runs.weights(tmp_path / "run"), expected)


def test_an_error_while_loading_reaches_the_caller(darcy, tmp_path):
    config = runs.config([darcy])
    task = runs.stand_in_task(config)

    def fail(step):
        if step == 3:
            raise OSError("the file server went away")

    task.train[0] = runs.watched(task.train[0], fail)
    with pytest.raises(OSError, match="went away"):
        train.run(task, config, tmp_path / "run")
    assert pathlib.Path(tmp_path / "run" / checkpoint.DIRECTORY / "0").is_dir()
