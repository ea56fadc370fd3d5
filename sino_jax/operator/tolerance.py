"""From predictions to solutions that are right to a tolerance.

Residuals of a few parts in ten thousand are round-off in single precision on large grids, so the
iterations of `sino_jax.krylov` run in double precision, whatever the precision of the model is and
of JAX's settings. Results have the precision of the prediction.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import krylov, problem
from sino_jax.equations import Equation
from sino_jax.krylov import Solution
from sino_jax.krylov.solution import joined
from sino_jax.krylov.solving import RESONANCE, check_equation
from sino_jax.types import Batch

# Problems that are iterated at once have so many grid points together: together they wait for the
# slowest, and large ones are no faster together.
POINTS_AT_ONCE = 2**16


class ToleranceWarning(UserWarning):
    """Some solutions are not as accurate as asked for; the message says which, and why."""


def solve(
    equation: Equation,
    fields: Sequence[Any],
    start: Batch | None,
    *,
    tolerance: float,
    iterations: int,
    extent: Sequence[float] | None,
) -> Solution:
    """Solutions of a batch in the precision of `start`, to a tolerance; see `Operator.solve`.

    Args:
      equation: a linear one.
      fields: coefficient, boundary and scale of a batch, as users give them.
      start: predictions; None starts from the base solutions.

    Raises:
      ValueError: an equation that is not linear, a tolerance below round-off, a resonance.
    """
    check_equation(equation)
    coefficient, boundary, scale = map(_double, fields)
    dtype = _result_dtype(equation, start)
    check_precision(tolerance, dtype)
    with jax.enable_x64(True):
        instance, _ = problem.as_batch(equation, coefficient, boundary, scale)
        count, points = len(instance.scale), math.prod(instance.boundary.shape[1:-1])
        at_once = max(1, POINTS_AT_ONCE // points)
        parts = []
        for first in range(0, count, at_once):
            chosen = slice(first, first + at_once)
            parts.append(
                krylov.solve(
                    jax.tree.map(lambda array, chosen=chosen: array[chosen], instance),
                    equation=equation,
                    tolerance=tolerance - _round_off(dtype),
                    iterations=iterations,
                    start=None if start is None else jnp.asarray(_double(start[chosen])),
                    extent=extent,
                )
            )
        found = jax.tree.map(np.asarray, joined(parts))
    report(found, np.asarray(instance.scale), tolerance, iterations)
    real = np.finfo(dtype).dtype
    return Solution(
        solution=jnp.asarray(found.solution.astype(dtype)),
        iterations=jnp.asarray(found.iterations),
        history=jnp.asarray(found.history.astype(real)),
        residual=jnp.asarray(found.residual.astype(real)),
        # Rounding the solution may add to its error.
        bound=jnp.asarray((found.bound + _round_off(dtype)).astype(real)),
        reached=jnp.asarray(found.reached),
        amplification=jnp.asarray(found.amplification.astype(real)),
    )


def check_precision(tolerance: float, dtype: np.dtype) -> None:
    """Raises a ValueError if a result of this dtype cannot be accurate to the tolerance."""
    smallest = 4 * _round_off(dtype)
    if not smallest <= tolerance < math.inf:
        advice = ""
        if np.finfo(dtype).dtype == np.float32:
            advice = '; jax.config.update("jax_enable_x64", True) makes results float64'
        raise ValueError(
            f"tolerance must be at least {smallest:.1e} for results in {np.dtype(dtype)}, "
            f"got {tolerance}{advice}"
        )


def report(found: Solution, scale: np.ndarray, tolerance: float, iterations: int) -> None:
    """Raises a ValueError for resonant problems, warns about others that were not solved."""
    missed = ~found.reached
    resonant = np.flatnonzero(missed & (found.amplification > 1 / RESONANCE))
    if len(resonant):
        raise ValueError(
            f"problems {resonant.tolist()} are resonant (singular), at k = "
            f"{', '.join(f'{k:g}' for k in scale[resonant])}: they have no solution, or many"
        )
    if missed.any():
        out_of = missed & (found.iterations >= iterations)
        reason = (
            f"after {iterations} iterations; more may help"
            if out_of.any()
            else "where the iteration stalls, by round-off or near a resonance"
        )
        worst = float(np.max((found.residual * found.amplification)[missed]))
        warnings.warn(
            f"tolerance {tolerance:g} was not reached for problems "
            f"{np.flatnonzero(missed).tolist()}: error estimates up to {worst:.1e} {reason}",
            ToleranceWarning,
            stacklevel=4,
        )


def _double(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.result_type(array.dtype, np.float64))


def _result_dtype(equation: Equation, start: Batch | None) -> np.dtype:
    if start is not None:
        return np.dtype(start.dtype)
    kind = complex if equation.complex_valued else float
    return np.dtype(jax.dtypes.canonicalize_dtype(kind))


def _round_off(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)
