"""Every experiment in the tiny preset by its own command, and at full size without running it."""

import importlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import figures, memory, models, naming, outcome, runner, tables, training
from sino_jax import checkpoint, runtime
from sino_jax.models import build
from sino_jax.train import interruption
from solvers import generate, recipes
from tests.training_runs import finish

ROOT = pathlib.Path(__file__).parents[2]
# A row of each experiment, one of them with all parts; its epochs leave time to interrupt it.
ROWS = {
    "helmholtz": "tiny,consistency=sub",
    "burgers": "tiny,consistency=sub+super,epochs=10",
    "navier_stokes": "tiny,consistency=sub,smallest_crop=32",
    "navier_stokes_spacetime": "tiny,consistency=sub,smallest_crop=40",
}
LABELS = {
    "helmholtz": "SINO-U+sub",
    "burgers": "SINO (tensor kernel)+scale (epochs=10)",
    "navier_stokes": "SINO-U+sub from 32",
    "navier_stokes_spacetime": "SINO (shared kernel)+sub from 40",
}


def experiment(name):
    return importlib.import_module(f"experiments.{name}").EXPERIMENT


def get_config(name, text):
    return importlib.import_module(f"experiments.configs.{name}").get_config(text)


def start(name, root, *, runs, cached=True):
    """Starts the command of an experiment's row as a process of its own."""
    command = [sys.executable, "-m", f"experiments.{name}"]
    command += [f"--config=experiments/configs/{name}.py:{ROWS[name]}"]
    command += [f"--data={root / 'data'}", f"--runs={root / runs}"]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        runtime.ALLOCATOR_SWITCH: "0",
        runtime.CACHE_SWITCH: os.fspath(root / "cache") if cached else "0",
    }
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=environment, cwd=ROOT, **options)


def read_result(name, root, *, runs):
    config = get_config(name, ROWS[name])
    return tables.read(naming.directory(config, root / runs) / outcome.RESULT)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("experiments")


@pytest.fixture(scope="module", params=ROWS)
def finished(request, root):
    """An experiment's name, its result, and what its command printed."""
    name = request.param
    output = finish(start(name, root, runs="runs"))
    return name, read_result(name, root, runs="runs"), output


def test_a_row_has_every_error_at_every_scale(finished):
    name, result, _ = finished
    assert result["row"] == LABELS[name]
    data = experiment(name).data_config("tiny")
    assert result["trained_scales"] == list(data.train_scales)
    parts = ("", "_first", "_last") if name == "navier_stokes" else ("",)
    names = {f"relative_l2{part}{region}" for part in parts for region in ("", "_central_half")}
    for metric in names:
        errors = outcome.errors_by_scale(result, metric=metric)
        assert sorted(errors) == list(data.test_scales)
        assert all(0 < error < 3 for error in errors.values())
    assert all(set(metrics) == names for metrics in result["errors"].values())


def test_the_trained_range_is_that_of_sub_and_super_domains(finished):
    """λ is (n-1)/(N-1) on nodes and n/N on cells, whose power of the equation scales Re or k."""
    name, result, _ = finished
    expected = {
        "helmholtz": (5 * 8 / 32, 5),
        # 10 of 20 times, 1.5 times the 19 intervals; points are tied to times.
        "burgers": (200 * 9 / 19, 200 * 28.5 / 19),
        "navier_stokes": (400 * (32 / 48) ** 2, 400),
        # λ²/μ: 39 of 47 intervals in space, 6 of 7 in time.
        "navier_stokes_spacetime": (400 * (39 / 47) ** 2 * 7 / 6, 400),
    }[name]
    np.testing.assert_allclose(result["trained_range"], expected, rtol=0.03)


def test_the_command_prints_errors_and_scales_outside_of_the_range_once(finished):
    name, result, output = finished
    assert outcome.report(result) in output
    low, high = result["trained_range"]
    scales = experiment(name).data_config("tiny").test_scales
    beyond = [scale for scale in scales if not low <= scale <= high]
    assert output.count("is outside the range") == bool(beyond)
    if beyond:
        listed = ", ".join(f"{scale:g}" for scale in beyond)
        assert f"scale {listed} is outside the range {low:g} to {high:g}" in output


def test_a_finished_row_is_read_and_not_trained_again(finished, root, monkeypatch):
    name, result, _ = finished
    monkeypatch.setattr(runner.train, "fit", None)
    config = get_config(name, ROWS[name])
    again = runner.run(experiment(name), config, data=root / "data", runs=root / "runs")
    assert again == result


def test_tables_have_ours_above_the_papers(finished):
    name, result, _ = finished
    # A row that changes its preset is none of the paper's.
    result = {**result, "row": result["row"].removesuffix(" (epochs=10)")}
    lines = tables.document([result], name).splitlines()
    ours = next(i for i, line in enumerate(lines) if line.startswith(f"| {result['row']} | 1 |"))
    if name == "burgers":
        assert lines[ours + 1].startswith("| *SINO+scale, paper* | | 5.926 | 1.720 | 0.957 |")
    titles = [line for line in lines if line.startswith("## ")]
    assert titles[0].startswith(f"## {tables.METRICS[tables.PAPER[name][0].metric]}")


