"""The substitution test as a user's tool: right laws pass, wrong ones are found and corrected."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import boundary, equations, grid
from sino_jax.equations import Axis, Equation, power_law
from tests import exact_solutions


def advection_diffusion(power):
    """u_t + u_x = D u_xx on ``[t, x]``; with x and t cropped by λ, D̂ = D/λ."""

    def residual(coefficient, solution, scale, *, extent):
        dt, dx = grid.spacing(extent, solution.shape[:2], ("node", "node"))
        rate, slope = grid.derivative(solution, 0, dt), grid.derivative(solution, 1, dx)
        return rate + slope - scale * grid.second_derivative(solution, 1, dx)

    return Equation(
        name="advection_diffusion",
        axes=(Axis("t", "node"), Axis("x", "node")),
        sides=boundary.all_sides(2)[:3],
        rescale=power_law(power),
        residual=residual,
        coefficient_channels=0,
    )


def decaying_wave(points, diffusion):
    t, x = np.meshgrid(*(np.linspace(0, 1, n) for n in points), indexing="ij")
    return (np.exp(-diffusion * 9 * t) * np.sin(3 * (x - t)))[..., None]


@pytest.mark.parametrize("size", [None, 10, (12, 30)])
def test_a_right_law_passes_and_a_wrong_one_is_corrected(size):
    solution = decaying_wave((21, 41), 0.1)
    right = equations.check(advection_diffusion(-1), solution=solution, scale=0.1, size=size)
    assert right.holds
    assert right.depends_on_scale
    assert "the law fits" in str(right)
    wrong = equations.check(advection_diffusion(1), solution=solution, scale=0.1, size=size)
    assert not wrong.holds
    assert wrong.defect > 0.05
    assert "scale * ratio**-1 fits" in str(wrong)
    fitting = [power for power, defect in wrong.by_power.items() if defect < 1e-6]
    assert fitting == [-1]


@pytest.mark.parametrize(
    "make",
    [make for make in exact_solutions.ALL if make is not exact_solutions.taylor_green_vorticity],
    ids=lambda make: make.__name__,
)
def test_the_laws_of_the_package_pass_on_exact_solutions(make):
    problem = make(25)
    found = equations.check(
        problem.equation,
        solution=problem.solution,
        coefficient=problem.coefficient,
        scale=problem.scale,
        extent=problem.extent,
    )
    assert found.holds, str(found)
    assert found.depends_on_scale == (problem.equation.name != "darcy")
    if found.depends_on_scale:
        wrong = dataclasses.replace(problem.equation, rescale=lambda scale, ratio: scale)
        again = equations.check(
            wrong,
            solution=problem.solution,
            coefficient=problem.coefficient,
            scale=problem.scale,
            extent=problem.extent,
        )
        assert not again.holds


def test_a_residual_that_ignores_the_extent_is_found():
    equation = equations.get("darcy")
    x = np.linspace(0, 1, 17)
    field = np.sin(3 * x)[:, None, None] * np.cos(2 * x)[None, :, None]
    broken = dataclasses.replace(
        equation,
        residual=lambda a, u, k, *, extent: equation.residual(a, u, k) + u[1:-1, 1:-1],
    )
    right = equations.check(equation, solution=field, coefficient=1 + field**2, scale=1.0)
    assert right.holds
    assert "every law fits" in str(right)
    wrong = equations.check(broken, solution=field, coefficient=1 + field**2, scale=1.0)
    assert not wrong.holds


def test_small_sub_domains_and_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="size must be at least 7 points"):
        equations.check(advection_diffusion(-1), solution=decaying_wave((9, 9), 1.0), scale=1.0)
    with pytest.raises(ValueError, match="takes solution of shape"):
        equations.check(equations.get("darcy"), solution=jnp.ones((9, 9)), scale=1.0)
    field = jnp.ones((9, 9, 1))
    with pytest.raises(ValueError, match="takes coefficient of shape .*, got None"):
        equations.check("darcy", solution=field, scale=1.0)
    with pytest.raises(ValueError, match="coefficient must have the grid of the solution"):
        equations.check("darcy", solution=field, coefficient=field[1:], scale=1.0)
