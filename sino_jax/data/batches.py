"""Batches as a pure function of (seed, step).

Typical use, here with two scales on grids of different size (one size a batch):

    train = [data.load("data/darcy/train-4"), data.load("data/darcy/train-8")]
    for step in range(epochs * steps_per_epoch(train, batch_size)):
        instance = batch(train, step, seed=0, batch_size=8)
    for instance in in_order(data.load("data/darcy/test-8"), batch_size=32):
        ...

Nothing is kept between steps, so that a run resumes at any step without iterator state; `draw`
names the examples of a step, for instance to report those that made a loss infinite.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sino_jax.data import Dataset
from sino_jax.types import Instance


class Draw(NamedTuple):
    """Which examples a step sees: the number of the data set and the examples' ids in it."""

    dataset: int
    ids: np.ndarray


def steps_per_epoch(
    datasets: Sequence[Dataset], batch_size: int, *, keep_remainder: bool = False
) -> int:
    """Batches in one pass over all `datasets`; see `draw`."""
    counts = [_batches(len(dataset), batch_size, keep_remainder) for dataset in datasets]
    if not counts or min(counts) == 0:
        sizes = [len(dataset) for dataset in datasets]
        raise ValueError(
            f"batch_size must be at most the size of each data set, got {batch_size} for {sizes}"
        )
    return sum(counts)


def draw(
    datasets: Sequence[Dataset],
    step: int,
    *,
    seed: int,
    batch_size: int,
    keep_remainder: bool = False,
) -> Draw:
    """The examples of training step `step`, a pure function of its arguments.

    In an epoch each data set is shuffled and cut into batches, and the batches of all data sets are
    shuffled among each other. What does not fill a batch is left out of that epoch, unless
    `keep_remainder` is set: then the last batch of a data set may be smaller.
    """
    epoch, position, turns = _turns(datasets, step, seed, batch_size, keep_remainder)
    chosen = int(turns[position])
    earlier = int(np.count_nonzero(turns[:position] == chosen))
    order = _permutation(len(datasets[chosen]), seed, epoch, 1 + chosen)
    return Draw(chosen, order[earlier * batch_size : (earlier + 1) * batch_size])


def drawn_from(
    datasets: Sequence[Dataset],
    step: int,
    *,
    seed: int,
    batch_size: int,
    keep_remainder: bool = False,
) -> int:
    """The number of the data set that `draw` takes the examples of a step from."""
    _, position, turns = _turns(datasets, step, seed, batch_size, keep_remainder)
    return int(turns[position])


def batch(
    datasets: Sequence[Dataset],
    step: int,
    *,
    seed: int,
    batch_size: int,
    keep_remainder: bool = False,
    process_index: int = 0,
    process_count: int = 1,
) -> Instance:
    """The batch of training step `step`; see `draw` for its order.

    Of the global batch of `batch_size` examples each of `process_count` processes reads its own
    contiguous part, in the order of `process_index`; all see the same data set at the same step.
    """
    if batch_size % process_count or not 0 <= process_index < process_count:
        raise ValueError(
            f"batch_size must divide evenly among processes 0...{process_count - 1}, "
            f"got batch_size={batch_size}, process_index={process_index}"
        )
    chosen, ids = draw(
        datasets, step, seed=seed, batch_size=batch_size, keep_remainder=keep_remainder
    )
    return datasets[chosen].examples(np.array_split(ids, process_count)[process_index])


def in_order(dataset: Dataset, batch_size: int) -> Iterator[Instance]:
    """All examples once, in the order of their ids; the last batch may be smaller (evaluation)."""
    for start in range(0, len(dataset), batch_size):
        yield dataset.examples(np.arange(start, min(start + batch_size, len(dataset))))


def _turns(
    datasets: Sequence[Dataset], step: int, seed: int, batch_size: int, keep_remainder: bool
) -> tuple[int, int, np.ndarray]:
    """The epoch of a step, its position in it, and the data set of each batch of the epoch."""
    epoch, position = divmod(
        step, steps_per_epoch(datasets, batch_size, keep_remainder=keep_remainder)
    )
    counts = tuple(_batches(len(dataset), batch_size, keep_remainder) for dataset in datasets)
    return epoch, position, _epoch_turns(counts, seed, epoch)


# All steps of an epoch ask for the same turns and the same permutations.
@functools.lru_cache(maxsize=4)
def _epoch_turns(counts: tuple[int, ...], seed: int, epoch: int) -> np.ndarray:
    turns = np.repeat(np.arange(len(counts)), counts)
    return turns[_permutation(len(turns), seed, epoch, 0)]


def _batches(examples: int, batch_size: int, keep_remainder: bool) -> int:
    return -(-examples // batch_size) if keep_remainder else examples // batch_size


@functools.lru_cache(maxsize=16)
def _permutation(n: int, *seed: int) -> np.ndarray:
    # Sorting raw Philox output: unlike Generator.permutation, NumPy guarantees the bit stream, so
    # that a run resumed with another NumPy release sees the same batches.
    raw = np.random.Philox(np.random.SeedSequence(seed)).random_raw(n)
    order = np.argsort(raw, kind="stable")
    order.flags.writeable = False
    return order