def test_figures_are_drawn(finished, root):
    name, *_ = finished
    place = root / "runs" / name / "tiny"
    paths = figures.draw_all(place, metric=tables.PAPER[name][0].metric)
    assert [path.name for path in paths].count("training_curves.png") == 2
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_a_row_that_is_stopped_and_started_again_has_the_same_result(root):
    """Stopped in the midst of training; it may run before or after the row it is compared with."""
    name = "burgers"
    workdir = naming.directory(get_config(name, ROWS[name]), root / "stopped")
    # It compiles when it is stopped: with programs from the cache it might end before.
    process = start(name, root, runs="stopped", cached=False)
    deadline = time.monotonic() + 200
    while not (workdir / checkpoint.DIRECTORY).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    finish(process, code=interruption.EXIT_CODE)
    assert 0 < checkpoint.newest(workdir) < 20
    assert "resuming at step" in finish(start(name, root, runs="stopped"))
    finish(start(name, root, runs="runs"))
    stopped, whole = (read_result(name, root, runs=runs) for runs in ("stopped", "runs"))
    assert stopped["errors"] == whole["errors"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("darcy", "paper,consistency=sub+super"),
        ("helmholtz", "paper,consistency=sub+super"),
        ("burgers", "paper,consistency=sub+super"),
        ("burgers", "long,consistency=sub+stretch"),
        ("navier_stokes", "paper,consistency=sub"),
        ("navier_stokes_spacetime", "paper,consistency=sub"),
    ],
)
def test_the_step_of_the_paper_is_traced_at_full_size(name, text):
    traced = memory.trace(experiment(name), get_config(name, text))
    _, metrics = traced.out_info
    parts = {"supervised", "sub_domain"} | ({"super_domain"} if "super" in text else set())
    assert parts <= set(metrics)


@pytest.mark.parametrize("model", models.LABELS)
def test_every_model_of_the_tables_has_a_full_size_config(model):
    """The forward pass of each is traced for the equation that has them all."""
    config = get_config("burgers", f"paper,model={model}")
    settings = training.training_config(experiment("burgers"), config, {})
    inputs, scale = jnp.zeros((1, 100, 256, 3)), jnp.ones(1)
    built = build(settings["model"])
    outputs, _ = jax.eval_shape(built.init_with_output, jax.random.key(0), inputs, scale)
    assert outputs.shape == (1, 100, 256, 1)
    assert naming.label(config) == {**models.LABELS, "sino": "SINO (tensor kernel)"}[model]


@pytest.mark.parametrize(
    ("text", "label", "directory"),
    [
        ("small", "SINO (shared kernel)", "sino-shared-kernel"),
        ("small,kernel=tensor", "SINO (tensor kernel)", "sino-tensor-kernel"),
        (
            "small,model=fno,scale_informed=yes,frequency_embedding=yes",
            "SINO (tensor kernel)",
            "sino-tensor-kernel",
        ),
        ("small,model=fno,consistency=sub", "FNO+sub", "fno+sub"),
        (
            "small,model=fno,scale_informed=yes,consistency=sub,smallest_crop=24",
            "SINO (tensor kernel, scale yes, frequency no)+sub from 24",
            "sino-tensor-kernel-scale-yes-frequency-no+sub-from-24",
        ),
        (
            "small,frequency_embedding=no,scale_informed=no",
            "FNO (shared kernel)",
            "fno-shared-kernel",
        ),
    ],
)
def test_rows_are_told_apart_by_their_labels(text, label, directory):
    config = get_config("navier_stokes_spacetime", text)
    assert naming.label(config) == label
    assert naming.directory(config, pathlib.Path("runs")).parts[-2] == directory


def test_every_row_of_the_space_time_table_has_a_config():
    """The labels that the table knows are those that configs have."""
    labels = {
        naming.label(get_config("navier_stokes_spacetime", f"small,model={model},{flags}"))
        for model in ("fno", "sino")
        for flags in [
            f"scale_informed={scale},frequency_embedding={frequency}{crops}"
            for scale in ("yes", "no")
            for frequency in ("yes", "no")
            for crops in ("", *(f",consistency=sub,smallest_crop={n}" for n in (24, 32, 40, 48)))
        ]
    }
    assert set(tables.PAPER["navier_stokes_spacetime"][0].rows) <= labels


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("navier_stokes", "tiny,consistency=sub+super", "no super-domains for navier_stokes"),
        ("navier_stokes", "tiny,consistency=sub,smallest_crop=99", "must leave some of"),
        ("navier_stokes_spacetime", "tiny,model=unet", "must be fno or sino"),
        ("burgers", "tiny,model=sinou", "model must be one of"),
        ("burgers", "tiny,scale_informed=maybe", "must be one of yes, no, auto"),
        ("burgers", "tiny,model=uno,kernel=shared", "kernel of uno must be tensor or auto"),
        ("darcy", "tiny,model=sino", "must be one of fno, uno, unet, cno"),
        ("burgers", "tiny,symmetries=rotation", "symmetries of burgers are"),
        ("darcy", "tiny,train.accumulate=0", "accumulate must be at least 1"),
        ("darcy", "tiny,n_layers=0", "n_layers must be"),
    ],
)
def test_what_an_experiment_does_not_have_is_refused_before_data_is_made(
    name, text, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(runner.generate, "generate_all", None)
    with pytest.raises(ValueError, match=message):
        runner.run(experiment(name), get_config(name, text), data=tmp_path, runs=tmp_path)


@pytest.mark.parametrize("preset", ["tiny", "demo", "small", "long", "paper"])
def test_the_extent_of_the_heat_base_is_that_of_the_training_data(preset):
    config = importlib.import_module("experiments.configs.burgers").get_config(preset)
    of_data = importlib.import_module("solvers.configs.burgers").get_config(config.data)
    sets = generate.data_sets(of_data)
    (settings,) = [entry for entry in sets.values() if entry["split"] == "train"]
    extent = recipes.RECIPES["burgers"](settings).grid["extent"]
    np.testing.assert_allclose(config.base_extent, extent, rtol=1e-12)
