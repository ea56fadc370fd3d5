"""The examples of README, documentation and docstrings run as they stand."""

import doctest
import importlib
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
from tests import training_runs as runs
from tests.dataset_files import write_dataset

ROOT = pathlib.Path(__file__).parent.parent
BLOCK = re.compile(r"(?:<!-- (shared|example) -->\n)?```python\n(.*?)```", re.DOTALL)
DOCTESTS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("sino_jax", "solvers")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text()
]


def blocks(page, kind=None):
    """The Python blocks of a page, all or those marked as `kind`."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [code for mark, code in found if kind in (None, mark)]


PIPELINE, OWN_DATA = "docs/pipeline.md", "docs/your_own_data.md"
PAGES = [
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if str(path.relative_to(ROOT)) not in (PIPELINE, OWN_DATA) and "```python" in path.read_text()
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory with the runs and data sets that the pages speak of, in small."""
    monkeypatch.chdir(tmp_path)
    runs.untrained_operator((65, 65)).save("runs/darcy/small/fno+scale/seed-0")
    rng = np.random.default_rng(0)
    field = rng.uniform(1, 2, (8, 9, 9, 1)).astype(np.float32)
    fields = {"coefficient": field, "solution": field}
    write_dataset(tmp_path / "data/darcy-small/train-4", fields)
    window = {"history": 10, "horizon": 1, "stride": 1, "frames": "channel", "dt": 0.1}
    trajectory = {"trajectory": rng.normal(size=(1, 40, 8, 8, 1)).astype(np.float32)}
    write_dataset(
        tmp_path / "data/navier_stokes-small/test-1000",
        trajectory,
        window=window,
        equation="navier_stokes",
        split="test",
    )


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore::sino_jax.scale_range.ScaleWarning")
def test_blocks_of_a_page_run_one_after_another(page, place):
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        namespace = {}
        for code in blocks(page):
            if ".export(" in code:
                pytest.importorskip("flatbuffers")
            exec(code, namespace)


@pytest.mark.parametrize(
    "code",
    blocks(PIPELINE, "example"),
    ids=("plain", "flax", "nnx", "equinox", "own equation", "derivatives"),
)
def test_example_runs_and_reduces_its_loss(code):
    namespace = {}
    # optax raises a weakly typed float to an integer step count: strict promotion is not for it.
    with jax.numpy_dtype_promotion("standard"):
        exec("\n".join([*blocks(PIPELINE, "shared"), code]), namespace)
    history = np.asarray(namespace["history"])
    assert np.isfinite(history).all()
    if "step" in namespace:
        assert history[-5:].mean() < 0.7 * history[:2].mean()


@pytest.mark.parametrize("module", DOCTESTS)
def test_examples_of_docstrings(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried > 0
    assert failed == 0


FENCE = re.compile(r"```(python|bash)\n(.*?)```", re.DOTALL)


def test_the_page_on_your_own_data_runs_from_array_to_prediction(tmp_path, monkeypatch):
    page = (ROOT / OWN_DATA).read_text()
    monkeypatch.chdir(tmp_path)
    namespace, printed = {}, ""
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT), runtime.ALLOCATOR_SWITCH: "0"}
    for language, code in FENCE.findall(page):
        if language == "python":
            with jax.numpy_dtype_promotion("standard"):
                exec(code, namespace)
            continue
        for line in code.splitlines():
            program, *arguments = shlex.split(line.replace("--config=small", "--config=tiny"))
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
