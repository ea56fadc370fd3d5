"""The log of a run: JSON lines, the bar, plain lines, rewinding, and the optional extras."""

import io
import json
import math
import sys
import types

import pytest

from sino_jax.train import logging as logs


class Terminal(io.StringIO):
    def isatty(self):
        return True


def open_logger(path, **options):
    return logs.Logger(path, total_steps=100, **{"stream": io.StringIO(), **options})


def test_every_entry_is_one_json_line(tmp_path):
    with open_logger(tmp_path) as logger:
        logger.train(10, {"loss": 0.5, "gradient_norm": math.nan})
        logger.evaluation(10, {"test-8/relative_l2": 0.25})
        logger.message("something happened")
        logger.summary(100, {"steps": 100, "seconds": 1.0, "workdir": "runs/a"})
    entries = [json.loads(line) for line in (tmp_path / logs.FILE).read_text().splitlines()]
    assert [entry["kind"] for entry in entries] == ["train", "evaluation", "message", "summary"]
    assert entries[0]["loss"] == 0.5
    assert entries[0]["gradient_norm"] == "nan"  # valid JSON has no NaN
    assert entries[0]["steps_per_second"] > 0
    assert logs.read(tmp_path, "evaluation")[0]["test-8/relative_l2"] == 0.25


def test_rewinding_removes_what_will_be_written_again(tmp_path):
    with open_logger(tmp_path) as logger:
        for step in (10, 20, 30):
            logger.train(step, {"loss": 1 / step})
        logger.message("a message belongs to no step")
    with (tmp_path / logs.FILE).open("a") as file:
        file.write('{"kind": "train", "step": 40, "lo')  # the process was killed here
    with open_logger(tmp_path) as logger:
        logger.rewind(20)
        logger.train(30, {"loss": 0.0})
    assert [entry["step"] for entry in logs.read(tmp_path, "train")] == [10, 20, 30]
    assert len(logs.read(tmp_path, "message")) == 1


def test_a_terminal_gets_a_bar_in_place_and_messages_on_their_own_lines(tmp_path):
    stream = Terminal()
    with open_logger(tmp_path, stream=stream) as logger:
        logger.train(25, {"loss": 0.123456})
        logger.train(50, {"loss": 0.1})
        logger.message("short")
    first, second, message, *_ = stream.getvalue().split("\r")[1:]
    assert first.startswith("[######..................] 25/100  loss 0.1235")
    assert second.startswith("[############............] 50/100  loss 0.1 ")
    assert "\n" not in first + second
    assert message.endswith("\n")
    assert len(message.rstrip("\n")) >= len(second.rstrip())  # covers what the bar had shown


def test_elsewhere_each_entry_is_a_plain_line(tmp_path):
    stream = io.StringIO()
    with open_logger(tmp_path, stream=stream) as logger:
        logger.train(25, {"loss": 0.5})
        logger.evaluation(25, {"test/relative_l2": 0.25})
    assert "\r" not in stream.getvalue()
    assert [line.split("  ")[0] for line in stream.getvalue().splitlines()] == [
        "[######..................] 25/100",
        "step 25: relative_l2 in percent: test 25",
    ]


def test_below_a_cell_lines_are_written_over_as_on_a_terminal(tmp_path):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    with open_logger(tmp_path, stream=stream) as logger:
        logger.train(25, {"loss": 0.5})
        logger.train(50, {"loss": 0.5})
    assert stream.getvalue().count("\r") == 2
    assert stream.getvalue().count("\n") == 1


