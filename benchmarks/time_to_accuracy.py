"""Seconds until Darcy flow is learned to a given error, against neuraloperator (torch).

    taskset -c 0 python -m benchmarks time_to_accuracy

Both sides learn from the 128 samples of preset ``small`` and see the same channels: the coefficient
and the extended boundary values, divided by their size in each sample, as are the solutions. The
peer is neuraloperator's FNO with our modes, width, layers and padding, once with the recipe of its
own Darcy example (AdamW, H1 loss, steps of the rate, 300 epochs) and once with our number of epochs
and loss. Ours are rows of ``experiments.darcy``. Each training is a process of its own, one after
the other on the cores of this one; time begins with the process, compilation included. Evaluations
count for ours only: the peer's are slow at large grids. Errors are means over the validation sets
of unseen scales, 2, 6 and 12. (About an hour on one core.)
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from experiments.configs import darcy as row_configs
from sino_jax import boundary, data, equations, problem
from solvers import generate
from solvers.configs import darcy as data_configs

RESULT = pathlib.Path("results/benchmarks/time_to_accuracy.json")
DATA = pathlib.Path("data")
UNSEEN = (2, 6, 12)
STEPS = 80  # between evaluations: five epochs
RECIPES = ("own recipe", "our epochs and loss")
OURS = "small,epochs=100,score=val"
ROWS = {
    "FNO": OURS,
    "FNO + crops": f"{OURS},consistency=sub",
    "FNO on the harmonic base + crops": f"{OURS},base=harmonic,consistency=sub",
}


def main() -> None:
    generate.generate_all(data_configs.get_config("small"), DATA, log=print)
    curves = {f"neuraloperator, {recipe}": _peer(recipe) for recipe in RECIPES}
    curves |= {name: _ours(text) for name, text in ROWS.items()}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0))
    RESULT.write_text(json.dumps(dict(cores=cores, curves=curves), indent=1) + "\n")
    print(_table(curves))


def _peer(recipe: str) -> list[tuple[float, float]]:
    """(seconds, error) during a training of neuraloperator's FNO."""
    begin = time.time()
    command = [sys.executable, "-m", "benchmarks.time_to_accuracy", recipe]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [(end - begin, error) for end, error in map(json.loads, output.splitlines())]


def _ours(text: str) -> list[tuple[float, float]]:
    """The same for a row of ``experiments.darcy``."""
    with tempfile.TemporaryDirectory() as runs:
        text = f"{text},evaluate_every={STEPS}"
        begin = time.time()
        command = [sys.executable, "-m", "experiments.darcy", f"--config={text}"]
        subprocess.run([*command, f"--data={DATA}", f"--runs={runs}"], check=True)
        (path,) = pathlib.Path(runs).rglob("metrics.jsonl")
        records = map(json.loads, path.read_text().splitlines())
        errors = [f"val-{scale}/relative_l2" for scale in UNSEEN]
        return [
            (record["time"] - begin, float(np.mean([record[name] for name in errors])))
            for record in records
            if record["kind"] == "evaluation"
        ]


def _arrays(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(inputs, solution) of a data set for the peer, channels first, each sample of unit size."""
    dataset = data.load(DATA / "darcy-small" / name)
    batch = dataset.examples(range(len(dataset)))
    inputs = np.array(problem.inputs(equations.get("darcy"), batch))
    size = np.asarray(boundary.magnitude(inputs[..., 1:]))[:, None, None, None]
    inputs[..., 1:] /= size
    return tuple(np.moveaxis(a, -1, 1) for a in (inputs, batch.solution / size))


def _train_peer(recipe: str) -> None:
    """Trains neuraloperator's FNO and prints [time, error] of every evaluation."""
    import torch
    from neuralop import H1Loss, LpLoss
    from neuralop.models import FNO
    from neuralop.training import AdamW

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    ours = row_configs.get_config(OURS)
    inputs, solution = map(torch.tensor, _arrays("train-4"))
    unseen = [tuple(map(torch.tensor, _arrays(f"val-{scale}"))) for scale in UNSEEN]
    model = FNO(
        n_modes=tuple(2 * n - 1 for n in ours.n_modes),
        in_channels=inputs.shape[1],
        out_channels=1,
        hidden_channels=ours.hidden_channels,
        n_layers=ours.n_layers,
        domain_padding=ours.padding,
    )
    l2 = LpLoss(d=2, p=2)
    if recipe == "own recipe":
        epochs, loss = 300, H1Loss(d=2, periodic_in_x=False, periodic_in_y=False)
        optimizer = AdamW(model.parameters(), lr=5e-3, weight_decay=1e-4)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=60, gamma=0.5)
    else:
        epochs, loss = ours.epochs, l2
        optimizer = AdamW(model.parameters(), lr=ours.learning_rate, weight_decay=1e-4)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    step, evaluating = 0, 0.0
    for _ in range(epochs):
        for ids in torch.randperm(len(inputs)).split(ours.batch_size):
            optimizer.zero_grad()
            loss(model(inputs[ids]), solution[ids]).backward()
            optimizer.step()
            step += 1
            if step % STEPS == 0:
                begin = time.time()
                with torch.no_grad():
                    errors = [float(l2(model(a), b)) / len(a) for a, b in unseen]
                print(json.dumps([begin - evaluating, float(np.mean(errors))]), flush=True)
                evaluating += time.time() - begin
        scheduler.step()


def _table(curves: dict[str, list[tuple[float, float]]]) -> str:
    """Seconds of each training until the levels that each peer ends with."""
    levels = {name: curve[-1][1] for name, curve in curves.items() if "neuraloperator" in name}
    heads = [f"seconds to {100 * level:.1f} % ({name})" for name, level in levels.items()]
    lines = ["| | last error % | seconds | " + " | ".join(heads) + " |"]
    lines.append("|---" * (3 + len(heads)) + "|")
    for name, curve in curves.items():
        reached = [_seconds_to(level, curve) for level in levels.values()]
        cells = [f"{100 * curve[-1][1]:.1f}", f"{curve[-1][0]:.0f}", *reached]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _seconds_to(level: float, curve: list[tuple[float, float]]) -> str:
    return next((f"{seconds:.0f}" for seconds, error in curve if error <= level), "not reached")


if __name__ == "__main__":
    _train_peer(sys.argv[1])
