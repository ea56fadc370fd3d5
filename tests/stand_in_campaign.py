"""A campaign whose rows train the stand-in of `tests.training_runs`, for tests that kill it.

    python -m tests.stand_in_campaign ROWS.txt --runs=... --results=...     the campaign
    python -m tests.stand_in_campaign --config=RUN.json                     one of its rows

Beside ROWS.txt lies config.json, the training config of every row but for its seed.
"""

import json
import pathlib
import sys

from experiments import campaign, outcome, queue, runner
from sino_jax import checkpoint, runtime
from tests import training_runs

COMMAND = [sys.executable, "-m", "tests.stand_in_campaign"]


def train_row(file: pathlib.Path) -> None:
    """Trains in the directory of the file and writes a result there, as an experiment does."""
    workdir = file.parent
    with runner.measured(workdir / runner.USAGE) as usage:
        training_runs.train_stand_in(json.loads(file.read_text()), workdir)
    meta = checkpoint.read_meta(workdir, checkpoint.newest(workdir))
    result = {"errors": meta["evaluation"], "core_minutes": usage["core_seconds"] / 60}
    campaign.queue.tables.write(result, workdir / outcome.RESULT)


def run_campaign(rows: pathlib.Path, *options: str) -> None:
    config = json.loads((rows.parent / "config.json").read_text())

    def command(self, row):
        file = row.workdir / "row.json"
        file.write_text(json.dumps({**config, "seed": row.config.seed}))
        return [*COMMAND, f"--config={file}"]

    queue.Queue._command = command
    queue.Queue._data_command = lambda self, row: [sys.executable, "-c", "pass"]
    campaign.POLL_SECONDS = 0.05
    campaign.main([str(rows), *options])


if __name__ == "__main__":
    first, *rest = sys.argv[1:]
    if first.startswith("--config="):
        runtime.use_compilation_cache()
        train_row(pathlib.Path(first.removeprefix("--config=")))
    else:
        run_campaign(pathlib.Path(first), *rest)
