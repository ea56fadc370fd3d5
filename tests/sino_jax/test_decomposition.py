"""Refinement by patches: Schwarz theory with exact operators, partitions of unity, bad input."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, equations, partition
from sino_jax.decomposition import refine, refine_history
from sino_jax.partition import cover, weights
from tests.exact_operators import darcy_operator

merge = jax.jit(partition.merge, static_argnames="layout")
DARCY, HELMHOLTZ = equations.get("darcy"), equations.get("helmholtz")


@jax.jit
def harmonic_operator(params, inputs, scale):
    """Exact where the coefficient is constant, on patches with square cells."""
    extent = base.square_cells(inputs.shape[1:-1])
    return jax.vmap(lambda x: base.harmonic(DARCY.split(x)[1], extent=extent))(inputs)


@jax.jit
def helmholtz_operator(params, inputs, scale):
    """The same for Helmholtz: wrong unless the patch gets k̂ = λk."""
    extent = base.square_cells(inputs.shape[1:-1])

    def solve(sample, k):
        coefficient, field = HELMHOLTZ.split(sample)
        return base.helmholtz(field, k, jnp.mean(coefficient), extent=extent)

    return jax.vmap(solve)(inputs, scale)


def constant_darcy(shape, *, batch=1):
    """Constant coefficient, random boundary data and the discrete solution."""
    g = jnp.asarray(np.random.default_rng(0).normal(size=(batch, *shape, 1)))
    solve = functools.partial(base.harmonic, extent=base.square_cells(shape))
    solution = jax.jit(jax.vmap(solve))(g)
    return jnp.ones((batch, *shape, 1)), g, jnp.ones(batch), solution


def perturbed(solution):
    """The solution with noise in its interior."""
    noise = np.random.default_rng(1).normal(size=solution.shape)
    noise[:, [0, -1]] = noise[:, :, [0, -1]] = 0
    return solution + jnp.asarray(noise)


def norm(field):
    return float(np.linalg.norm(np.asarray(field)))


@pytest.mark.parametrize(
    ("shape", "patches", "overlap"),
    [
        ((17,), (2,), 2),
        ((30, 23), (3, 4), 5),
        ((19, 64), (1, 7), (2, 3)),
        ((9, 9, 11), (2, 1, 3), 4),
    ],
)
@pytest.mark.parametrize(("blend", "ramp"), [("linear", None), ("smooth", None), ("linear", 2)])
def test_weights_are_a_partition_of_unity(x64, shape, patches, overlap, blend, ramp):
    layout = cover(shape, patches, overlap, blend=blend, ramp=ramp)
    ones = jnp.ones((2, *patches, *layout.size, 1))
    np.testing.assert_allclose(merge(ones, layout), np.ones((2, *shape, 1)), atol=1e-14)
    overlaps = (overlap,) * len(shape) if isinstance(overlap, int) else overlap
    for points, size, starts, least in zip(
        shape, layout.size, layout.starts, overlaps, strict=True
    ):
        assert starts[0] == 0
        assert starts[-1] + size == points
        assert all(a + size - b >= least for a, b in itertools.pairwise(starts))


def test_weights_vanish_on_inner_edges_only():
    of_axis = weights(cover((40,), (3,), 6), 0)
    assert of_axis[0, 0] == of_axis[2, -1] == 1
    assert of_axis[0, -1] == of_axis[1, 0] == of_axis[1, -1] == of_axis[2, 0] == 0


def test_merge_undoes_the_cutting(x64):
    shape, patches = (21, 18), (3, 2)
    layout = cover(shape, patches, 4)
    field = np.random.default_rng(0).normal(size=(2, *shape, 3))
    cut = np.stack([
        np.stack([
            field[:, i : i + layout.size[0], j : j + layout.size[1]] for j in layout.starts[1]
        ], axis=1) for i in layout.starts[0]
    ], axis=1)  # fmt: skip
    np.testing.assert_allclose(merge(jnp.asarray(cut), layout), field, atol=1e-14)


def test_the_solution_of_a_random_medium_is_a_fixed_point(x64):
    rng = np.random.default_rng(0)
    coefficient = jnp.asarray(rng.choice([2.0, 12.0], size=(2, 33, 33, 1)))
    g = jnp.asarray(rng.normal(size=(2, 33, 33, 1)))
    operator = jax.jit(darcy_operator)
    # The operator's own coarse prediction is exact: the start and every later estimate are.
    refined = refine_history(
        operator, None, coefficient, g, jnp.ones(2),
        equation="darcy", patches=2, overlap=7, iterations=1,
    )  # fmt: skip
    assert float(refined.change.max()) < 1e-9


@pytest.mark.parametrize("patches", [(2, 2), (3, 2)])
def test_the_wave_number_is_rescaled_for_the_patch(x64, patches):
    shape, k = (33, 33), jnp.array([9.0])
    rng = np.random.default_rng(0)
    g = jnp.asarray(rng.normal(size=(1, *shape, 1)) + 1j * rng.normal(size=(1, *shape, 1)))
    options = dict(equation="helmholtz", patches=patches, overlap=5, iterations=1)
    coefficient = jnp.full((1, *shape, 1), 1.1)
    refined = refine_history(helmholtz_operator, None, coefficient, g, k, **options)
    assert float(refined.change.max()) < 1e-9

    def unscaled(params, inputs, scale):
        return helmholtz_operator(None, inputs, jnp.full_like(scale, 9.0))

    assert float(refine_history(unscaled, None, coefficient, g, k, **options).change.max()) > 1e-2


@pytest.mark.parametrize("overlap", [5, 13])
def test_converges_at_the_rate_of_schwarz_theory(x64, overlap):
    """Two patches [0, b] and [1 - b, 1] on the unit square: the slowest error sin(πy) is multiplied
    by sinh(π (1 - b)) / sinh(π b) in each iteration (Lions' parallel method, symmetric patches)."""
    points = 41
    coefficient, g, scale, solution = constant_darcy((points, points))
    size = cover((points,), (2,), overlap).size[0]
    b = (size - 1) / (points - 1)
    theory = np.sinh(np.pi * (1 - b)) / np.sinh(np.pi * b)

    estimate, errors = perturbed(solution), []
    for _ in range(12):
        refined = refine_history(
            harmonic_operator, None, coefficient, g, scale, start=estimate,
            equation="darcy", patches=(2, 1), overlap=overlap, iterations=1,
        )  # fmt: skip
        estimate = refined.solution
        errors.append(norm(estimate - solution))
    # The first iterations damp the other modes.
    tail = [e for e in errors[3:] if e > 1e-11]
    rate = np.exp(np.polyfit(np.arange(len(tail)), np.log(tail), 1)[0])
    assert rate == pytest.approx(theory, rel=0.01)


@pytest.mark.parametrize(("patches", "start"), [(2, "zeros"), ((3, 2), "zeros"), ((4, 3), "field")])
def test_many_patches_converge_to_the_solution_on_a_rectangle(x64, patches, start):
    coefficient, g, scale, solution = constant_darcy((37, 26), batch=2)
    refined = refine_history(
        harmonic_operator, None, coefficient, g, scale, equation="darcy", patches=patches,
        overlap=8, iterations=200, tolerance=1e-11, blend="smooth",
        start=perturbed(solution) if start == "field" else start,
    )  # fmt: skip
    iterations = len(refined.change)
    assert 5 < iterations < 200
    assert refined.residual.shape == (iterations + 1, 2)
    np.testing.assert_allclose(refined.solution, solution, atol=1e-9)


def test_memory_accelerates_to_the_same_limit(x64):
    """Anderson's iterates on an affine map are those of GMRES: far fewer than Schwarz's own."""
    coefficient, g, scale, solution = constant_darcy((37, 26), batch=2)
    counts = {}
    for memory in (0, 12):
        refined = refine_history(
            harmonic_operator, None, coefficient, g, scale, equation="darcy", patches=(3, 2),
            overlap=5, iterations=120, tolerance=1e-7, start="zeros", memory=memory,
        )  # fmt: skip
        counts[memory] = len(refined.change)
        np.testing.assert_allclose(refined.solution, solution, atol=1e-5)
    assert counts[12] < 0.5 * counts[0]
    batch_alone = refine_history(
        harmonic_operator, None, coefficient[1:], g[1:], scale[1:], equation="darcy",
        patches=(3, 2), overlap=5, iterations=6, start="zeros", memory=12,
    )  # fmt: skip
    together = refine_history(
        harmonic_operator, None, coefficient, g, scale, equation="darcy",
        patches=(3, 2), overlap=5, iterations=6, start="zeros", memory=12,
    )  # fmt: skip
    np.testing.assert_allclose(batch_alone.solution[0], together.solution[1], atol=1e-9)


def test_inner_edges_are_where_patches_end_inside_the_domain():
    layout = cover((9, 5), (2, 1), 3)
    found = partition.inner_edges(layout)
    assert layout.starts == ((0, 3), (0,))
    expected = np.zeros((9, 5), bool)
    expected[[3, 5]] = True
    np.testing.assert_array_equal(found, expected)


def test_residual_criterion_stops_when_the_residual_has_fallen(x64):
    # Bilinear data: its harmonic extension has no residual in any second-order stencil.
    x, y = np.meshgrid(np.linspace(0, 1, 33), np.linspace(0, 1, 33), indexing="ij")
    g = jnp.asarray(x + 2 * x * y)[None, ..., None]
    refined = refine_history(
        harmonic_operator, None, jnp.ones_like(g), g, jnp.ones(1), equation="darcy", patches=2,
        overlap=9, iterations=50, start="zeros", criterion="residual", tolerance=1e-3,
    )  # fmt: skip
    relative = np.asarray(refined.residual[:, 0] / refined.residual[0, 0])
    assert relative[-1] <= 1e-3 < relative[-2]
    assert len(refined.change) < 50


def test_history_is_that_of_single_steps(x64):
    coefficient, g, scale, solution = constant_darcy((41, 41))
    options = dict(equation="darcy", patches=2, overlap=5)
    arguments = (harmonic_operator, None, coefficient, g, scale)
    whole = refine_history(*arguments, iterations=3, start=perturbed(solution), **options)
    estimate = perturbed(solution)
    for i in range(3):
        step = refine_history(*arguments, iterations=1, start=estimate, **options)
        expected = norm(step.solution - estimate) / norm(step.solution)
        assert float(whole.change[i, 0]) == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(step.residual[:, 0], whole.residual[i : i + 2, 0], rtol=1e-10)
        estimate = step.solution
    np.testing.assert_allclose(whole.solution, estimate, atol=1e-13)
    alone = refine(*arguments, iterations=3, start=perturbed(solution), **options)
    np.testing.assert_array_equal(alone, whole.solution)
    assert refine_history(*arguments, iterations=0, **options).change.shape == (0, 1)


def test_batched_and_looped_patches_agree_and_jit_changes_nothing(x64):
    coefficient, g, scale, _ = constant_darcy((24, 31), batch=3)
    options = dict(equation="darcy", patches=(2, 3), overlap=6, iterations=2, start="zeros")
    together = refine_history(harmonic_operator, None, coefficient, g, scale, **options)
    for at_once in (1, 4):
        looped = refine_history(
            harmonic_operator, None, coefficient, g, scale, patches_per_call=at_once, **options
        )
        np.testing.assert_allclose(looped.solution, together.solution, atol=1e-13)
    compiled = jax.jit(functools.partial(refine_history, harmonic_operator, None, **options))
    np.testing.assert_allclose(
        compiled(coefficient, g, scale).solution, together.solution, atol=1e-13
    )


@pytest.mark.parametrize(
    ("name", "shape", "patches", "size"),
    [
        ("burgers", (17, 33), 2, (11, 19)),
        ("navier_stokes_spacetime", (17, 17, 6), 2, (11, 11, 6)),
    ],
)
def test_every_boundary_value_equation_in_one_call_with_its_rescaled_parameter(
    name, shape, patches, size
):
    equation = equations.get(name)
    calls = []

    def first_side(params, inputs, scale):
        calls.append((inputs.shape, np.asarray(scale)))
        return inputs[..., -equation.boundary_channels :][..., : equation.output_channels]

    g = jnp.full((2, *shape, equation.solution_channels), 3.0)
    channels = equation.coefficient_channels
    coefficient = jnp.zeros((2, *shape, channels)) if channels else None
    refined = refine_history(
        first_side, None, coefficient, g, jnp.array([100.0, 200.0]),
        equation=name, patches=patches, overlap=5, iterations=1, start=g,
    )  # fmt: skip
    assert [inputs for inputs, _ in calls] == [(8, *size, equation.input_channels)]
    factor, _ = equation.rescale_box(1.0, size, shape)
    expected = np.repeat([100.0, 200.0], 4) * factor
    np.testing.assert_allclose(calls[0][1], expected, rtol=1e-6)
    np.testing.assert_allclose(refined.solution, g, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(overlap=20), "overlap 20 is too large"),
        (dict(overlap=1), "overlap must be at least 2"),
        (dict(patches=0), "patches must be at least 1"),
        (dict(patches=(2, 2, 2)), "one entry for each axis"),
        (dict(start="ones"), "start must be one of"),
        (dict(start=jnp.zeros((1, 5, 5, 1))), "start must have the shape"),
        (dict(blend="cubic"), "blend must be one of"),
        (dict(ramp=0), "ramp must be at least 1"),
        (dict(criterion="error"), "criterion must be one of"),
        (dict(iterations=-1), "iterations must be at least 0"),
        (dict(memory=-1), "memory must be at least 0, got -1"),
        (dict(patches_per_call=0), "patches_per_call must be at least 1"),
        (dict(equation="navier_stokes"), "no boundary data"),
        (dict(equation="helmholz"), "did you mean 'helmholtz'"),
    ],
)
def test_bad_options(options, message):
    field = jnp.ones((1, 17, 17, 1))
    valid = dict(equation="darcy", patches=2, overlap=5, iterations=1)
    with pytest.raises(ValueError, match=message):
        refine_history(harmonic_operator, None, field, field, jnp.ones(1), **{**valid, **options})


def test_bad_fields():
    field, options = jnp.ones((1, 17, 17, 1)), dict(patches=2, overlap=5, iterations=1)
    not_a_number = field.at[0, 3, 3].set(jnp.nan)
    with pytest.raises(ValueError, match="coefficient must be finite"):
        refine_history(
            harmonic_operator, None, not_a_number, field, jnp.ones(1), equation="darcy", **options
        )
    velocity = jnp.ones((1, 9, 9, 9, 2))
    with pytest.raises(ValueError, match="anchored time axis"):
        refine_history(
            harmonic_operator, None, velocity, velocity, jnp.ones(1),
            equation="navier_stokes_spacetime", **{**options, "patches": (2, 2, 2)},
        )  # fmt: skip
