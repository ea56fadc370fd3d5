"""The tiny preset end to end, periodic models, and what the report says of rows that are known."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import estimate, kolmogorov, kolmogorov_report, outcome, queue, runner, tables
from experiments.configs import kolmogorov as configs
from sino_jax import data, equations
from sino_jax.models import build
from tests.dataset_files import write_dataset
from tests.experiments.test_experiments import ROOT

MODELS = ("fno", "unet", "fno_unet", "uno", "sino", "sino_u")
ROWS = (
    "tiny,model=fno",
    "tiny,model=sino_u",
    "tiny,model=sino",
    "tiny,model=sino,data=tiny;seen=32",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Results of the tiny rows, made by the function that the command calls."""
    root = tmp_path_factory.mktemp("kolmogorov")
    places = {"data": root / "data", "runs": root / "runs"}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        for text in ROWS:
            runner.run(kolmogorov.EXPERIMENT, configs.get_config(text), **places)
    return root


@pytest.mark.slow
def test_rows_have_costs_curves_rollouts_and_spectra(finished):
    results = tables.collect(finished / "runs")
    assert len(results) == len(ROWS)
    for result in results:
        measures, (error,) = result["measures"], outcome.errors_by_scale(result).values()
        assert 0 < error < 2
        # 14 windows in batches of 7: two steps an epoch, evaluated after each of four.
        assert [epoch for epoch, _ in measures["curve"]] == [1, 2, 3, 4]
        assert measures["curve"][-1][1] == pytest.approx(error, rel=1e-6)
        assert measures["parameters"] > 100
        assert measures["bytes"] > measures["step_bytes"] > 4 * 16 * 16
        assert len(measures["errors"]) == len(measures["correlations"]) == 6
        assert measures["horizon"] == 1.5
        assert 0 < min(measures["divergence_times"]) <= max(measures["divergence_times"]) <= 1.5
        seen = 32 if "seen=32" in result["row"] else 16
        assert {len(s) for s in measures["spectra"].values()} == {seen // 2}
    truths = {len(r["measures"]["spectra"]["truth"]): r["measures"]["spectra"] for r in results}
    # Both resolutions see the same flow.
    np.testing.assert_allclose(
        truths[8]["truth"][:7], truths[16]["truth"][:7], rtol=1e-4, atol=1e-9
    )


@pytest.mark.slow
def test_the_report_has_all_tables_and_figures(finished, capsys):
    kolmogorov_report.main(["--preset=tiny", f"--runs={finished / 'runs'}"])
    printed = capsys.readouterr().out
    rows = kolmogorov_report.rows_of(tables.collect(finished / "runs"))
    assert [row.comparable for row in rows].count(True) == 3
    for row in rows:
        assert row.label in printed
        assert kolmogorov_report.percent(row.errors) in printed
    assert "| model | 16² | 32² |" in printed
    assert "not measured" not in printed
    for figure in ("cost", "resolution", "spectra", "rollouts"):
        assert (finished / "runs/kolmogorov/tiny" / f"tiny_{figure}.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["fno", "unet", "fno_unet", "uno"])
def test_models_are_periodic(name):
    """Without coordinates, shifting the input around the square shifts the output.

    Not so with a shared kernel: its cGeLU acts on real and imaginary parts of Fourier coefficients.
    """
    config = configs.get_config(f"tiny,model={name}")
    fields = equations.get("kolmogorov").model_fields() | kolmogorov.model_fields(config)
    model = build({**fields, "coordinates": False})
    vorticity = jax.random.normal(jax.random.key(0), (1, 16, 16, 1))
    scale = jnp.full(1, 20.0)
    params = model.init(jax.random.key(1), vorticity, scale)
    apply = jax.jit(model.apply)
    shifted = apply(params, jnp.roll(vorticity, (4, 8), axis=(1, 2)), scale)
    expected = jnp.roll(apply(params, vorticity, scale), (4, 8), axis=(1, 2))
    np.testing.assert_allclose(shifted, expected, atol=1e-5 * float(jnp.abs(expected).max()))
    assert float(jnp.abs(shifted - apply(params, vorticity, scale)).max()) > 1e-3


@pytest.mark.parametrize("preset", configs.PRESETS)
@pytest.mark.parametrize("name", ["fno", "uno", "sino", "sino_u"])
def test_fourier_models_have_no_padding_and_shared_kernels_no_truncation(name, preset):
    fields = kolmogorov.model_fields(configs.get_config(f"{preset},model={name}"))
    assert fields["padding"] == 0
    assert fields.get("truncated", True) == (name in ("fno", "uno"))


def test_energy_is_found_in_its_shell():
    x = 2 * np.pi / 32 * np.arange(32)
    vorticity = 10 * np.sin(3 * x[:, None] + 4 * x[None, :]) + 2 * np.cos(2 * x)[:, None]
    # A wave of amplitude a and wave number k has the mean square velocity a² / (2 k²).
    expected = np.zeros(16)
    expected[5], expected[2] = 100 / 50 / 2, 4 / 8 / 2
    np.testing.assert_allclose(kolmogorov.energy_spectrum(vorticity), expected, atol=1e-12)


def test_rollouts_diverge_when_their_correlation_falls(tmp_path):
    """Persistence of a travelling wave has the correlation cos(ct)."""
    steps, dt, speed = 8, 0.1, 1.0
    x = 2 * np.pi / 16 * np.arange(16)
    times = dt * np.arange(steps + 1)
    waves = np.cos(x[None, :, None] - speed * times[:, None, None]) * np.ones((1, 1, 16))
    window = {"history": 1, "horizon": 1, "stride": 1, "frames": "channel", "dt": dt}
    write_dataset(
        tmp_path / "waves",
        {"trajectory": waves[None, ..., None].astype(np.float32)},
        window=window,
        equation="kolmogorov",
        split="test",
    )
    persistence = types.SimpleNamespace(
        apply_fn=lambda params, inputs, scale: inputs,
        params=None,
        equation=equations.get("kolmogorov"),
    )
    measures = kolmogorov.rollout_measures(persistence, data.load(tmp_path / "waves"), steps)
    np.testing.assert_allclose(measures["correlations"], np.cos(speed * times[1:]), atol=1e-5)
    assert measures["divergence_times"] == pytest.approx([0.5])  # cos 0.4 > 0.9 > cos 0.5


def known(model, parameters, memory, *errors, seen=64, modes=32, width=4):
    measures = {"parameters": parameters, "bytes": memory, "step_seconds": 1.0}
    measures["curve"] = [(10, errors[0] / 50), (20, errors[0] / 100)]
    return kolmogorov_report.Row(
        model, width, "small", seen, modes, True, errors, (measures,) * len(errors)
    )


def test_statements_follow_from_rows():
    fno = known("fno", 10_000, 100, 4.0, 5.0)
    assert kolmogorov_report.shared_kernel([fno]) == "not measured"
    rows = [fno, known("sino", 900, 300, 4.4), known("sino", 200, 200, 6.0)]
    assert kolmogorov_report.shared_kernel(rows).startswith("yes: the best FNO (4.50 %")
    assert kolmogorov_report.shared_kernel([fno, rows[2]]).startswith("no: the best FNO")
    assert kolmogorov_report.shared_kernel([fno, known("sino", 2000, 9, 4.0)]).startswith("no")
    large, small = known("sino_u", 5000, 250, 3.0), known("sino_u", 500, 150, 4.6)
    assert "below in 1 of 1 widths" in kolmogorov_report.equal_memory([*rows, large])
    answer = kolmogorov_report.equal_memory([*rows, large, small])
    assert answer.startswith("no: below in 1 of 2 widths; at the most memory 3.00 % against 4.50 %")
    assert fno.epochs_to(9.0) == 10
    assert fno.epochs_to(4.5) == 20
    assert fno.epochs_to(3.9) is None


@pytest.mark.parametrize(
    ("fixed", "untruncated", "verdict"),
    [
        ((8.0, 8.1, 7.9), (9.0, 5.0, 4.0), "yes"),
        ((8.0, 8.1, 7.9), (9.0, 5.0, 5.5), "no"),
        ((8.0, 6.0, 5.0), (9.0, 5.0, 4.0), "no"),
    ],
)
def test_refinement_compares_fixed_modes_with_none(fixed, untruncated, verdict):
    rows = []
    for n, of_fno, of_sino in zip((32, 64, 128), fixed, untruncated, strict=True):
        rows.append(known("fno", 1, 1, of_fno, seen=n, modes=16))
        rows.append(known("sino", 1, 1, of_sino, seen=n, modes=n // 2))
    answer = kolmogorov_report.refinement(kolmogorov_report.resolution_lines(rows))
    assert answer.startswith(verdict)
    assert "FNO, width 4, 16 modes: 8.00" in answer


def test_the_campaign_has_six_models_of_four_widths_and_two_seeds(tmp_path):
    places = types.SimpleNamespace(runs=tmp_path / "runs", results=tmp_path / "results")
    rows = queue.read(ROOT / "experiments/campaigns/kolmogorov.txt", places)
    widths = {}
    for row in rows:
        config = row.config
        if config.data == "small" and config.n_modes == (32, 32):
            width = config[kolmogorov_report.WIDTHS[config.model]]
            widths.setdefault((config.model, config.seed), set()).add(width)
    assert set(widths) == {(model, seed) for model in MODELS for seed in (0, 1)}
    assert {len(sizes) for sizes in widths.values()} == {4}


def test_the_steps_of_a_campaign_are_counted_and_timed(tmp_path, capsys):
    file = tmp_path / "rows.txt"
    file.write_text("kolmogorov tiny,model=fno\nkolmogorov tiny,model=fno,seed=1\n")
    estimate.main([str(file)])
    printed = capsys.readouterr().out
    assert "FNO: 8 steps of" in printed  # 2 trajectories of 7 windows in batches of 7, 4 epochs
    assert "2 seeds" in printed
    # Two of three starts, strides of the config, a batch that is not full.
    text = "tiny,model=fno,stride=3,batch_size=4"
    assert estimate.training_steps(kolmogorov.EXPERIMENT, configs.get_config(text)) == 4 * 2
