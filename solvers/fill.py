"""Makes the missing blocks of a data set: solve, check, solve again, keep, report.

A sample is refused if it has values that are not finite, or a measure (see `Solved`) above its
limit. Its block is then solved once more, with the same inputs: drawing others would bias the data.
What fails twice is reported at the end; all good samples are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from solvers.parts import Parts
from solvers.progress import Progress

# A run with this many refused samples has a systematic cause: going on would be a waste.
MOST_REFUSED = 16


class Solved(NamedTuple):
    """A block of samples as the solver returns it.

    Attributes:
      fields: by name, ``[block, ...]``.
      measures: by name, one number for each sample, small for a good one: the solver's residual,
        the growth of the solution over its data, ...
    """

    fields: Mapping[str, np.ndarray]
    measures: Mapping[str, np.ndarray]


def complaints(solved: Solved, limits: Mapping[str, float]) -> list[str]:
    """For each sample what is wrong with it, "" if nothing is."""
    finite = {name: _finite(values) for name, values in solved.fields.items()}
    count = len(next(iter(finite.values())))
    found = []
    for i in range(count):
        wrong = [f"{name} has values that are not finite" for name in finite if not finite[name][i]]
        # Negated, so that a measure that is not a number is refused.
        wrong += [
            f"{name} {values[i]:.3g} exceeds {limits[name]:.3g}"
            for name, values in solved.measures.items()
            if not values[i] <= limits[name]
        ]
        found.append(", ".join(wrong))
    return found


def _finite(values: np.ndarray) -> np.ndarray:
    return np.isfinite(values).all(axis=tuple(range(1, values.ndim)))


class RefusedSamples(RuntimeError):
    """Samples that failed twice; the good ones are kept and are not made again."""


def fill(
    parts: Parts,
    solve: Callable[[Sequence[int]], Solved],
    limits: Mapping[str, float],
    *,
    shard: tuple[int, int] = (0, 1),
    title: str = "",
) -> bool:
    """Makes the blocks of one shard, and joins all blocks if none is missing any more.

    Args:
      parts: the data set in the making.
      solve: solves the samples of the given numbers, deterministically.
      limits: the largest value allowed of each measure.
      shard: ``(i, n)``: this process makes the blocks i, i + n, i + 2n, ...
      title: for the progress line.

    Returns:
      whether the data set is finished; if not, blocks of other shards are missing.

    Raises:
      StorageError: another process makes the same blocks, the directory holds another data set, or
        the disk is full.
      RefusedSamples: samples failed twice.
    """
    index, count = shard
    if not 0 <= index < count:
        raise ValueError(f"shard must be (i, n) with 0 <= i < n, got {shard}")
    if parts.finished():
        return parts.join()
    mine = parts.blocks[index::count]
    try:
        with parts.claimed(mine):
            if parts.finished():  # by another process, since the first look
                return parts.join()
            missing = [block for block in parts.missing() if block in mine]
            total, left = (sum(len(parts.ids(block)) for block in some) for some in (mine, missing))
            refused = _make(parts, missing, solve, limits, Progress(title, total, total - left))
            if refused:
                raise RefusedSamples(
                    f"{parts.directory}: {len(refused)} samples were refused twice; all good ones "
                    "are kept. " + "; ".join(f"sample {i}: {why}" for i, why in refused.items())
                )
            return parts.join()
    except FileNotFoundError:  # another process has joined all blocks and removed parts/ meanwhile
        if not parts.finished():
            raise
        return True


def _make(
    parts: Parts,
    missing: Sequence[int],
    solve: Callable[[Sequence[int]], Solved],
    limits: Mapping[str, float],
    progress: Progress,
) -> dict[int, str]:
    """Makes the blocks `missing`; the refused samples, and why."""
    refused = {}
    for block in missing:
        ids = parts.ids(block)
        solved, wrong = _solve_and_check(ids, solve, limits)
        good = np.array([not complaint for complaint in wrong])
        parts.keep(block, solved.fields, solved.measures, good)
        refused |= {i: complaint for i, complaint in zip(ids, wrong, strict=True) if complaint}
        if block == missing[0]:
            parts.require_space()
        if len(refused) >= MOST_REFUSED:
            break
        progress.advance(len(ids))
    progress.close()
    return refused


def _solve_and_check(
    ids: Sequence[int], solve: Callable[[Sequence[int]], Solved], limits: Mapping[str, float]
) -> tuple[Solved, list[str]]:
    """A block, solved twice if needed, and for each sample what is wrong with it."""
    solved = solve(ids)
    wrong = complaints(solved, limits)
    if not any(wrong):
        return solved, wrong
    again = solve(ids)
    wrong_again = complaints(again, limits)
    repaired = np.array([bool(w and not a) for w, a in zip(wrong, wrong_again, strict=True)])
    chosen = Solved(
        *(_replaced(old, new, repaired) for old, new in zip(solved, again, strict=True))
    )
    return chosen, ["" if r else w for w, r in zip(wrong, repaired, strict=True)]


def _replaced(
    old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray], rows: np.ndarray
) -> dict[str, np.ndarray]:
    """`old` with the given rows of every array taken from `new`."""
    result = {name: np.array(values) for name, values in old.items()}
    for name, values in result.items():
        values[rows] = new[name][rows]
    return result
