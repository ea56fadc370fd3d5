"""The comparison of starts and preconditioners, at a size that takes seconds."""

import json

import jax
import pytest

from experiments import hybrid
from experiments.configs import hybrid as configs

TOLERANCES = ("0.01", "0.0001", "1e-06")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("hybrid")
    config = configs.get_config("tiny,samples=1,darcy_scales=4,helmholtz_scales=5")
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        found = hybrid.compare(config, [], data_root=root / "data", out=root / "out")
    return found, root / "out"


def test_every_variant_keeps_its_promise(results):
    found, _ = results
    assert [result["equation"] for result in found] == ["darcy", "helmholtz"]
    for result in found:
        for row in result["rows"]:
            entries = row["tolerances"]
            counts = [entries[tolerance]["iterations"][0] for tolerance in TOLERANCES]
            assert counts == sorted(counts)
            for tolerance in TOLERANCES:
                assert entries[tolerance]["reached"] == [True]
                assert entries[tolerance]["error"][0] <= float(tolerance)


def test_the_base_is_a_better_start_than_zero(results):
    found, _ = results
    for result in found:
        zero, base = result["rows"][:2]
        assert (zero["start"], base["start"]) == ("zero", "base")
        assert base["start_error"] < 0.5 * zero["start_error"]
        for tolerance in TOLERANCES:
            counts = [row["tolerances"][tolerance]["iterations"][0] for row in (zero, base)]
            assert counts[1] <= counts[0]


def test_results_are_kept(results):
    found, out = results
    stored = json.loads((out / "results.json").read_text())["results"]
    assert [row["scale"] for row in stored] == [row["scale"] for row in found]
    lines = (out / "table.md").read_text().splitlines()
    assert len(lines) == 2 + sum(len(result["rows"]) for result in found)
    assert (out / "residuals.png").stat().st_size > 5000
