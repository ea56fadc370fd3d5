"""Makes the missing blocks of a data set: solve, check, solve again, keep, report.

A sample is refused if it has values that are not finite, a residual above the tolerance, or a
growth (the size of the solution relative to its data, see `Solved`) above the bound. Its block is
then solved once more, with the same inputs: drawing others would bias the data. What fails twice is
reported at the end; all good samples are kept.
"""

import dataclasses
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
      residuals: how well each sample fulfils its discrete equation, relative.
      growth: the largest modulus of each solution over that of the data that determines it.
    """

    fields: Mapping[str, np.ndarray]
    residuals: np.ndarray
    growth: np.ndarray


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a sample must fulfil: ``residual <= tolerance`` and ``growth <= bound``."""

    tolerance: float
    bound: float

    def complaints(self, solved: Solved) -> list[str]:
        """For each sample what is wrong with it, "" if nothing is."""
        return [self._complaint(solved, i) for i in range(len(solved.residuals))]

    def _complaint(self, solved: Solved, i: int) -> str:
        for name, values in solved.fields.items():
            if not np.all(np.isfinite(values[i])):
                return f"{name} has values that are not finite"
        # Negated, so that a residual or growth that is not a number is refused.
        if not solved.residuals[i] <= self.tolerance:
            return f"residual {solved.residuals[i]:.3g} exceeds {self.tolerance:.3g}"
        if not solved.growth[i] <= self.bound:
            return f"growth {solved.growth[i]:.3g} exceeds {self.bound:.3g}"
        return ""


class RefusedSamples(RuntimeError):
    """Samples that failed twice; the good ones are kept and are not made again."""


def fill(
    parts: Parts,
    solve: Callable[[Sequence[int]], Solved],
    limits: Limits,
    *,
    shard: tuple[int, int] = (0, 1),
    title: str = "",
) -> bool:
    """Makes the blocks of one shard, and joins all blocks if none is missing any more.

    Args:
      parts: the data set in the making.
      solve: solves the samples of the given numbers, deterministically.
      limits: what a sample must fulfil.
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
    with parts.claimed(mine):
        if parts.finished():  # by another process, since the first look
            return parts.join()
        missing = [block for block in parts.missing() if block in mine]
        refused = _make(
            parts, missing, solve, limits, title, total=sum(map(len, map(parts.ids, mine)))
        )
        if refused:
            raise RefusedSamples(
                f"{parts.directory}: {len(refused)} samples were refused twice; all good ones are "
                "kept. " + "; ".join(f"sample {i}: {why}" for i, why in refused.items())
            )
        return parts.join()


def _make(
    parts: Parts,
    missing: Sequence[int],
    solve: Callable[[Sequence[int]], Solved],
    limits: Limits,
    title: str,
    total: int,
) -> dict[int, str]:
    """Makes the blocks `missing`; the refused samples, and why."""
    left = sum(len(parts.ids(block)) for block in missing)
    progress, refused = Progress(title, total, total - left), {}
    for block in missing:
        ids = parts.ids(block)
        solved, complaints = _solve_and_check(ids, solve, limits)
        good = np.array([not complaint for complaint in complaints])
        parts.keep(block, solved.fields, solved.residuals, good)
        refused |= {i: why for i, why in zip(ids, complaints, strict=True) if why}
        if block == missing[0]:
            parts.require_space()
        if len(refused) >= MOST_REFUSED:
            break
        progress.advance(len(ids))
    progress.close()
    return refused


def _solve_and_check(
    ids: Sequence[int], solve: Callable[[Sequence[int]], Solved], limits: Limits
) -> tuple[Solved, list[str]]:
    solved = solve(ids)
    complaints = limits.complaints(solved)
    if not any(complaints):
        return solved, complaints
    again = solve(ids)
    for i, why in enumerate(limits.complaints(again)):
        if complaints[i] and not why:
            for old, new in zip(_arrays(solved), _arrays(again), strict=True):
                old[i] = new[i]
            complaints[i] = ""
    return solved, complaints


def _arrays(solved: Solved) -> list[np.ndarray]:
    return [*solved.fields.values(), solved.residuals, solved.growth]
