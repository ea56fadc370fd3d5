"""Signals are answered while Python is busy elsewhere, and spare the kernel of a notebook."""

import os
import signal
import subprocess
import sys

import pytest

from sino_jax import runtime
from sino_jax.train import interruption

# As a compilation does, this keeps the main thread for seconds without a step of Python.
BUSY = """
import hashlib, threading
from sino_jax.train import interruption
with interruption.listen():
    threading.Timer(1.0, print, ["ready"], {"flush": True}).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 400_000_000)
"""


def test_a_signal_is_answered_at_once_and_a_second_one_obeyed():
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "\n"
    assert "stopping after this step" in process.stderr.readline()
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    # By the thread; by the system if the main thread did get to see the first one.
    assert process.wait(timeout=30) in (128 + signal.SIGINT, -signal.SIGINT)


def test_a_notebook_survives_a_second_interruption(monkeypatch):
    said = []
    monkeypatch.setattr(runtime, "in_notebook", lambda: True)
    monkeypatch.setattr(runtime, "say", said.append)
    # A kernel has Python's handler; a worker of the tests may have another.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interruption.listen() as request:
            os.kill(os.getpid(), signal.SIGINT)
            assert request
            assert said == [interruption.ACKNOWLEDGEMENT.rstrip()]
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_cell_shows_says_how_to_go_on():
    assert str(interruption.Interrupted(7)).startswith("saved at step 7; the same call resumes")
    assert interruption.Interrupted(7).code == interruption.EXIT_CODE
