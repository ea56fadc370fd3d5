"""A campaign of two tiny rows as it is run by users, and what it does when things go wrong."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from experiments import campaign, estimate, outcome, queue, queue_report, tables
from sino_jax import checkpoint, runtime
from tests import training_runs

ROOT = pathlib.Path(__file__).parents[2]

ROWS = """
# Both on one worker.
darcy tiny                         # the first
darcy tiny,consistency=sub,seed=2
darcy tiny,seed=0                  # the first again
"""


@pytest.fixture
def places(tmp_path):
    names = {name: tmp_path / name for name in ("data", "runs", "results")}
    (tmp_path / "rows.txt").write_text(ROWS)
    return argparse.Namespace(cores=[frozenset(os.sched_getaffinity(0))], **names)


@pytest.fixture
def rows(places, tmp_path):
    return queue.read(tmp_path / "rows.txt", places)


def wait_for(state, condition, *, seconds=120):
    deadline = time.monotonic() + seconds
    events = []
    while not condition() and time.monotonic() < deadline:
        events += state.advance()
        time.sleep(0.05)
    assert condition()
    return events


def stand_in(monkeypatch, program):
    """Rows are this Python program; no data is made."""
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(queue.Queue, "_command", lambda self, row: command)
    monkeypatch.setattr(
        queue.Queue, "_data_command", lambda self, row: [sys.executable, "-c", "pass"]
    )


def test_a_row_that_stands_twice_is_one_row(rows, places):
    assert [row.name for row in rows] == [
        "darcy tiny: FNO, seed-0",
        "darcy tiny: FNO+sub, seed-2",
    ]
    assert rows[1].kept == places.results / "darcy/tiny/fno+sub/seed-2.json"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("darcy tinny", "line 2, 'darcy tinny': there is no preset"),
        ("darcy", "line 2, 'darcy'"),
        ("stokes tiny", "line 2, 'stokes tiny'"),
    ],
)
def test_a_bad_line_is_named(tmp_path, places, line, message):
    (tmp_path / "bad.txt").write_text(f"darcy tiny\n{line}\n")
    with pytest.raises(ValueError, match=message):
        queue.read(tmp_path / "bad.txt", places)


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    for program in (campaign, estimate):
        with pytest.raises(SystemExit, match="error: .*No such file.*nothing.txt"):
            program.main([str(tmp_path / "nothing.txt")])


def test_every_campaign_of_the_repository_can_be_read(places):
    files = sorted((campaign.pathlib.Path(campaign.__file__).parent / "campaigns").glob("*.txt"))
    assert files
    for path in files:
        assert queue.read(path, places)


def test_rows_are_run_once_and_their_results_are_kept(tmp_path, rows, places, monkeypatch):
    monkeypatch.setenv(runtime.ALLOCATOR_SWITCH, "0")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    (tmp_path / "one.txt").write_text("darcy tiny")
    arguments = [str(tmp_path / "one.txt"), f"--cores={min(os.sched_getaffinity(0))}"]
    arguments += [f"--{name}={getattr(places, name)}" for name in ("data", "runs", "results")]
    with pytest.raises(SystemExit) as end:
        campaign.main(arguments)
    assert end.value.code == 0
    result = tables.read(rows[0].kept)
    assert result == tables.read(rows[0].workdir / outcome.RESULT)
    assert result["command"].endswith('experiments/configs/darcy.py:tiny"')
    assert result["core_minutes"] > 0
    monkeypatch.setattr(queue.subprocess, "Popen", None)
    with pytest.raises(SystemExit) as end:
        campaign.main(arguments)
    assert end.value.code == 0


def test_results_that_nobody_waited_for_are_kept(tmp_path, rows, places, monkeypatch):
    """A row goes on when its campaign is killed, and may end when no other one looks."""
    result = {"errors": {"test-4": {"relative_l2": 0.1}}, "core_minutes": 1.0}
    for row in rows:
        tables.write(result, row.workdir / outcome.RESULT)
    monkeypatch.setattr(queue.subprocess, "Popen", None)
    arguments = [str(tmp_path / "rows.txt")]
    arguments += [f"--{name}={getattr(places, name)}" for name in ("data", "runs", "results")]
    with pytest.raises(SystemExit) as end:
        campaign.main(arguments)
    assert end.value.code == 0
    assert [tables.read(row.kept) for row in rows] == [result, result]


def test_a_kept_result_is_that_of_its_row_as_long_as_the_config_is_the_same(rows, places):
    """Runs may be gone, as on another machine; results stand in the repository."""
    first, second = rows
    result = {"errors": {"test-4": {"relative_l2": 0.1}}, "core_minutes": 1.0}
    config = json.loads(first.config.to_json())
    tables.write({**result, "config": config}, first.kept)
    tables.write({**result, "config": {**config, "epochs": 7}}, second.kept)
    state = queue.Queue(rows, places)
    assert state.done(first)["core_minutes"] == 1.0
    assert state.left() == [second]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"kernel": "tensor", "scale_informed": "no"}, True),
        ({"stretched_sizes": [[9, 5]], "super_rates": [3.0]}, True),
        ({"sub_sizes": [5]}, False),
        ({"consistency": "none"}, False),
    ],
)
def test_a_kept_result_need_not_say_what_its_row_does_not_use(rows, change, same):
    with_crops = rows[1].config
    assert with_crops.consistency == "sub"
    recorded = {**json.loads(with_crops.to_json()), **change}
    assert outcome.is_of(with_crops, {"config": recorded}) == same


def test_a_failed_row_does_not_stop_the_others(rows, places, monkeypatch):
    stand_in(monkeypatch, "import sys; sys.exit(3)")
    state = queue.Queue(rows, places)
    events = wait_for(state, state.finished)
    assert [row.name for row in state.failed()] == [row.name for row in rows]
    assert sum(event.startswith("failed") for event in events) == 2
    assert "0 of 2 rows done" in queue_report.table(state)


def test_data_of_one_equation_holds_up_no_row_of_another(tmp_path, places, monkeypatch):
    (tmp_path / "two.txt").write_text("darcy tiny\nburgers tiny\n")
    darcy, burgers = queue.read(tmp_path / "two.txt", places)
    stand_in(monkeypatch, "import time; time.sleep(100)")
    gate = tmp_path / "gate"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)"
    programs = {"darcy": f"{wait}\nraise SystemExit(3)", "burgers": "pass"}
    monkeypatch.setattr(
        queue.Queue,
        "_data_command",
        lambda self, row: [sys.executable, "-c", programs[row.experiment]],
    )
    places.cores *= 2
    state = queue.Queue([darcy, burgers], places)
    wait_for(state, lambda: any(process.lock for process in state.under_way))
    assert [process.row.experiment for process in state.under_way] == ["darcy", "burgers"]
    gate.touch()
    wait_for(state, state.failed)
    assert state.failed() == [darcy]
    state.interrupt()


def test_processes_are_bound_to_their_cores_and_stopped(rows, places, monkeypatch):
    core = min(os.sched_getaffinity(0))
    places.cores = [frozenset({core})]
    stand_in(monkeypatch, "import time; time.sleep(100)")
    state = queue.Queue(rows, places)
    wait_for(state, lambda: any(process.lock for process in state.under_way))
    (process,) = state.under_way
    assert os.sched_getaffinity(process.process.pid) == {core}
    state.interrupt()
    assert process.process.poll() is not None


def test_a_row_that_another_campaign_runs_is_left_to_it(rows, places, monkeypatch):
    stand_in(monkeypatch, "import time; time.sleep(100)")
    first, second = queue.Queue(rows[:1], places), queue.Queue(rows, places)
    wait_for(first, lambda: any(process.lock for process in first.under_way))
    wait_for(second, lambda: any(process.lock for process in second.under_way))
    assert [process.row.name for process in second.under_way] == ["darcy tiny: FNO+sub, seed-2"]
    first.interrupt()
    second.interrupt()


def children(process):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    return [int(word) for word in listed.stdout.split()]


@pytest.mark.slow  # with those of training and of generation a hundred kills
def test_a_campaign_killed_twenty_times_loses_nothing(tmp_path, places):
    """Kills of the campaign and its row together, or of the campaign alone, whose row goes on."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import tests.stand_in_campaign"], cwd=ROOT, check=True)
    usual = 2.5 * (time.monotonic() - began)  # until a campaign's row trains, at this hour
    data = [training_runs.write_darcy(tmp_path / f"{s}-4", split=s) for s in ("train", "test")]
    config = training_runs.config(
        data[:1], data[1:], steps=40, experiment={"noise": 0.1, "pause": usual / 10},
        checkpoint={"every": 5}, logging={"every": 1},
    )  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "rows.txt").write_text("darcy tiny,seed=0\ndarcy tiny,seed=1\ndarcy tiny,seed=2\n")
    rows = queue.read(tmp_path / "rows.txt", places)
    command = [sys.executable, "-m", "tests.stand_in_campaign", str(tmp_path / "rows.txt")]
    command += [f"--{name}={getattr(places, name)}" for name in ("data", "runs", "results")]
    command += [f"--cores={min(os.sched_getaffinity(0))}"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", runtime.CACHE_SWITCH: f"{tmp_path}/cache"}
    output = (tmp_path / "output.txt").open("w")

    def start():
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )

    process, draw, killed = start(), random.Random(7), 0
    while killed < 20:
        time.sleep(draw.uniform(0, 1.5 * usual))
        assert process.poll() is None, (tmp_path / "output.txt").read_text()
        with_row = children(process) if draw.random() < 0.7 else []
        process.kill()
        process.wait()
        killed += 1
        for pid in with_row:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)
                killed += 1
        process = start()
    assert process.wait() == 0, (tmp_path / "output.txt").read_text()
    for row in rows:
        assert tables.read(row.kept) == tables.read(row.workdir / outcome.RESULT)
        whole = {**config, "seed": row.config.seed, "experiment": {"noise": 0.1}}
        training_runs.train_stand_in(whole, tmp_path / row.workdir.name)
        whole, resumed = (
            checkpoint.read(place, 40)[0] for place in (tmp_path / row.workdir.name, row.workdir)
        )
        jax.tree.map(np.testing.assert_array_equal, whole, resumed)


def test_the_slurm_script_runs_one_row_a_task(tmp_path, places, capsys):
    campaign.main([str(tmp_path / "rows.txt"), "--slurm", "--cores=0-3"])
    script = capsys.readouterr().out
    assert "#SBATCH --array=0-1" in script
    assert "#SBATCH --cpus-per-task=4" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_estimates_are_those_of_similar_rows(rows):
    known = [(rows[0], {"core_minutes": 2.0}), (rows[1], {"core_minutes": 5.0})]
    assert queue_report.estimate(rows[1], known) == 5.0
    assert queue_report.estimate(rows[1], known[:1]) == 2.0
    assert queue_report.estimate(rows[1], []) is None
