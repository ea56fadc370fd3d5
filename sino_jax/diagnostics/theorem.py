"""The terms of the paper's quantitative theorem, measured for a model on samples.

For D_s, the problems with |∇a| ≤ s (a bounded below and above, |g| ≤ 1), and δ < M, λ = δ/M,

    Err_{D_M}  ≤  C ( Err_{D_δ} + Err_boundary + Err_selfcon. ),

    Err_{D_s}       sup over D_s of ‖Ψ(a, g) - G(a, g)‖                       L2 of the unit box
    Err_boundary    sup over D_M of ‖Ψ(a, g)|∂Ω - g‖                          L2 of its boundary
    Err_selfcon.    sup over D_M and sub-domains of side λ of
                    ‖T_λ Ψ(a, g) - Ψ(T_λ a, T_λ Ψ(a, g)|∂Ω)‖                  L2 of the unit box

A supremum over finitely many samples and positions is a lower estimate of the true one, and the
constant C is not known: what can be seen is whether both sides move together.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sino_jax import checks, equations
from sino_jax.equations import Equation
from sino_jax.loss.relative import Fields
from sino_jax.loss.scale_consistency import scale_consistency
from sino_jax.norms import l2_norm
from sino_jax.problem import predict
from sino_jax.types import ApplyFn, Instance, Key, PerExample


class VariedTerms(NamedTuple):
    """What problems of D_M contribute, one value for each.

    Attributes:
      error: ‖Ψ - G‖.
      boundary: of the boundary values.
      self_consistency: the largest over the sub-domains that were drawn.
    """

    error: PerExample
    boundary: PerExample
    self_consistency: PerExample


def varied_terms(
    apply_fn: ApplyFn,
    params,
    instance: Instance,
    *,
    equation: str | Equation,
    size: int | Sequence[int],
    key: Key,
    draws: int,
) -> VariedTerms:
    """The three terms that are measured on D_M.

    Args:
      apply_fn, params, instance, equation, size, key: as in `sino_jax.loss.scale_consistency`;
        `instance` has solutions, and `size` is that of a sub-domain of side λ = δ/M.
      draws: sub-domains of each problem.
    """
    checks.integer("draws", draws)
    equation = equations.get(equation)
    unlabelled = instance._replace(boundary=instance.solution, solution=None)
    prediction = predict(apply_fn, params, unlabelled, equation)
    differences = [
        scale_consistency(
            apply_fn, params, unlabelled, equation=equation, size=size, key=k, error_fn=l2_error
        )
        for k in jax.random.split(key, draws)
    ]
    return VariedTerms(
        l2_error(prediction, instance.solution),
        l2_error_on_sides(prediction, instance.solution, equation=equation),
        jnp.max(jnp.stack(differences), axis=0),
    )


def error(apply_fn: ApplyFn, params, instance: Instance, *, equation: str | Equation) -> PerExample:
    """‖Ψ(a, g) - G(a, g)‖ of problems with solutions."""
    equation = equations.get(equation)
    given = instance._replace(boundary=instance.solution)
    return l2_error(predict(apply_fn, params, given, equation), instance.solution)


def l2_error(first: Fields, second: Fields) -> PerExample:
    """L2 norm of a difference over the unit box: root mean square over the grid."""
    return l2_norm(first - second) / math.prod(first.shape[1:]) ** 0.5


def l2_error_on_sides(first: Fields, second: Fields, *, equation: Equation) -> PerExample:
    """L2 norm of a difference over those sides of the unit box on which data is given."""
    errors = []
    for side in equation.sides:
        faces = (jnp.take(field, side.index, axis=side.axis + 1) for field in (first, second))
        errors.append(l2_error(*faces))
    return l2_norm(jnp.stack(errors, axis=1))
