"""Batches as a pure function of (seed, step).

Typical use, here with two scales on grids of different size (one size a batch):

    train = [data.load("data/darcy/train-4"), data.load("data/darcy/train-8")]
    order = Order.of(train, seed=0, batch_size=8)
    for step in range(epochs * order.steps_per_epoch):
        chosen, ids = order.draw(step)
        instance = train[chosen].examples(ids)

Nothing is kept between steps, so that a run resumes at any step without iterator state.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sino_jax.data import Dataset
from sino_jax.types import Instance


class Draw(NamedTuple):
    """Which examples a step sees: the number of the data set and the examples' ids in it."""

    dataset: int
    ids: np.ndarray


@dataclasses.dataclass(frozen=True)
class Order:
    """The order in which a run sees its examples.

    In an epoch each data set is shuffled and cut into batches, and the batches of all data sets are
    shuffled among each other.

    Attributes:
      sizes: numbers of examples of the data sets.
      seed: of all permutations.
      batch_size: examples in a batch.
      keep_remainder: False leaves what does not fill a batch out of that epoch; True makes a
        smaller last batch of it.
    """

    sizes: tuple[int, ...]
    seed: int
    batch_size: int
    keep_remainder: bool = False

    @classmethod
    def of(cls, datasets: Sequence[Dataset], **options) -> "Order":
        """The order for `datasets`; options are the attributes besides `sizes`."""
        return cls(tuple(len(dataset) for dataset in datasets), **options)

    def __post_init__(self):
        if not self.sizes or min(self.batches) == 0:
            raise ValueError(
                f"batch_size must be at most the size of each data set, got {self.batch_size} for "
                f"{list(self.sizes)}"
            )

    @property
    def batches(self) -> tuple[int, ...]:
        """Batches of each data set in one epoch."""
        extra = self.batch_size - 1 if self.keep_remainder else 0
        return tuple((size + extra) // self.batch_size for size in self.sizes)

    @functools.cached_property
    def steps_per_epoch(self) -> int:
        """Batches in one pass over all data sets."""
        return sum(self.batches)

    def draw(self, step: int) -> Draw:
        """The examples of training step `step`, counted from 0."""
        epoch, position = divmod(step, self.steps_per_epoch)
        return _epoch(self, epoch)[position]


def batch(datasets: Sequence[Dataset], step: int, *, seed: int, batch_size: int) -> Instance:
    """The batch of training step `step`, in the order of `Order`."""
    chosen, ids = Order.of(datasets, seed=seed, batch_size=batch_size).draw(step)
    return datasets[chosen].examples(ids)


# The steps of an epoch follow one another; reading ahead looks into the next one.
@functools.lru_cache(maxsize=4)
def _epoch(order: Order, epoch: int) -> list[Draw]:
    """All batches of an epoch."""
    turns = np.repeat(np.arange(len(order.sizes)), order.batches)
    turns = turns[_permutation(len(turns), order.seed, epoch, 0)]
    # Iterators: each turn of a data set takes its next batch.
    cut = []
    for number, size in enumerate(order.sizes):
        ids = _permutation(size, order.seed, epoch, 1 + number)
        starts = range(0, size, order.batch_size)
        cut.append(iter([ids[start : start + order.batch_size] for start in starts]))
    return [Draw(int(turn), next(cut[turn])) for turn in turns]


def _permutation(n: int, *seed: int) -> np.ndarray:
    # Sorting raw Philox output: unlike Generator.permutation, NumPy guarantees the bit stream, so
    # that a run resumed with another NumPy release sees the same batches.
    raw = np.random.Philox(np.random.SeedSequence(seed)).random_raw(n)
    order = np.argsort(raw, kind="stable")
    order.flags.writeable = False
    return order
