"""One row of the paper's "Ablation study" figure: a model of some width on periodic turbulence.

    python -m experiments.kolmogorov \
        --config=experiments/configs/kolmogorov.py:small,model=fno,hidden_channels=12
    python -m experiments.campaign experiments/campaigns/kolmogorov.txt
    python -m experiments.kolmogorov_report

`relative_l2` is the error of one step over all test windows. ``measures`` of a result has

    parameters, bytes, step_bytes   of a training step, as `experiments.memory` estimates them
    step_seconds                    of a training step, at its fastest over the lines of the log
    curve                           [epoch, test error] of the evaluations during training
    errors, correlations            of rollouts with the true vorticity, by step, mean over tests
    divergence_times                first time at which the correlation is below `CORRELATION`, one
                                    for each rollout; the last time if that never is
    horizon                         the last time of a rollout
    spectra                         mean energy in the shells |k| = 0, 1, ...: over all test windows
                                    of the truth and of predictions of one step, and the same at the
                                    end of the rollouts
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments import memory, models, runner, training
from sino_jax import data, operator
from sino_jax.rollout import rollout
from sino_jax.train import logging as logs
from solvers.configs import kolmogorov as data_configs

# A rollout has diverged when its correlation with the truth is lower.
CORRELATION = 0.9
# Windows that are predicted at once.
WINDOWS = 16
# Relative errors of rollouts that blow up are recorded as this: JSON has no infinity.
LARGEST_ERROR = 1e3


def model_fields(config: ConfigDict) -> dict[str, Any]:
    """Fields of `models.fields`, for a periodic domain."""
    fields = models.fields(config)
    return {**fields, "periodic": True} if config.model in models.CONVOLUTIONAL else fields


def measure(
    config: ConfigDict, workdir: pathlib.Path, sets: Mapping[str, pathlib.Path]
) -> dict[str, Any]:
    """What a trained row costs, how it got there, and how far its rollouts go."""
    (path,) = (path for name, path in sets.items() if name.startswith(config.score))
    trained, dataset = operator.load(workdir), data.load(path)
    measures = rollout_measures(trained, dataset, config.rollout_steps)
    measures["spectra"] |= one_step_spectra(trained, dataset)
    return {
        **memory.cost(EXPERIMENT, config),
        "step_seconds": 1 / max(line["steps_per_second"] for line in logs.read(workdir, "train")),
        "curve": learning_curve(config, workdir),
        **measures,
    }


def learning_curve(config: ConfigDict, workdir: pathlib.Path) -> list[tuple[float, float]]:
    """Epoch and one-step error of every evaluation."""
    lines = logs.read(workdir, "evaluation")
    epochs_per_step = config.epochs / lines[-1]["step"]
    return [
        (line["step"] * epochs_per_step, value)
        for line in lines
        for name, value in line.items()
        if name.endswith("/relative_l2")
    ]


def one_step_spectra(trained: operator.Operator, dataset: data.Dataset) -> dict[str, list[float]]:
    """Mean spectra of all windows of a data set and of their predictions."""
    total = {"truth": 0.0, "one step": 0.0}
    for first in range(0, len(dataset), WINDOWS):
        window = dataset.examples(np.arange(first, min(first + WINDOWS, len(dataset))))
        predicted = trained.solve(window.coefficient, None, window.scale)
        for name, frames in {"truth": window.solution, "one step": predicted}.items():
            total[name] += energy_spectrum(np.asarray(frames, np.float64)[..., 0]).sum(axis=0)
    return {name: (energy / len(dataset)).tolist() for name, energy in total.items()}


def rollout_measures(
    trained: operator.Operator, dataset: data.Dataset, steps: int
) -> dict[str, Any]:
    """Errors, correlations, divergence times and spectra of rollouts from every trajectory."""
    dt = dataset.window.dt
    # As many starts as fit without a frame being predicted twice.
    windows = dataset.with_window(horizon=steps, stride=steps)
    instance = windows.examples(np.arange(len(windows)))
    run = jax.jit(
        lambda params, given: rollout(
            trained.apply_fn, params, given, equation=trained.equation, steps=steps
        )
    )
    predicted, true = (
        np.asarray(frames, np.float64)
        for frames in (run(trained.params, instance), instance.solution)
    )
    with np.errstate(all="ignore"):  # a rollout may blow up
        norms = [np.sqrt((f**2).sum(axis=(1, 2))) for f in (predicted - true, predicted, true)]
        errors = norms[0] / norms[2]
        correlations = (predicted * true).sum(axis=(1, 2)) / (norms[1] * norms[2])
        errors = np.minimum(np.nan_to_num(errors, nan=LARGEST_ERROR), LARGEST_ERROR)
        correlations = np.nan_to_num(correlations, nan=0.0)
    low = correlations < CORRELATION
    first = np.where(low.any(axis=1), low.argmax(axis=1), steps - 1)
    return {
        "errors": errors.mean(axis=0).tolist(),
        "correlations": correlations.mean(axis=0).tolist(),
        "divergence_times": (dt * (first + 1)).tolist(),
        "horizon": dt * steps,
        "spectra": {
            name: energy_spectrum(frames[..., -1]).mean(axis=0).tolist()
            for name, frames in {"truth, end": true, "rollout, end": predicted}.items()
        },
    }


def energy_spectrum(vorticity: np.ndarray) -> np.ndarray:
    """Energy ``[..., shell]`` in shells |k| = 0, 1, ... below Nyquist, k in units of the square.

    ``vorticity [..., n, n]`` on a square of side 2π; |u_hat| = |ω_hat| / |k|. Shells sum to ⟨u²⟩/2
    for fields without modes in the corners of the spectrum.
    """
    n = vorticity.shape[-1]
    k = np.fft.fftfreq(n, 1 / n)
    magnitude = np.hypot(k[:, None], k[None, :])
    shells = np.rint(magnitude).astype(int)
    # Rollouts that blow up have no spectrum; zeros are not drawn on logarithmic axes.
    finite = np.nan_to_num(vorticity, nan=0.0, posinf=0.0, neginf=0.0)
    amplitude = np.abs(np.fft.fft2(finite, axes=(-2, -1))) / n**2
    energy = amplitude**2 / np.maximum(magnitude, 1) ** 2 / 2
    return np.stack([energy[..., shells == s].sum(axis=-1) for s in range(n // 2)], axis=-1)


EXPERIMENT = training.Experiment(
    equation="kolmogorov",
    data_config=data_configs.get_config,
    model_fields=model_fields,
    measure=measure,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
