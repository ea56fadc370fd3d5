"""Generation survives interruption, races, full disks and bad samples; see `solvers.parts`."""

import errno
import hashlib
import io
import os
import pathlib
import random
import resource
import subprocess
import sys
import time

import numpy as np
import pytest

from sino_jax import data
from solvers import fill, parts, storage
from solvers.progress import Progress
from tests.stand_in_generator import LIMITS, make_parts, solve

ROOT = pathlib.Path(__file__).parents[2]


def start(directory, *options, **arguments):
    command = [sys.executable, "-m", "tests.stand_in_generator", str(directory), *options]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, **arguments)


def contents(directory: pathlib.Path) -> dict[str, str]:
    files = [file for file in sorted(directory.rglob("*")) if file.is_file()]
    return {
        str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What an uninterrupted run of one process makes."""
    directory = tmp_path_factory.mktemp("data") / "reference"
    assert fill.fill(make_parts(directory), solve, LIMITS)
    return contents(directory)


def test_the_finished_data_set_is_loadable_and_complete(tmp_path):
    assert fill.fill(make_parts(tmp_path), solve, LIMITS)
    dataset = data.load(tmp_path, verify=True)
    np.testing.assert_array_equal(dataset.fields["solution"][:, 0, 0, 0], np.arange(40))
    np.testing.assert_array_equal(dataset.meta["measures"]["residual"], 1e-12 * np.arange(40))
    assert set(dataset.meta) == set(data.dataset.REQUIRED)
    assert not (tmp_path / storage.PARTS).exists()


def check_kills(place, reference, *, workers, kills):
    """All workers are killed at random moments; those who come after them may finish."""
    began = time.monotonic()
    finish(place / "first", ["--shard=0/1"])
    usual = time.monotonic() - began  # of a start, on this machine and at this hour
    moments, killed, made = random.Random(workers), 0, 0
    shards = [f"--shard={i}/{workers}" for i in range(workers)]
    while killed < kills:
        directory = place / str(made)
        running = [start(directory, shard, f"--seconds={usual / 4}") for shard in shards]
        time.sleep(moments.uniform(0, 2 * usual))
        for process in running:
            process.kill()
            killed += process.wait() == -9
            process.stderr.close()
        if (directory / storage.META).exists():
            data.load(directory, verify=True)  # also after a death while parts/ was removed,
            finish(directory, ["--shard=0/1"])  # which the next run goes on with
            assert contents(directory) == reference
            made += 1  # the next kills are of another one
    finish(place / str(made), shards)
    assert contents(place / str(made)) == reference


def finish(directory, shards):
    """Nobody is in the way; whoever comes last joins the blocks."""
    workers = [start(directory, shard) for shard in shards]
    messages = [worker.communicate()[1] for worker in workers]
    assert 0 in [worker.returncode for worker in workers], messages


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_moments(tmp_path, reference, workers):
    check_kills(tmp_path, reference, workers=workers, kills=4)


@pytest.mark.slow
def test_killed_thirty_times(tmp_path, reference):
    check_kills(tmp_path, reference, workers=2, kills=30)


def test_a_kill_between_the_final_files_is_repaired(tmp_path, reference, monkeypatch):
    """Death before each of the three files that joining creates."""
    created = storage.created
    for survivors in range(3):
        directory = tmp_path / str(survivors)
        countdown = iter(range(survivors))

        def dying(file, scratch, countdown=countdown):
            final = file.suffix in (".npy", ".json") and file.name != "description.json"
            if final and next(countdown, None) is None:
                raise KeyboardInterrupt
            return created(file, scratch)

        monkeypatch.setattr(storage, "created", dying)
        with pytest.raises(KeyboardInterrupt):
            fill.fill(make_parts(directory), solve, LIMITS)
        with pytest.raises(data.DatasetError, match="not finished"):
            data.load(directory)
        monkeypatch.setattr(storage, "created", created)
        assert fill.fill(make_parts(directory), solve, LIMITS)
        assert contents(directory) == reference


def test_a_death_while_blocks_are_removed_is_repaired(tmp_path, reference, monkeypatch):
    def dying(path, ignore_errors):
        (path / "block-00003.npz").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(storage.shutil, "rmtree", dying)
    with pytest.raises(KeyboardInterrupt):
        fill.fill(make_parts(tmp_path), solve, LIMITS)
    monkeypatch.undo()
    data.load(tmp_path, verify=True)
    assert fill.fill(make_parts(tmp_path), lambda ids: pytest.fail("solved again"), LIMITS)
    assert contents(tmp_path) == reference


def test_another_process_joins_the_blocks_meanwhile(tmp_path, reference, monkeypatch):
    """After this one has claimed its own; parts/ is gone when it goes on."""

    def late(self):
        monkeypatch.undo()
        assert fill.fill(make_parts(tmp_path), solve, LIMITS)
        return self.missing()

    monkeypatch.setattr(parts.Parts, "missing", late)
    assert fill.fill(make_parts(tmp_path), solve, LIMITS)
    assert contents(tmp_path) == reference


def test_shards_make_the_same_samples(tmp_path, reference):
    finished = [
        fill.fill(make_parts(tmp_path), solve, LIMITS, shard=(i, 7)) for i in (3, 0, 6, 5, 1, 2, 4)
    ]
    assert finished == [False] * 6 + [True]
    assert contents(tmp_path) == reference
    with pytest.raises(ValueError, match="shard must be"):
        fill.fill(make_parts(tmp_path), solve, LIMITS, shard=(7, 7))


def test_two_runs_into_one_directory(tmp_path, reference):
    """The second run is refused while the first one works, which is not disturbed."""
    first = start(tmp_path, "--seconds=0.1")
    while not (tmp_path / storage.PARTS / "block-00000.npz").exists():
        time.sleep(0.01)
    second = start(tmp_path, "--shard=3/7")
    message = second.stderr.read()
    assert second.wait() == 2
    assert "another process is making block 3" in message
    assert first.wait() == 0
    assert contents(tmp_path) == reference


def test_another_data_set_is_not_overwritten(tmp_path, reference):
    fill.fill(make_parts(tmp_path), solve, LIMITS, shard=(0, 2))
    with pytest.raises(storage.StorageError, match="seed: 0 there, 1 now"):
        fill.fill(make_parts(tmp_path, seed=1), solve, LIMITS)
    assert fill.fill(make_parts(tmp_path), solve, LIMITS)
    with pytest.raises(storage.StorageError, match="samples: 40 there, 41 now"):
        fill.fill(make_parts(tmp_path, samples=41), solve, LIMITS)
    assert contents(tmp_path) == reference


def test_a_finished_data_set_is_not_made_again(tmp_path, reference):
    fill.fill(make_parts(tmp_path), solve, LIMITS)
    assert fill.fill(make_parts(tmp_path), lambda ids: pytest.fail("solved again"), LIMITS)
    assert contents(tmp_path) == reference


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


def test_a_full_disk_loses_nothing(tmp_path, reference):
    """The limit admits every block but not the joined files."""
    process = start(tmp_path, preexec_fn=limit_file_size)
    message = process.stderr.read()
    assert process.wait() == 2
    assert "File too large" in message
    assert "kept" in message
    assert len(list((tmp_path / storage.PARTS).glob("block-*.npz"))) == 14
    assert not list(tmp_path.rglob("*.tmp"))
    assert fill.fill(make_parts(tmp_path), lambda ids: pytest.fail("solved again"), LIMITS)
    assert contents(tmp_path) == reference


def test_no_space_left_while_blocks_are_made(tmp_path, reference, monkeypatch):
    real, calls = os.fsync, iter(range(1000))

    def full(descriptor):
        if next(calls) >= 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(storage.StorageError, match="No space left on device"):
        fill.fill(make_parts(tmp_path), solve, LIMITS)
    monkeypatch.setattr(os, "fsync", real)
    assert 1 <= len(make_parts(tmp_path).missing()) < 14
    assert fill.fill(make_parts(tmp_path), solve, LIMITS)
    assert contents(tmp_path) == reference


def test_too_little_space_is_noticed_at_the_first_block(tmp_path, monkeypatch):
    usage = storage.shutil.disk_usage(tmp_path)._replace(free=20_000)
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(storage.StorageError, match="GB are needed"):
        fill.fill(make_parts(tmp_path), solve, LIMITS)


def test_a_damaged_block_is_reported_and_made_anew(tmp_path, reference):
    fill.fill(make_parts(tmp_path), solve, LIMITS, shard=(0, 2))
    file = tmp_path / storage.PARTS / "block-00002.npz"
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)
    with pytest.raises(storage.StorageError, match=r"block-00002\.npz is damaged.*remove it"):
        fill.fill(make_parts(tmp_path), solve, LIMITS)
    file.unlink()
    assert fill.fill(make_parts(tmp_path), solve, LIMITS)
    assert contents(tmp_path) == reference


def test_a_passing_fault_is_solved_again(tmp_path, reference):
    solved = []

    def faulty_once(ids):
        solved.append(list(ids))
        return solve(ids, bad=(7,) if solved.count(list(ids)) == 1 else ())

    assert fill.fill(make_parts(tmp_path), faulty_once, LIMITS)
    assert solved.count([6, 7, 8]) == 2
    assert contents(tmp_path) == reference


def test_a_lasting_fault_ends_with_a_report_and_keeps_the_good_samples(tmp_path, reference):
    with pytest.raises(fill.RefusedSamples, match=r"2 samples.*sample 7: coefficient has values"):
        fill.fill(make_parts(tmp_path), lambda ids: solve(ids, bad=(7, 8)), LIMITS)
    assert make_parts(tmp_path).missing() == [2]

    # The next run fails for sample 6 of the same block, which is kept from the first run.
    solved = []

    def other_fault(ids):
        solved.append(list(ids))
        return solve(ids, bad=(6,))

    with pytest.raises(fill.RefusedSamples, match="sample 6"):
        fill.fill(make_parts(tmp_path), other_fault, LIMITS)
    assert solved == [[6, 7, 8]] * 2
    assert fill.fill(make_parts(tmp_path), solve, LIMITS)
    assert contents(tmp_path) == reference


@pytest.mark.parametrize(
    ("measure", "value", "message"),
    [
        ("residual", 1e-7, "residual 1e-07 exceeds 1e-08"),
        ("residual", np.nan, "residual nan exceeds 1e-08"),
        ("growth", 11.0, "growth 11 exceeds 10"),
    ],
)
def test_what_is_refused(measure, value, message):
    solved = solve(range(3))
    solved.measures[measure][1] = value
    assert fill.complaints(solved, LIMITS) == ["", message, ""]


def test_a_systematic_fault_stops_early(tmp_path):
    solved = []

    def never(ids):
        solved.append(ids)
        return solve(ids, bad=ids)

    with pytest.raises(fill.RefusedSamples, match="18 samples were refused"):
        fill.fill(make_parts(tmp_path), never, LIMITS)
    assert len(solved) == 2 * 6


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_drawn_on_terminals_only():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress("darcy train-4", total=40, done=10, stream=stream)
        progress.advance(5)  # compiles, and does not count
        done, start = progress.counted
        progress.counted = (done, start - 1.0)  # five samples in a second
        progress.advance(5)
        progress.close()
    assert file.getvalue() == ""
    assert terminal.getvalue().split("\r\033[K")[1:] == [
        "darcy train-4  compiling the solver ...",
        "darcy train-4  [#######.............]  15/40",
        "darcy train-4  [##########..........]  20/40  5 samples/s  0:00:04 left\n",
    ]
