"""Data sets of real solvers: configs, independence of batches and shards, and what comes out."""

import json
import pathlib
import random
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import data, equations
from solvers import elliptic, fill, generate, inspect, navier_stokes, q1, recipes, storage
from solvers.configs import burgers as burgers_config
from solvers.configs import darcy as darcy_config
from solvers.configs import helmholtz as helmholtz_config
from solvers.configs import navier_stokes as navier_stokes_config
from solvers.configs import navier_stokes_spacetime as spacetime_config
from tests.solvers.test_generation import contents

ROOT = pathlib.Path(__file__).parents[2]
CONFIGS = {
    "darcy": darcy_config,
    "helmholtz": helmholtz_config,
    "burgers": burgers_config,
    "navier_stokes": navier_stokes_config,
    "navier_stokes_spacetime": spacetime_config,
}


def tiny(equation, name, **changes):
    """Settings of one tiny data set; blocks of two samples."""
    settings = generate.data_sets(CONFIGS[equation].get_config("tiny"))[name]
    return {**settings, "block": 2, **changes}


@pytest.mark.parametrize("equation", CONFIGS)
@pytest.mark.parametrize("preset", ["tiny", "small", "long", "paper"])
def test_every_preset_describes_its_data_sets(equation, preset):
    settings = generate.data_sets(CONFIGS[equation].get_config(preset))
    assert {name.split("-")[0] for name in settings} == {"train", "val", "test"}
    for entry in settings.values():
        recipe = recipes.get(entry)
        points = recipe.grid["shape"]
        assert len(points) == len(recipe.grid["centrings"]) == len(recipe.grid["extent"])
        assert set(entry["limits"]) >= {"residual", "growth"}
        assert entry["block"] >= 1


def test_config_strings():
    config = darcy_config.get_config("small,seed=3,train_scales=2+4,dtype=float64")
    assert (config.seed, config.train_scales, config.dtype) == (3, (2, 4), "float64")
    assert config.name == "darcy-small"
    for text, message in [
        ("smal", "no preset 'smal'.*did you mean 'small'"),
        ("small,sed=3", "no field 'sed'.*did you mean 'seed'"),
        ("small,seed=x", "seed takes a value like 0"),
        ("small,train_samples=2.5", "train_samples takes a value like 128"),
    ]:
        with pytest.raises(ValueError, match=message):
            darcy_config.get_config(text)
    with pytest.raises(ValueError, match=r"scales must be among .* got \[5\]"):
        generate.data_sets(darcy_config.get_config("small,test_scales=5"))
    with pytest.raises(ValueError, match="written as i/n"):
        generate.parse_shard("3of7")


def coarse_burgers(**changes):
    """Settings of eight samples that are quickly made, and not resolved."""
    changes = {"limits": {"residual": 1.0, "growth": 2.0, "tail": 1.0}, **changes}
    return tiny("burgers", "test-50", samples=8, block=1, points=64, frames=5) | changes


def test_same_samples_from_any_shard_and_any_number_of_samples(tmp_path):
    settings = coarse_burgers()
    assert generate.generate(settings, tmp_path / "one")
    for shard in (3, 0, 6, 2, 1, 5, 4):
        finished = generate.generate(settings, tmp_path / "seven", shard=(shard, 7))
    assert finished
    assert contents(tmp_path / "one") == contents(tmp_path / "seven")

    # More samples do not change those before, nor does another size of the blocks (here the
    # programs differ, so that rounding may).
    more = {**settings, "samples": 11, "block": 4}
    assert generate.generate(more, tmp_path / "more")
    first, second = (data.load(tmp_path / name).fields["solution"] for name in ("one", "more"))
    np.testing.assert_allclose(second[:8], first, rtol=1e-5, atol=1e-6)
    other_seed = {**settings, "seed": 1}
    assert generate.generate(other_seed, tmp_path / "seed")
    third = data.load(tmp_path / "seed").fields["solution"]
    assert np.abs(third - first).max(axis=(1, 2, 3)).min() > 0.1


