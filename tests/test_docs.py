"""The examples of the documentation run as they stand, and train."""

import pathlib
import re

import jax
import numpy as np
import pytest

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