def test_compilation_is_announced_and_not_counted(tmp_path, monkeypatch):
    clock = iter([0.0, 0.0, 1.0, 101.0, 111.0])  # start, rewind, compiling, compiled, logged
    monkeypatch.setattr(logs.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    with open_logger(tmp_path, stream=stream) as logger:
        logger.rewind(0)
        with logger.compiling(1):
            pass
        logger.train(23, {"loss": 0.5})
    first, second = stream.getvalue().splitlines()
    assert first.startswith("compiling program 1 (once")
    # 22 further steps in 1 + 10 seconds; 77 are left.
    assert second.endswith("2 steps/s  0:38 left")


def test_only_one_process_writes(tmp_path):
    stream = io.StringIO()
    with open_logger(tmp_path, stream=stream, active=False) as logger:
        logger.rewind(0)
        logger.train(25, {"loss": 0.5})
        logger.summary(100, {"steps": 100, "seconds": 1.0, "workdir": "runs/a"})
    assert stream.getvalue() == ""
    assert not (tmp_path / logs.FILE).exists()


def test_the_summary_is_shown_again_but_written_once(tmp_path):
    with open_logger(tmp_path) as logger:
        assert not logger.show_summary()
        errors = {"test-16/l2": 0.0123456, "test-4/l2": 0.5}
        logger.summary(100, {"steps": 100, "seconds": 61.2, **errors, "workdir": "runs/a"})
    stream = io.StringIO()
    with open_logger(tmp_path, stream=stream) as logger:
        assert logger.show_summary()
    assert stream.getvalue().splitlines() == [
        "finished: 100 steps in 1:01, runs/a",
        "data set  l2   (percent)",
        "test-4    50.000",
        "test-16   1.235",
    ]
    assert len(logs.read(tmp_path, "summary")) == 1
    stream = io.StringIO()
    with open_logger(tmp_path, stream=stream, show_errors=False) as logger:
        assert logger.show_summary()
    assert stream.getvalue() == "finished: 100 steps in 1:01, runs/a\n"


def test_errors_of_the_last_step_are_left_to_the_summary(tmp_path):
    stream = io.StringIO()
    with open_logger(tmp_path, stream=stream) as logger:
        for step in (50, 100):
            logger.evaluation(step, {"test-16/l2": 0.25, "test-4/l2": 0.5})
    assert stream.getvalue() == "step 50: l2 in percent: test-4 50  test-16 25\n"
    assert [entry["step"] for entry in logs.read(tmp_path, "evaluation")] == [50, 100]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0:00"), (59.6, "1:00"), (61.0, "1:01"), (3725.0, "1:02:05")]
)
def test_durations(seconds, text):
    assert logs.duration(seconds) == text


def test_progress_line_states_the_time_left():
    line = logs.progress_line(40, 100, 0.5, 2.0, width=10)
    assert line == "[####......] 40/100  loss 0.5  2 steps/s  0:30 left"


def test_tensorboard_gets_the_scalars(tmp_path):
    pytest.importorskip("tensorboardX")
    sink = logs.TensorBoard(tmp_path)
    with open_logger(tmp_path, sinks=(sink,)) as logger:
        logger.train(10, {"loss": 0.5})
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"train/loss" in events.read_bytes()


def test_weights_and_biases_gets_the_scalars(tmp_path, monkeypatch):
    logged, options = [], {}

    class FakeRun:
        def log(self, values, step):
            logged.append((step, values))

        def finish(self):
            logged.append("finished")

    fake = types.SimpleNamespace(init=lambda **given: options.update(given) or FakeRun())
    monkeypatch.setitem(sys.modules, "wandb", fake)
    sink = logs.WeightsAndBiases(tmp_path / "fno" / "seed-0", "project", {"seed": 0})
    with open_logger(tmp_path, sinks=(sink,)) as logger:
        logger.evaluation(10, {"test/error": 0.5})
    assert options["name"].endswith("/fno/seed-0")
    assert logged == [(10, {"evaluation/test/error": 0.5}), "finished"]

    def identifier(place, config):
        logs.WeightsAndBiases(tmp_path / place, "project", config)
        return options["id"]

    first = identifier("fno/seed-0", {"seed": 0})
    assert first == identifier("fno/seed-0", {"seed": 0})  # a resumed run continues its curve
    assert first != identifier("sino/seed-0", {"seed": 0})  # another row has one of its own
    assert first != identifier("fno/seed-0", {"seed": 0, "steps": 5})


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError("nobody reads this")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("make_stream", [Broken, closed, lambda: None])
def test_a_stream_that_nobody_reads_ends_nothing(tmp_path, monkeypatch, make_stream):
    stream = make_stream()
    monkeypatch.setattr(sys, "stderr", stream)  # None where it was closed before Python began
    with open_logger(tmp_path, stream=stream) as logger:
        logger.train(10, {"loss": 0.5})
        logger.message("nobody sees this")
    assert [entry["kind"] for entry in logs.read(tmp_path)] == ["train", "message"]


def test_a_terminal_that_goes_away_ends_nothing(tmp_path):
    stream = Terminal()
    with open_logger(tmp_path, stream=stream) as logger:
        logger.train(10, {"loss": 0.5})
        stream.close()
        logger.train(20, {"loss": 0.5})
    assert len(logs.read(tmp_path, "train")) == 2


def test_what_follows_a_torn_line_is_a_line_of_its_own(tmp_path):
    (tmp_path / logs.FILE).write_text('{"kind": "message", "step": null}\n{"kind": "tra')
    with open_logger(tmp_path) as logger:
        logger.message("after the crash")
    assert [entry.get("text") for entry in logs.read(tmp_path)] == [None, "after the crash"]
