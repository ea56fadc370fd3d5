"""A real small training, from seed to table and figures, within minutes on two cores.

    make demo        (python -m experiments.demo)

Makes Darcy problems at five scales, and trains three operators on the same 128 samples of scale 4:
an FNO, the same with scale-consistency on sub-domains ("+sub"), and the latter as a correction of
the harmonic extension of the boundary values ("on harmonic base"). Each has a core to itself, two
run side by side. Stopped and started again, it goes on; finished, it only prints.
"""

import argparse
import os
import pathlib
import sys
import textwrap
import time

from experiments import figures, outcome, queue, queue_report, tables
from sino_jax import runtime
from sino_jax.train import interruption

ROOT = pathlib.Path("demo")
ROWS = ("demo", "demo,consistency=sub", "demo,base=harmonic,consistency=sub")
SECONDS_BETWEEN_REPORTS = 30.0


def main() -> None:
    figures.require()
    start = time.monotonic()
    rows = train()
    results = [tables.read(row.workdir / outcome.RESULT) for row in rows]
    print("\nRelative L2 error in percent; one seed, trained on 128 samples of scale 4:\n")
    print(tables.markdown(results, tables.PAPER["darcy"][0]))
    baseline = results[0]["row"]
    for result in results[1:]:
        below = tables.reduction(results, baseline=baseline, improved=result["row"])
        parts = ", ".join(
            f"{percent:.0f} % at {scale:g}" for scale, percent in sorted(below.items())
        )
        print(f"{result['row']} is below {baseline} by {parts}")
    best = rows[-1].workdir
    paths = [
        figures.error_against_scale(results, ROOT / "error_against_scale.png", trained=(4,)),
        figures.predictions(best, ROOT / "predictions.png"),
    ]
    print("\nfigures: " + ", ".join(map(str, paths)))
    print(f"{time.monotonic() - start:.0f} s in all\n")
    print(next_steps(best))


def train() -> list[queue.Row]:
    """Runs what is left of the rows, the longest first; returns them in their own order."""
    ROOT.mkdir(exist_ok=True)
    file = ROOT / "rows.txt"
    file.write_text("".join(f"darcy {row}\n" for row in ROWS))
    places = argparse.Namespace(
        data=ROOT / "data",
        runs=ROOT / "runs",
        results=ROOT / "results",
        cores=[frozenset({core}) for core in sorted(os.sched_getaffinity(0))[:2]],
    )
    rows = queue.read(file, places)
    state = queue.Queue(rows[::-1], places)
    with interruption.listen() as stop, queue_report.Screen(state) as screen:
        while not state.finished():
            if stop:
                state.interrupt()
                sys.exit(interruption.EXIT_CODE)
            for event in state.advance():
                screen.message(event)
            screen.refresh(every=None if sys.stdout.isatty() else SECONDS_BETWEEN_REPORTS)
            time.sleep(1.0)
    if failed := state.failed():
        sys.exit(f"failed: {', '.join(row.name for row in failed)}; see {queue.LOG} below {ROOT}")
    return rows


def next_steps(workdir: pathlib.Path) -> str:
    """How to use the trained operator, and what to run next."""
    return textwrap.dedent(f"""\
        Use the last operator in Python, on any grid and at any scale:

            from sino_jax import data, operator
            problems = data.load("{ROOT / "data" / "darcy-demo" / "test-8"}").examples([0, 1])
            trained = operator.load("{workdir}")
            u = trained.solve(problems.coefficient, problems.solution, problems.scale)

        What to run next:

            python -m experiments.campaign experiments/campaigns/darcy.txt  # the table
            python -m experiments.tables darcy                     # ours beside the paper's
        """)


if __name__ == "__main__":
    runtime.prepare()
    main()
