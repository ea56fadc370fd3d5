"""An equation of a user's own, in three dimensions, through everything that takes an equation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import (
    augment,
    boundary,
    data,
    decomposition,
    diagnostics,
    equations,
    grid,
    loss,
    operator,
    train,
)
from sino_jax.equations import Axis, Equation, power_law
from sino_jax.train import recipe
from sino_jax.types import Instance

NODES = ("node",) * 3
SHAPE = (11, 12, 10)


def screened_residual(coefficient, solution, scale, *, extent=(1.0, 1.0, 1.0)):
    """-Δu + k²u at the inner nodes."""
    steps = grid.spacing(extent, solution.shape[:-1], NODES)
    laplacian = sum(grid.second_derivative(solution, axis, step) for axis, step in enumerate(steps))
    return (scale**2 * solution - laplacian)[1:-1, 1:-1, 1:-1]


SCREENED = Equation(
    name="screened_poisson",
    axes=tuple(Axis(name, "node") for name in "xyz"),
    sides=boundary.all_sides(3),
    rescale=power_law(1),
    residual=screened_residual,
    coefficient_channels=0,
    linear=True,
)


def exact(scale, direction=(2, 1, 2)):
    """u = exp(k d·x) for a unit vector d."""
    points = grid.coordinates(SHAPE, centrings=NODES)
    unit = jnp.asarray(direction, points.dtype) / np.linalg.norm(direction)
    return jnp.exp(scale * jnp.tensordot(points, unit, 1))[..., None]


def test_the_law_is_confirmed_on_a_solution():
    solution = exact(1.5)
    assert equations.check(SCREENED, solution=solution, scale=1.5, size=8).holds
    wrong = functools.partial(equations.check, solution=solution, scale=1.5, size=8)
    found = wrong(Equation(**{**vars(SCREENED), "rescale": power_law(-1)}))
    assert "scale * ratio**1 fits" in str(found)


def first_trace(params, inputs, scale):
    """Exact for solutions that vary along y and z only."""
    return inputs[..., :1]


def test_losses_take_it_and_one_number_as_scale():
    solution = jnp.stack([exact(1.5, (0, 1, 1)), exact(1.5, (0, 1, 0))])
    one, each = (Instance(None, None, s, solution) for s in (1.5, jnp.full(2, 1.5)))
    options = {"equation": SCREENED, "key": jax.random.key(0)}
    assert (loss.scale_consistency(first_trace, None, one, size=6, **options) == 0).all()
    rough = Instance(None, None, 1.5, jnp.stack([exact(1.5), exact(1.5, (1, 2, 2))]))
    many = rough._replace(scale=jnp.full(2, 1.5))
    for instance, other in ((one, each), (rough, many)):
        totals = [
            loss.training_loss(first_trace, None, i, progress=0.5, sub_sizes=(6,), **options)[0]
            for i in (instance, other)
        ]
        np.testing.assert_array_equal(*totals)
        limits = [
            loss.infinitesimal_scale_consistency(first_trace, None, i, equation=SCREENED)
            for i in (instance, other)
        ]
        np.testing.assert_array_equal(*limits)
    assert limits[0].min() > 0.01


def test_symmetries_of_space_are_refused_with_the_reason():
    instance = Instance(None, None, jnp.ones(1), exact(1.0)[None])
    with pytest.raises(ValueError, match="symmetries are those of the line and the plane"):
        augment.random_symmetry(jax.random.key(0), instance, equation=SCREENED)


def test_decomposition_and_diagnostics_take_it():
    field = exact(1.5, (0, 1, 1))[None]
    refined = decomposition.refine(
        first_trace,
        None,
        None,
        field,
        1.5,
        equation=SCREENED,
        patches=2,
        overlap=4,
        iterations=2,
        start="zeros",
    )
    # Patches at the low end of x have their exact trace at once, the others after them.
    np.testing.assert_allclose(refined, field, rtol=1e-5)
    error = diagnostics.boundary_error(field * 1.01, field, equation=SCREENED)
    np.testing.assert_allclose(error, 0.01, rtol=1e-3)


def test_it_is_trained_saved_and_loaded(tmp_path):
    solutions = np.stack([exact(1.5, (1, 1 + i, 2)) for i in range(4)])
    made = data.from_arrays(tmp_path / "data", equation=SCREENED, solution=solutions, scale=1.5)
    config = recipe.recipe(
        [made["train-1.5"]], equation=SCREENED, preset="tiny", consistency="none"
    )
    config["model"] |= {"n_modes": (2, 2, 2), "hidden_channels": 4, "n_layers": 1}
    config["loss"] = {"sub_sizes": (8,)}
    config["epochs"] = 2
    train.fit(config, tmp_path / "run", equation=SCREENED)
    with pytest.raises(ValueError, match="equation must be one of"):
        operator.load(tmp_path / "run")
    trained = operator.load(tmp_path / "run", equation=SCREENED)
    solved = trained.solve(None, solutions, 1.5)
    assert solved.shape == solutions.shape
    again = operator.load(trained.save(tmp_path / "portable"), equation=SCREENED)
    np.testing.assert_array_equal(again.solve(None, solutions, 1.5), solved)
    with pytest.raises(ValueError, match="errors can be estimated for darcy and helmholtz"):
        trained.estimate_error(None, solutions, 1.5)
