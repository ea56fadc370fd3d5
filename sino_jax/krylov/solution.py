"""What `sino_jax.krylov.solve` returns, and how the results of several batches become one."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sino_jax.krylov.history import PerExample
from sino_jax.types import Batch


class Solution(NamedTuple):
    """Solutions of a batch, and how far they can be trusted.

    Attributes:
      solution: ``[batch, x, y, 1]``.
      iterations: of every problem.
      history: ``[iterations + 1, batch]``, of the start and after each iteration: the bound
        (coercive problems) or the relative residual ‖M r‖ / ‖u‖; NaN after the last.
      residual: the last of these, evaluated anew from the solution.
      bound: of the relative L2 error; infinite for indefinite problems.
      reached: whether `residual` times `amplification` is at most the tolerance, and, for an
        indefinite problem, `residual` at most `gmres.SEEN`.
      amplification: an estimate of how much larger than the residual the error may be; 1 for
        coercive problems, infinite for a singular one.
    """

    solution: Batch
    iterations: Int[Array, "batch"]
    history: Float[Array, "estimates batch"]
    residual: PerExample
    bound: PerExample
    reached: Bool[Array, "batch"]
    amplification: PerExample


def joined(parts: Sequence[Solution], order: np.ndarray | slice = slice(None)) -> Solution:
    """Several batches as one, in this order of their problems."""
    rows = max(len(part.history) for part in parts)
    histories = [
        np.pad(part.history, ((0, rows - len(part.history)), (0, 0)), constant_values=np.nan)
        for part in parts
    ]
    history = np.concatenate(histories, axis=1)[:, order]
    rest = [part._replace(history=None) for part in parts]
    whole = jax.tree.map(lambda *arrays: jnp.concatenate(arrays)[order], *rest)
    return whole._replace(history=jnp.asarray(history))


def compact(history: np.ndarray) -> np.ndarray:
    """Moves the NaNs of every column to its end: problems wait for others between two rounds."""
    order = np.argsort(np.isnan(history), axis=0, kind="stable")
    return np.take_along_axis(history, order, axis=0)
