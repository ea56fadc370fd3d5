"""Solving to a tolerance: Krylov iterations on the finite element problem itself.

For known linear equations the discrete residual of a field is known, and sine transforms invert the
operator of a constant coefficient. Together they turn any start, such as a prediction, into the
solution to a tolerance; see `solve`. The solvers act on batches and stop for each example:

    conjugate_gradients   coercive problems: Darcy flow, Helmholtz below the first resonance
    gmres                 indefinite ones
    few_iterations        differentiable, a fixed small number: the part of a model

The first two take any preconditioner, also one that is not linear (`flexible`).
"""

from sino_jax.krylov.conjugate_gradients import conjugate_gradients
from sino_jax.krylov.few_iterations import conjugate_steps, improve
from sino_jax.krylov.gmres import gmres
from sino_jax.krylov.history import Iterations
from sino_jax.krylov.preconditioner import shifted_inverse
from sino_jax.krylov.solution import Solution
from sino_jax.krylov.solving import check_equation, first_iterate, solve

__all__ = [
    "Iterations",
    "Solution",
    "check_equation",
    "conjugate_gradients",
    "conjugate_steps",
    "first_iterate",
    "gmres",
    "improve",
    "shifted_inverse",
    "solve",
]
