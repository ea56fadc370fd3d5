"""The examples of the documentation run as they stand, and train."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import jax
import numpy as np
import pytest

from sino_jax import runtime

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs/pipeline.md").read_text()
BLOCK = re.compile(r"<!-- (shared|example) -->\n```python\n(.*?)```", re.DOTALL)
SHARED = [code for kind, code in BLOCK.findall(PAGE) if kind == "shared"]
EXAMPLES = [code for kind, code in BLOCK.findall(PAGE) if kind == "example"]
TITLES = ("plain", "flax", "equinox", "own equation")


@pytest.mark.parametrize("code", EXAMPLES, ids=TITLES)
def test_example_runs_and_reduces_its_loss(code):
    namespace = {}
    # optax raises a weakly typed float to an integer step count: strict promotion is not for it.
    with jax.numpy_dtype_promotion("standard"):
        exec("\n".join([*SHARED, code]), namespace)
    history = np.asarray(namespace["history"])
    assert np.isfinite(history).all()
    if "step" in namespace:
        assert history[-5:].mean() < 0.7 * history[:2].mean()


FENCE = re.compile(r"```(python|bash)\n(.*?)```", re.DOTALL)


def test_the_page_on_your_own_data_runs_from_array_to_prediction(tmp_path, monkeypatch):
    page = (ROOT / "docs/your_own_data.md").read_text()
    monkeypatch.chdir(tmp_path)
    namespace, printed = {}, ""
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT), runtime.ALLOCATOR_SWITCH: "0"}
    for language, code in FENCE.findall(page):
        if language == "python":
            with jax.numpy_dtype_promotion("standard"):
                exec(code, namespace)
            continue
        for line in code.splitlines():
            program, *arguments = shlex.split(line.replace("--preset=small", "--preset=tiny"))
            assert program == "sino-jax"
            command = [sys.executable, "-m", "sino_jax", *arguments]
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            printed += run.stdout
    made = namespace["made"]
    assert {name: len(dataset) for name, dataset in made.items()} == {
        "train-1": 32, "val-1": 4, "test-1": 4
    }  # fmt: skip
    assert "data/from_file/train-1: 32 samples on 33 x 25" in printed
    for name in ("val-1", "test-1"):
        assert re.search(rf"^{name} +\d+\.\d+ +\d+\.\d+$", printed, re.MULTILINE)
    assert namespace["predicted"].shape == (3, 33, 25, 1)
    with np.load("predicted.npz") as stored:
        np.testing.assert_allclose(
            stored["solution"][:3], namespace["predicted"], rtol=1e-4, atol=1e-5
        )
