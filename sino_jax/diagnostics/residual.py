"""How wrong a prediction may be, measured without the solution.

The terms of the paper's theorem that need no data (boundary error, self-consistency error), and the
residual of a prediction in the norm that bounds its error for coercive problems.

For Darcy flow, -∇·(a∇u) = 0 in bilinear elements, let e be the difference between a prediction with
exact boundary values and the discrete solution, r_i = ∫ a ∇u·∇φ_i its residual, and
‖r‖₋₁² = rᵀK⁻¹r with the stiffness K of the Laplacian. Since a_min K ≤ A ≤ a_max K,

    ‖r‖₋₁ / a_max  ≤  ‖∇e‖  ≤  ‖r‖₋₁ / a_min,        ‖e‖ ≤ ‖∇e‖ / √λ₁,

λ₁ the smallest eigenvalue of the Laplacian. These bounds are guaranteed up to round-off; they say
nothing of the discretisation's own error. Indefinite Helmholtz problems have no such bound: there
‖r‖₋₁ is an indicator only, since a resonant error has no residual.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sino_jax import base, checks, equations
from sino_jax.base import elements
from sino_jax.base.elements import residual_load
from sino_jax.equations import Equation
from sino_jax.loss.relative import Fields
from sino_jax.loss.scale_consistency import scale_consistency
from sino_jax.norms import l2_norm, relative, root, to_unit_size
from sino_jax.types import ApplyFn, Instance, Key, PerExample, Sample


class ErrorBounds(NamedTuple):
    """Bounds of the error of one prediction; see the module.

    Attributes:
      gradient_lower, gradient_upper: of ‖∇e‖.
      value_upper: of ‖e‖, both in L2 over the rectangle.
    """

    gradient_lower: Float[Array, ""]
    gradient_upper: Float[Array, ""]
    value_upper: Float[Array, ""]


def boundary_error(prediction: Fields, boundary: Fields, *, equation: str | Equation) -> PerExample:
    """Relative L2 error on the sides where the equation's boundary data is given."""
    equation = equations.get(equation)
    if prediction.shape != boundary.shape:
        raise ValueError(
            f"prediction and boundary must have one shape, got {prediction.shape} "
            f"and {boundary.shape}"
        )
    if not equation.sides:
        raise ValueError(f"{equation.name} has no boundary data")

    def on_sides(field: Fields) -> Inexact[Array, "batch values"]:
        faces = [jnp.take(field, side.index, axis=side.axis + 1) for side in equation.sides]
        return jnp.concatenate([face.reshape(len(field), -1) for face in faces], axis=1)

    given = on_sides(boundary)
    return relative(l2_norm(on_sides(prediction) - given), l2_norm(given))


def self_consistency_error(
    apply_fn: ApplyFn,
    params,
    instance: Instance,
    *,
    equation: str | Equation,
    size: int | Sequence[int],
    key: Key,
    draws: int = 1,
) -> PerExample:
    """Mean relative disagreement of a model with itself on random sub-domains of one size.

    The paper's second term: λ = δ/M is the side ratio of `size` points. No solution is used, even
    if `instance` has one. Arguments as in `sino_jax.loss.scale_consistency`.

    Keyword args:
      draws: number of positions that are averaged for each example.
    """
    checks.integer("draws", draws)
    unlabelled = instance._replace(boundary=instance.field, solution=None)
    errors = [
        scale_consistency(apply_fn, params, unlabelled, equation=equation, size=size, key=draw)
        for draw in jax.random.split(key, draws)
    ]
    return jnp.mean(jnp.stack(errors), axis=0)


def darcy_error_bounds(
    coefficient: Float[Array, "x y 1"],
    prediction: Float[Array, "x y 1"],
    *,
    extent: Sequence[float] = (1.0, 1.0),
) -> ErrorBounds:
    """Guaranteed bounds of the error of one Darcy prediction against the Q1 solution.

    Args:
      coefficient: a > 0 at the nodes; an element takes the mean of its corners.
      prediction: a field whose outer ring holds the true boundary values. If it does not, add
        ``base.harmonic(boundary - prediction)`` to it first.
      extent: side lengths of the rectangle.
    """
    residual = residual_norm(coefficient, prediction, extent=extent)
    cells = elements.cell_means(coefficient)
    upper = residual / jnp.min(cells)
    # Over the eigenvalue of the continuous problem, which is the smaller one.
    poincare = np.pi * np.sqrt(sum(1 / length**2 for length in extent))
    return ErrorBounds(residual / jnp.max(cells), upper, upper / poincare)


def residual_norm(
    coefficient: Float[Array, "x y 1"],
    prediction: Sample,
    *,
    k: float | Float[Array, ""] = 0.0,
    extent: Sequence[float] = (1.0, 1.0),
) -> Float[Array, ""]:
    """‖r‖₋₁ of -∇·(a∇u) - k² u for one prediction ``[x, y, channel]``, real or complex.

    See the module for what it bounds with k = 0, and what not otherwise.
    """
    if coefficient.shape[:2] != prediction.shape[:2] or min(prediction.shape[:2]) < 3:
        raise ValueError(
            "coefficient and prediction must have one grid of at least 3 x 3 nodes, "
            f"got shapes {coefficient.shape} and {prediction.shape}"
        )
    load = residual_load(coefficient, prediction, k=k, extent=extent)
    return dual_norm(load, base.poisson(load, extent=extent))


def dual_norm(
    load: Inexact[Array, "inner_x inner_y _"], potential: Inexact[Array, "inner_x inner_y _"]
) -> Float[Array, ""]:
    """‖r‖₋₁ of a load r whose ``potential = base.poisson(load)`` is K⁻¹r."""
    (load, size), (potential, other) = (to_unit_size(field, None) for field in (load, potential))
    square = jnp.sum((jnp.conj(load) * potential).real)
    # Round-off may make the square of a small norm negative.
    return (root(size) * root(other)).reshape(()) * root(jnp.maximum(square, 0))
