"""Every case of ``python -m tests.faults`` is refused in one line, or gives the right result."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent


def test_every_malformed_input_is_refused_or_right():
    """In a process of its own: here annotations are checked, which would refuse most before us."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        check=False,
    )
    assert run.stdout, run.stderr[-2000:]
    outcomes = json.loads(run.stdout.splitlines()[-1])
    assert not {case: o for case, o in outcomes.items() if o[0] not in ("refused", "right")}
    assert run.returncode == 0
    assert len(outcomes) > 180
