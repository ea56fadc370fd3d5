"""Several processes that train one row together."""

import jax
import pytest

from experiments import darcy, naming, outcome, runner
from experiments.configs.darcy import get_config


@pytest.mark.parametrize(("process", "written"), [(0, True), (1, False)])
def test_only_the_first_process_writes_the_result(tmp_path, monkeypatch, process, written):
    meta = {"scales": [4.0], "scale_range": [4.0, 4.0], "evaluation": {}, "digests": {}}
    monkeypatch.setattr(runner.generate, "generate_all", lambda *args, **options: {})
    monkeypatch.setattr(runner.train, "fit", lambda *args, **options: None)
    monkeypatch.setattr(runner.checkpoint, "newest", lambda workdir: 1)
    monkeypatch.setattr(runner.checkpoint, "read_meta", lambda workdir, step: meta)
    monkeypatch.setattr(jax, "process_index", lambda: process)
    config = get_config("tiny")
    workdir = naming.directory(config, tmp_path / "runs")
    workdir.mkdir(parents=True)
    result = runner.run(darcy.EXPERIMENT, config, data=tmp_path / "data", runs=tmp_path / "runs")
    assert result["trained_scales"] == [4.0]
    assert (workdir / outcome.RESULT).exists() is written
    assert not list(workdir.glob("*.tmp"))
