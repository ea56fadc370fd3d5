"""Work for coming steps in a thread: in order, not too far ahead, failures where they are due."""

import threading

import pytest

from sino_jax.train.ahead import Ahead


def test_does_every_step_once_and_in_order():
    done = []
    with Ahead(done.append, range(3, 40), depth=5) as ahead:
        for step in range(3, 40):
            ahead.wait_for(step)
            assert ahead.is_done(step)
            assert done[: step - 2] == list(range(3, step + 1))
            assert len(done) <= step - 3 + 1 + 5
        ahead.wait_for(7)  # a run that goes back finds its programs
    assert done == list(range(3, 40))


def test_runs_ahead_of_the_step_that_is_due():
    reached = threading.Event()
    with Ahead(lambda step: reached.set() if step == 4 else None, range(100), depth=5) as ahead:
        ahead.wait_for(0)
        assert reached.wait(timeout=60)


def test_only_the_first_step_is_worked_for_before_one_is_due():
    done, first = [], threading.Event()

    def do(step):
        done.append(step)
        first.set()

    with Ahead(do, range(7, 100), depth=5):
        assert first.wait(timeout=60)
    assert done == [7]


def test_a_failure_is_raised_at_its_own_step():
    def fail_at_two(step):
        if step == 2:
            raise ValueError("no such program")

    with Ahead(fail_at_two, range(9), depth=9) as ahead:
        ahead.wait_for(0)
        ahead.wait_for(1)
        with pytest.raises(ValueError, match="no such program"):
            ahead.wait_for(2)


def test_leaving_ends_the_work():
    done = []
    with Ahead(done.append, range(10**9), depth=3) as ahead:
        ahead.wait_for(1)
    count = len(done)
    assert count <= 1 + 3
    assert not any(thread.name == "compiler" for thread in threading.enumerate())
