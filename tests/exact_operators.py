"""The package's own solvers in the place of a model: exactly scale-consistent operators."""

import jax

from sino_jax import channels, equations
from solvers import darcy, helmholtz


def darcy_operator(params, inputs, scale):
    """apply_fn whose prediction is the finite-element solution."""
    del params, scale
    equation = equations.get("darcy")

    def solve(sample):
        coefficient, field = equation.split(sample)
        return darcy.solve(coefficient[..., 0], field[..., 0])[..., None]

    return jax.vmap(solve)(inputs)


def helmholtz_operator(params, inputs, scale):
    """The same for Helmholtz, with (re, im) channels as a model would give."""
    del params
    equation = equations.get("helmholtz")

    def solve(sample, k):
        coefficient, field = equation.split(sample)
        return helmholtz.solve(coefficient[..., 0], k, dirichlet=field[..., 0])[..., None]

    return channels.to_channels(jax.vmap(solve)(inputs, scale))


OPERATORS = {"darcy": darcy_operator, "helmholtz": helmholtz_operator}
