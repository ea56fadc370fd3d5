"""The scaling laws by substitution, the residuals' order, and what the registry refuses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations, grid, subdomain
from sino_jax.types import Instance
from tests import exact_solutions

STENCIL_ORDER = 2
POINTS = (25, 49)  # (m - 1) and the crops below halve exactly


def crop_residual(problem, *, numerator, rescale=None):
    """Root mean square residual of a crop of side ratio numerator/12, rescaled by the registry.

    `numerator` may be one for each axis.
    """
    equation = problem.equation
    if rescale is not None:
        equation = dataclasses.replace(equation, rescale=rescale, side_powers=())
    shape = problem.solution.shape[:-1]
    node = equation.centrings[0] == "node"
    numerators = np.broadcast_to(numerator, len(shape)).tolist()
    size = tuple((n - node) * m // 12 + node for n, m in zip(shape, numerators, strict=True))
    free = [(n - m) // 2 for n, m in zip(shape, size, strict=True)]
    start = jnp.array(
        [0 if axis.anchored else s for axis, s in zip(equation.axes, free, strict=True)]
    )
    ratio = equation.ratio(size, shape)
    local = subdomain.restrict(
        equation,
        problem.coefficient,
        problem.solution,
        jnp.asarray(problem.scale),
        start=start,
        size=size,
    )
    options = dict(problem.residual_options)
    if "velocity" in options:  # x is rescaled and t is not: velocities are measured in λ-units
        options["velocity"] = grid.crop(options["velocity"], start, size) / ratio
    residual = equation.residual(
        local.coefficient, local.solution, local.scale, extent=problem.extent, **options
    )
    return float(jnp.sqrt(jnp.mean(jnp.abs(residual) ** 2)))


def cell_points(make, points):
    return points - 1 if make is exact_solutions.taylor_green_vorticity else points


@pytest.mark.parametrize("numerator", [12, 6, 9])
@pytest.mark.parametrize("make", exact_solutions.ALL, ids=lambda f: f.__name__)
def test_residual_of_a_rescaled_crop_converges_at_the_stencils_order(make, numerator, x64):
    coarse, fine = (crop_residual(make(cell_points(make, n)), numerator=numerator) for n in POINTS)
    order = np.log2(coarse / fine)
    assert order > STENCIL_ORDER - 0.25


@pytest.mark.parametrize(
    ("make", "numerators"),
    [
        (exact_solutions.burgers_travelling_wave, (12, 6)),
        (exact_solutions.burgers_travelling_wave, (6, 12)),
        (exact_solutions.taylor_green_velocity, (6, 6, 12)),
        (exact_solutions.taylor_green_velocity, (12, 12, 6)),
    ],
)
def test_the_law_of_a_box_of_unequal_sides_is_exact(make, numerators, x64):
    coarse, fine = (crop_residual(make(n), numerator=numerators) for n in POINTS)
    assert np.log2(coarse / fine) > STENCIL_ORDER - 0.25


@pytest.mark.parametrize("name", ["burgers", "navier_stokes_spacetime"])
def test_the_law_of_a_box_is_that_of_its_ratio_where_the_sides_are_equal(name):
    equation = equations.get(name)
    count = len(equation.axes)
    scale, amplitude = equation.rescale_box(8.0, (5,) * count, (9,) * count)
    np.testing.assert_allclose([scale, amplitude], [4.0, 1.0], rtol=1e-15)


WRONG_LAWS = {
    exact_solutions.helmholtz_plane_wave: lambda k, ratio: k / ratio,
    exact_solutions.burgers_travelling_wave: lambda reynolds, ratio: reynolds / ratio,
    exact_solutions.taylor_green_vorticity: lambda reynolds, ratio: reynolds * ratio,
    exact_solutions.taylor_green_velocity: lambda reynolds, ratio: reynolds / ratio,
}


@pytest.mark.parametrize("make", WRONG_LAWS, ids=lambda f: f.__name__)
def test_a_wrong_scaling_law_leaves_a_residual_that_does_not_converge(make, x64):
    coarse, fine = (
        crop_residual(make(cell_points(make, n)), numerator=6, rescale=WRONG_LAWS[make])
        for n in POINTS
    )
    assert fine > 0.5 * coarse
    assert fine > 10 * crop_residual(make(cell_points(make, POINTS[1])), numerator=6)


def test_helmholtz_forcing_scales_with_the_square_of_the_ratio(x64):
    """u = sin(x) sin(y), a = 1: f = (2 - k²) u, and on the crop f̂ = λ² f."""
    k, points, size = 3.0, 65, (33, 33)
    equation = equations.get("helmholtz")
    x, y = jnp.moveaxis(grid.coordinates((points, points), centrings=equation.centrings), -1, 0)
    solution = (jnp.sin(x) * jnp.sin(y))[..., None].astype(complex)
    local = subdomain.restrict(
        equation,
        jnp.ones((points, points, 1)),
        solution,
        jnp.asarray(k),
        start=jnp.array([5, 20]),
        size=size,
    )
    forcing = equation.ratio(size, (points, points)) ** 2 * (2 - k**2) * local.solution
    residual = equation.residual(local.coefficient, local.solution, local.scale, forcing=forcing)
    assert jnp.abs(residual).max() < 1e-4
    unscaled = equation.residual(
        local.coefficient, local.solution, local.scale, forcing=4 * forcing
    )
    assert jnp.abs(unscaled).max() > 0.1


@pytest.mark.parametrize(
    ("name", "ratio", "expected"),
    [
        ("darcy", 0.5, 0.5),
        ("helmholtz", 0.5, 0.5),
        ("burgers", 0.5, 0.5),
        ("navier_stokes", 0.5, 0.25),
        ("navier_stokes_spacetime", 0.5, 0.5),
    ],
)
def test_rescale_is_the_power_law_of_each_equation(name, ratio, expected):
    assert equations.get(name).rescale(jnp.float32(8.0), ratio) == 8.0 * expected


def test_rescaling_twice_is_rescaling_once_by_the_product():
    for name in equations.NAMES:
        rescale = equations.get(name).rescale
        twice = rescale(rescale(jnp.float32(10.0), 0.8), 0.5)
        np.testing.assert_allclose(twice, rescale(jnp.float32(10.0), 0.4), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "grid_shape", "inputs", "outputs"),
    [
        ("darcy", (9, 7), 5, 1),
        ("helmholtz", (9, 7), 9, 2),
        ("burgers", (6, 9), 3, 1),
        ("navier_stokes", (8, 6), 10, 1),
        ("navier_stokes_spacetime", (7, 6, 5), 10, 2),
    ],
)
def test_inputs_are_interior_data_then_traces(name, grid_shape, inputs, outputs):
    equation = equations.get(name)
    assert (equation.input_channels, equation.output_channels) == (inputs, outputs)
    rng = np.random.default_rng(0)
    coefficient = rng.normal(size=(*grid_shape, equation.coefficient_channels)).astype("f4")
    field = rng.normal(size=(*grid_shape, equation.solution_channels)).astype("f4")
    if equation.complex_valued:
        field = (field + 2j * field).astype("c8")
    result = equation.inputs(
        jnp.asarray(coefficient) if coefficient.size else None, jnp.asarray(field)
    )
    assert result.shape == (*grid_shape, inputs)
    np.testing.assert_array_equal(result[..., : equation.coefficient_channels], coefficient)
    channel = equation.coefficient_channels
    for side in equation.sides:
        face = np.take(field, [side.index], axis=side.axis)
        parts = [face.real, face.imag] if equation.complex_valued else [face]
        expected = np.stack(parts, axis=-1).reshape(*face.shape[:-1], -1)
        expected = np.broadcast_to(expected, (*grid_shape, outputs))
        np.testing.assert_array_equal(result[..., channel : channel + outputs], expected)
        channel += outputs


def test_inputs_do_not_see_the_interior_of_the_field():
    equation = equations.get("helmholtz")
    field = jnp.ones((6, 5, 1), jnp.complex64)
    changed = field.at[1:-1, 1:-1].set(7.0)
    coefficient = jnp.ones((6, 5, 1))
    np.testing.assert_array_equal(
        equation.inputs(coefficient, field), equation.inputs(coefficient, changed)
    )


def test_restriction_keeps_the_junction_of_past_and_prediction():
    equation = equations.get("navier_stokes_spacetime")
    time = jnp.arange(8.0).reshape(1, 1, 8, 1) * jnp.ones((5, 5, 1, 2))
    size, shape = (3, 4, 5), (5, 5, 8)
    start = subdomain.random_starts(equation, jax.random.key(0), 1, size, shape)[0]
    local = subdomain.restrict(equation, time - 8, time, jnp.float32(100.0), start=start, size=size)
    _, amplitude = equation.rescale_box(100.0, size, shape)
    past, future = local.coefficient[0, 0, :, 0], local.solution[0, 0, :, 0]
    np.testing.assert_allclose(past, amplitude * np.arange(-5, 0), rtol=1e-6)
    np.testing.assert_allclose(future, amplitude * np.arange(5), rtol=1e-6)


def make_instance(**changes):
    shape = (2, 6, 5, 1)
    fields = dict(
        coefficient=jnp.ones(shape), boundary=jnp.ones(shape), scale=jnp.ones(2), solution=None
    )
    return Instance(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"coefficient": None}, "instance.coefficient is needed by darcy, got None"),
        ({"boundary": None}, "darcy needs instance.boundary or instance.solution"),
        (
            {"solution": jnp.ones((2, 6, 5, 1), jnp.complex64)},
            r"instance.solution of shape \[batch, x, y, 1\] and real values, got complex64",
        ),
        (
            {"solution": jnp.ones((2, 5, 5, 1))},
            "the fields of an instance must have one grid, got .*'solution': \\(2, 5, 5\\)",
        ),
        ({"solution": jnp.ones((2, 6, 5))}, r"\[batch, x, y, 1\], got shape \(2, 6, 5\)"),
        ({"scale": jnp.ones(3)}, r"instance.scale must have shape \(2,\), got \(3,\)"),
        ({"scale": jnp.array([1.0, -2.0])}, "instance.scale must be positive"),
        ({"coefficient": jnp.ones((2, 6, 5, 1), int)}, "floating dtype, got int32"),
        (
            {"coefficient": jnp.ones((2, 6, 5, 1)).at[1, 2, 3].set(jnp.nan)},
            r"instance.coefficient must be finite, got NaN or infinity in examples \[1\]",
        ),
    ],
)
def test_validate_names_what_is_wrong(changes, message):
    equation = equations.get("darcy")
    if message is None:
        equation.validate(make_instance(**changes))
    else:
        with pytest.raises(ValueError, match=message):
            equation.validate(make_instance(**changes))


def test_an_unknown_equation_suggests_the_nearest_name():
    with pytest.raises(ValueError, match="got 'helmholz'; did you mean 'helmholtz'"):
        equations.get("helmholz")


def test_an_equation_of_your_own_needs_no_registration():
    own = dataclasses.replace(equations.get("darcy"), name="heat")
    assert equations.get(own) is own