def test_darcy_samples_solve_their_problem(tmp_path):
    """The stored, rounded solution fulfils the discrete equations of the stored coefficient."""
    settings = tiny("darcy", "test-2", points=9, samples=3)
    assert generate.generate(settings, tmp_path)
    dataset = data.load(tmp_path, verify=True)
    assert max(dataset.meta["measures"]["residual"]) < 1e-14
    instance = jax.tree.map(jnp.asarray, dataset.examples([0, 1, 2]))
    equations.get("darcy").validate(instance)
    np.testing.assert_array_equal(np.unique(instance.coefficient), [2, 12])
    for coefficient, solution in zip(instance.coefficient, instance.solution, strict=True):
        operator = q1.Operator(coefficient[..., 0])
        zeros = jnp.zeros_like(solution[..., 0])
        assert elliptic.residual(operator, solution[..., 0], zeros) < 1e-6
        assert elliptic.residual(operator, solution[::-1, :, 0], zeros) > 1e-3


def test_vorticity_and_velocity_are_of_one_flow(tmp_path):
    """Both Navier-Stokes recipes, from one key: the curl of the velocity is the vorticity."""
    changes = {"points": 48, "scale": 100, "frames": 3, "dt": 0.1, "burn_in": 0.5}
    key = jax.random.key(0)
    with jax.enable_x64(True):
        vorticity, velocity = (
            recipes.get(tiny(equation, "test-100", **changes)).sample(key).fields["trajectory"]
            for equation in ("navier_stokes", "navier_stokes_spacetime")
        )
        assert vorticity.shape == (3, 24, 24, 1)
        assert velocity.shape == (3, 24, 24, 2)
        step = 1 / 48
        u, v = np.moveaxis(np.asarray(velocity), -1, 0)
        curl = np.gradient(v, step, axis=1) - np.gradient(u, step, axis=2)
        inside = (slice(None), slice(2, -2), slice(2, -2))
        error = np.abs(curl[inside] - np.asarray(vorticity)[..., 0][inside]).max()
        # Central differences of the smallest kept waves (|k| <= 15) have an error of this size.
        assert error < 0.1 * np.abs(vorticity).max()


def test_the_tail_of_a_spectrum():
    """A wave below three quarters of the cut-off has no tail, one above is nothing else."""
    with jax.enable_x64(True):
        x = 2 * np.pi * np.arange(48) / 48
        wave = lambda k: jnp.asarray(np.sin(k * x)[:, None] + 0 * x[None])  # noqa: E731
        assert recipes.tail(wave(11)) < 1e-20
        assert recipes.tail(wave(12)) == pytest.approx(1)
        assert recipes.tail(wave(12).T + 2 * wave(3)) == pytest.approx(1 / 5)


def test_an_unresolved_flow_is_refused(tmp_path):
    limits = burgers_config.get_config("tiny").limits.to_dict()
    settings = coarse_burgers(limits=limits, scale=1000)
    with pytest.raises(fill.RefusedSamples, match=r"sample \d: .*tail .* exceeds 0.0001"):
        generate.generate(settings, tmp_path)
    assert (tmp_path / storage.PARTS / "block-00000.npz").exists()


