"""A generator without a solver, for tests that start, kill and race many processes.

    python -m tests.stand_in_generator DIRECTORY --shard=0/1 [--samples=40] [--bad=3,17] ...

Sample i is random numbers seeded by i. Needs NumPy only, so that it starts in a tenth of a second.
"""

import argparse
import pathlib
import sys
import time

import numpy as np

from solvers import fill, parts, storage


def solve(ids, *, bad=(), seconds=0.0) -> fill.Solved:
    """The samples `ids`; those in `bad` are infinite somewhere."""
    time.sleep(seconds)
    fields = {
        "coefficient": np.stack([np.random.default_rng(i).normal(size=(6, 5, 1)) for i in ids]),
        "solution": np.stack([np.full((6, 5, 1), i, np.complex64) for i in ids]),
    }
    for row, i in enumerate(ids):
        if i in bad:
            fields["coefficient"][row, 2, 2] = np.inf
    return fill.Solved(fields, {"residual": 1e-12 * np.array(ids), "growth": np.ones(len(ids))})


LIMITS = {"residual": 1e-8, "growth": 10.0}


def make_parts(directory: pathlib.Path, samples: int = 40, seed: int = 0) -> parts.Parts:
    description = storage.describe(
        equation="darcy",
        split="train",
        scale=4.0,
        samples=samples,
        seed=seed,
        grid={"axes": ["x", "y"], "shape": [6, 5], "centrings": ["node"] * 2, "extent": [1, 1]},
        window=None,
        limits=LIMITS,
        units={},
        config={"preset": "stand-in"},
        versions={},
    )
    return parts.Parts(directory, description, block_size=3)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="for each block")
    options = parser.parse_args()
    index, count = map(int, options.shard.split("/"))
    try:
        finished = fill.fill(
            make_parts(options.directory, seed=options.seed),
            lambda ids: solve(ids, seconds=options.seconds),
            LIMITS,
            shard=(index, count),
        )
    except storage.StorageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0 if finished else 1


if __name__ == "__main__":
    sys.exit(main())
