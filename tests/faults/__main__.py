"""Malformed inputs and what comes of them: a line that says what is wrong, or the right result.

    python -m tests.faults                      a table of all cases, in this tree
    python -m tests.faults --before=DIR         the same cases in another tree, too (a checkout)
    python -m tests.faults --json               outcomes as JSON

An outcome is *refused* (an error of one line, raised by the package's own code, that names the
argument and what came), *right*, or bad: *wrong* (a result that it must not have, or a refusal of
what is right), *vague* (a refusal that does not name what is wrong), *foreign* (an error of a
library or of Python), *hang* (more than ten seconds). The exit code is the number of bad outcomes.
In another tree, what is tried may be *absent*.
"""

import argparse
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

SECONDS = 10
PACKAGES = ("sino_jax", "solvers", "experiments")


class Late(BaseException):
    """Not an Exception, which the code under test may take for a damaged file."""


class Outcome(NamedTuple):
    kind: str
    detail: str

    @property
    def good(self) -> bool:
        return self.kind in ("refused", "right")


def outcome(case: Any) -> Outcome:
    """What comes of a case, within `SECONDS`."""

    start, used = time.monotonic(), [time.process_time()]

    def late(number, frame):
        used.append(time.process_time())
        # On a busy machine a case may only be short of processor time: one that waits uses none.
        if used[-1] - used[-2] < 0.1 or time.monotonic() - start > 10 * SECONDS:
            raise Late(f"more than {SECONDS} s")
        signal.alarm(SECONDS)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings(action="ignore"):
            result = case.call()
    except Late as error:
        return Outcome("hang", str(error))
    except (Exception, SystemExit) as error:
        return _refusal(case, error)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if case.right is None:
        return Outcome("wrong", f"accepted: {_short(result)}")
    return Outcome("right" if case.right(result) else "wrong", _short(result))


def _refusal(case: Any, error: BaseException) -> Outcome:
    text = f"{type(error).__name__}: {error}".strip()
    missing = isinstance(error, AttributeError) and str(error).startswith("module ")
    if missing or isinstance(error, ImportError):
        return Outcome("absent", _short(text))
    if case.right is not None:
        return Outcome("wrong", _short(text))
    last = traceback.extract_tb(error.__traceback__)[-1]
    raised_in = last.filename
    # Not what is installed: a checkout may lie below a directory of such a name.
    inside = [f"/{package}/" in raised_in for package in PACKAGES]
    ours = (
        any(inside)
        and "site-packages" not in raised_in
        and last.line.startswith(("raise", "sys.exit("))
    )
    plain = isinstance(error, ValueError | TypeError | OSError | SystemExit)
    plain |= type(error).__module__.startswith(PACKAGES)
    if not (ours and plain) or isinstance(error, UnicodeError) or "\n" in str(error):
        return Outcome("foreign", _short(text))
    return Outcome("refused" if re.search(case.says, str(error)) else "vague", _short(text))


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = sorted(value)
    if isinstance(value, jax.Array | np.ndarray):
        value = np.asarray(value).ravel()[:4].tolist()
    text = " ".join(str(value).split())
    # Temporary directories have names of their own in every run.
    text = re.sub(rf"{tempfile.gettempdir()}/tmp\w+", "…", text)
    return re.sub(r"process \d+ on [^\s:]+", "process N on HOST", text)[:110]


def run() -> dict[str, Outcome]:
    """Outcomes by "group: what"."""
    with tempfile.TemporaryDirectory() as place:
        return {f"{c.group}: {c.what}": outcome(c) for c in load_cases(pathlib.Path(place))}


def load_cases(place: pathlib.Path) -> list[Any]:
    """The cases of the files beside this one, also when `tests` is that of another tree."""
    here = pathlib.Path(__file__).parent
    sys.path.append(os.fspath(here))
    modules = [importlib.import_module(file.stem) for file in sorted(here.glob("*_cases.py"))]
    return [case for module in modules for case in module.cases(place)]


def _run_in(tree: pathlib.Path) -> dict[str, Outcome]:
    """The cases of this file with the packages of another tree."""
    environment = {**os.environ, "PYTHONPATH": os.fspath(tree), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--json"], env=environment, cwd=tree, stdout=subprocess.PIPE
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: Outcome(*pair) for name, pair in found.items()}


def table(columns: dict[str, dict[str, Outcome]]) -> str:
    """Markdown: one row for each case, one column for each tree, and the sums."""
    names = list(next(iter(columns.values())))
    lines = ["| case | " + " | ".join(columns) + " |", "|" + "---|" * (1 + len(columns))]
    for name in names:
        entries = [f"{o.kind}: {o.detail}".replace("|", "\\|") for o in
                   (column[name] for column in columns.values())]  # fmt: skip
        lines.append(f"| {name} | " + " | ".join(entries) + " |")
    for title, column in columns.items():
        good = sum(o.good for o in column.values())
        absent = sum(o.kind == "absent" for o in column.values())
        lines.append(
            f"\n{title}: {good} of {len(column)} cases refused or right, "
            f"{len(column) - good - absent} not, {absent} of what there is not."
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=pathlib.Path, help="another tree, for a second column")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    now = run()
    if arguments.json:
        sys.stdout.write(json.dumps(now) + "\n")
    elif arguments.before:
        sys.stdout.write(table({"before": _run_in(arguments.before.resolve()), "now": now}) + "\n")
    else:
        sys.stdout.write(table({"now": now}) + "\n")
    sys.exit(min(sum(not o.good for o in now.values()), 100))


if __name__ == "__main__":
    main()