def test_flows_give_examples_that_their_equations_accept(tmp_path):
    changes = {"points": 48, "samples": 1, "frames": 14, "burn_in": 0.2, "block": 1}
    limits = {"residual": 1.0, "growth": 2.0, "tail": 1.0}
    settings = tiny("navier_stokes", "test-100", **changes, limits=limits)
    assert generate.generate(settings, tmp_path / "a")
    dataset = data.load(tmp_path / "a", verify=True)
    assert len(dataset) == 4
    instance = jax.tree.map(jnp.asarray, dataset.examples([0, 3]))
    equations.get("navier_stokes").validate(instance)
    np.testing.assert_array_equal(
        instance.coefficient[1, ..., -1], dataset.fields["trajectory"][0, 12, ..., 0]
    )
    np.testing.assert_array_equal(instance.solution[1], dataset.fields["trajectory"][0, 13])
    assert dataset.meta["grid"]["extent"] == pytest.approx([0.5, 0.5])
    # The first frame is the flow at the end of the burn-in.
    with jax.enable_x64(True):
        root = jax.random.fold_in(jax.random.key(0), generate.stream(settings))
        initial = navier_stokes.sample_initial(jax.random.fold_in(root, 0), 48)
        frame = navier_stokes.solve(initial, 100.0, [0.2], cfl=2.0)[0, :24, :24]
    np.testing.assert_allclose(dataset.fields["trajectory"][0, 0, ..., 0], frame, atol=1e-5)


def test_inspection(tmp_path):
    generate.generate(coarse_burgers(samples=4), tmp_path / "set")
    meta, fields = storage.read(tmp_path / "set")
    text = inspect.report(meta, fields)
    assert "burgers, test, scale 50, 4 samples, seed 0" in text
    assert f"max {fields['solution'].max():.4g}" in text
    assert "measure   residual: median" in text
    pytest.importorskip("matplotlib")
    inspect.contact_sheet(meta, fields, tmp_path / "sheet.png", samples=3)
    assert (tmp_path / "sheet.png").read_bytes()[:4] == b"\x89PNG"


def test_perimeter_goes_once_around():
    field = np.arange(12).reshape(3, 4)
    around = [8, 4, 0, 1, 2, 3, 7, 11, 10, 9, 8]
    np.testing.assert_array_equal(inspect.perimeter(field), around)
    np.testing.assert_array_equal(inspect.perimeter(field, closed=False), around[:-3])


def command(out, *options, config="burgers.py:tiny"):
    return [
        sys.executable,
        "-m",
        "solvers.generate",
        f"--config=solvers/configs/{config}",
        f"--out={out}",
        *options,
    ]


def test_the_command_line(tmp_path):
    result = subprocess.run(
        command(tmp_path, "--only=test-50"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "test-50: solution [4, 20, 32, 1]" in result.stdout
    assert result.stderr == "", "progress is for terminals only"
    meta = json.loads((tmp_path / "burgers-tiny/test-50/meta.json").read_text())
    assert meta["config"]["points"] == 128
    other = command(tmp_path, "--only=test-50", config="burgers.py:tiny,seed=1")
    result = subprocess.run(other, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "config.seed: 0 there, 1 now" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        "darcy.py:tiny,block_points=1089,train_samples=400",
        "burgers.py:tiny,block_points=5120,train_samples=200",
    ],
)
def test_two_real_workers_killed_at_ten_random_moments(tmp_path, config):
    """As `test_kill_at_ten_random_moments`, with solvers; blocks of a single sample."""
    only = "--only=train-4" if "darcy" in config else "--only=train-200"
    subprocess.run(command(tmp_path / "calm", only, config=config), cwd=ROOT, check=True)
    moments, killed = random.Random(0), 0
    shards = [f"--shard={i}/2" for i in (0, 1)]
    blocks = lambda: len(list((tmp_path / "wild").rglob("block-*.npz")))  # noqa: E731
    for _ in range(10):
        before = blocks()
        running = [
            subprocess.Popen(command(tmp_path / "wild", only, shard, config=config), cwd=ROOT)
            for shard in shards
        ]
        while blocks() == before and any(process.poll() is None for process in running):
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.1))
        for process in running:
            process.kill()
            killed += process.wait() == -9
    for shard in shards:
        subprocess.run(command(tmp_path / "wild", only, shard, config=config), cwd=ROOT, check=True)
    assert killed >= 15
    assert contents(tmp_path / "wild") == contents(tmp_path / "calm")
