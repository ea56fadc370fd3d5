"""Runs many rows, some at a time, each bound to its own cores: what fills tables on small machines.

    python -m experiments.campaign experiments/campaigns/darcy.txt --cores=0 1
    python -m experiments.campaign FILE --status
    python -m experiments.campaign FILE --slurm | sbatch

A campaign file has one row a line, an experiment and its config; # begins a comment:

    darcy small,model=fno,consistency=sub+super,seed=1

Rows are started from the top. Data that a row needs is made first, once. A finished row's result is
copied to ``results/`` at once and it is never run again. Stopped in any way (Ctrl-C saves the rows
under way, which then go on where they were) and started again, a campaign goes on; several of them,
also on several machines with a common file system, share the rows of one directory.
"""

import argparse
import os
import pathlib
import shlex
import signal
import sys
import time
from collections.abc import Sequence

from experiments import queue, queue_report
from sino_jax.train import interruption

POLL_SECONDS = 1.0
# Of a table that is not on a terminal, where it cannot be drawn over.
REPORT_SECONDS = 300.0


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse(argv)
    try:
        rows = queue.read(arguments.file, arguments)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    if arguments.slurm:
        print(slurm_script(arguments, len(rows)))
        return
    if arguments.status:
        print(queue_report.table(queue.Queue(rows, arguments)))
        return
    if arguments.row is not None:
        rows = [rows[arguments.row]]
    state = queue.Queue(rows, arguments)
    with interruption.listen() as stop, queue_report.Screen(state) as screen:
        while not state.finished():
            if stop:
                state.interrupt()
                screen.close()
                print("stopped; the same command goes on")
                sys.exit(interruption.EXIT_CODE)
            for event in state.advance():
                screen.message(event)
            screen.refresh(every=None if sys.stdout.isatty() else REPORT_SECONDS)
            time.sleep(POLL_SECONDS)
    print(queue_report.table(state))
    sys.exit(1 if state.failed() else 0)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=pathlib.Path, help="the rows")
    parser.add_argument(
        "--cores",
        nargs="+",
        default=[str(core) for core in sorted(os.sched_getaffinity(0))],
        help="for each worker its cores, as 0 or 0,1 or 0-3; a worker for each core by default",
    )
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--row", type=int, help="run this row only, counted from 0")
    parser.add_argument("--status", action="store_true", help="print the table and do nothing")
    parser.add_argument("--slurm", action="store_true", help="print a job array script")
    arguments = parser.parse_args(argv)
    arguments.cores = [cores(text) for text in arguments.cores]
    return arguments


def cores(text: str) -> frozenset[int]:
    """``"0,2-3"`` as {0, 2, 3}."""
    chosen = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen |= set(range(int(first), int(last or first) + 1))
    return frozenset(chosen)


def slurm_script(arguments: argparse.Namespace, rows: int) -> str:
    """A job array with a row a task; one that the time limit stops is queued again."""
    command = [sys.executable, "-m", "experiments.campaign", str(arguments.file)]
    command += [f"--{name}={getattr(arguments, name)}" for name in ("data", "runs", "results")]
    count = len(arguments.cores[0])
    return f"""#!/bin/bash
#SBATCH --job-name={arguments.file.stem}
#SBATCH --array=0-{rows - 1}
#SBATCH --cpus-per-task={count}
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
# Before the time limit the row saves its state; exit code {interruption.EXIT_CODE}: not done yet.
cores=$(python3 -c 'import os; print(",".join(map(str, sorted(os.sched_getaffinity(0)))))')
{shlex.join(command)} --cores=$cores --row=$SLURM_ARRAY_TASK_ID &
trap "kill -TERM $!" TERM
wait $!; code=$?
if [ $code -gt 128 ]; then wait $!; code=$?; fi
if [ $code -eq {interruption.EXIT_CODE} ]; then
  scontrol requeue ${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
fi
exit $code"""


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a closed terminal does not stop a campaign
    main()
