"""Symmetries: transforming a problem transforms its solution, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import augment, equations, problem
from sino_jax.types import Instance
from solvers import burgers, navier_stokes
from tests.exact_operators import OPERATORS

ALL_ELEMENTS = augment.elements(("rotation", "reflection"))


def random_instance(name, shape, *, batch=2, seed=0):
    equation = equations.get(name)
    rng = np.random.default_rng(seed)

    def field(channels):
        return jnp.asarray(rng.normal(size=(batch, *shape, channels)))

    coefficient = field(equation.coefficient_channels) if equation.coefficient_channels else None
    solution = field(equation.solution_channels)
    if equation.complex_valued:
        solution = jax.lax.complex(solution, field(equation.solution_channels))
    return Instance(coefficient, solution, jnp.full(batch, 3.0), solution)


@pytest.mark.parametrize("name", OPERATORS)
def test_elliptic_solutions_follow_the_geometry(name, x64):
    equation = equations.get(name)
    original = random_instance(name, (9, 9), batch=1)
    original = original._replace(coefficient=jnp.exp(original.coefficient), solution=None)
    images = [augment.apply_symmetry(original, e, equation=equation) for e in ALL_ELEMENTS]
    batch = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *images)
    solved = jax.jit(functools.partial(OPERATORS[name], None))(
        problem.inputs(equation, batch), batch.scale
    )
    for (turns, reflect), solution in zip(ALL_ELEMENTS, solved, strict=True):
        expected = augment.transform(
            solved[0], turns=turns, reflect=reflect, axes=(0, 1), kind="scalar"
        )
        np.testing.assert_allclose(solution, expected, atol=1e-9)


def test_burgers_follows_a_reflection_with_a_change_of_sign(x64):
    """On a periodic grid the mirror image of point j is point -j: roll by one after the flip."""
    points, times = 64, jnp.linspace(0, 0.3, 4)
    x = jnp.linspace(0, 1, points, endpoint=False)
    initial = jnp.sin(2 * jnp.pi * x) + 0.5 * jnp.cos(4 * jnp.pi * x)

    def mirror(u):
        field = augment.transform(
            u[..., None], turns=0, reflect=True, axes=(u.ndim - 1,), kind="vector"
        )
        return jnp.roll(field[..., 0], 1, axis=-1)

    def solve(u):
        return burgers.solve(u, 0.05, times)

    np.testing.assert_allclose(solve(mirror(initial)), mirror(solve(initial)), atol=1e-9)


@pytest.mark.parametrize("element", [(1, False), (0, True), (3, True)])
def test_vorticity_follows_the_geometry_as_a_pseudoscalar(element, x64):
    points, times = 32, jnp.array([0.0, 0.5])
    x = jnp.linspace(0, 2 * jnp.pi, points, endpoint=False)
    initial = (
        jnp.cos(x)[:, None] * jnp.sin(2 * x)[None, :]
        + jnp.sin(x + 1)[:, None] * jnp.cos(x)[None, :]
    )
    turns, reflect = element

    def act(frames):
        field = jnp.moveaxis(frames, 0, -1)
        field = augment.transform(
            field, turns=turns, reflect=reflect, axes=(0, 1), kind="pseudoscalar"
        )
        return jnp.moveaxis(field, -1, 0)

    def solve(vorticity):
        return navier_stokes.solve(vorticity, 40.0, times, side=2 * np.pi)

    moved = solve(act(initial[None])[0])
    np.testing.assert_allclose(moved, act(solve(initial)), atol=1e-9)


@pytest.mark.parametrize("element", ALL_ELEMENTS)
def test_curl_of_a_transformed_velocity_is_the_transformed_vorticity(element, x64):
    """Ties the vector's and the pseudo-scalar's rule together, on a periodic grid."""
    velocity = jnp.asarray(np.random.default_rng(0).normal(size=(12, 12, 2)))

    def curl(v):
        dv_dx = jnp.roll(v[..., 1], -1, 0) - jnp.roll(v[..., 1], 1, 0)
        du_dy = jnp.roll(v[..., 0], -1, 1) - jnp.roll(v[..., 0], 1, 1)
        return (dv_dx - du_dy)[..., None]

    turns, reflect = element
    move = functools.partial(augment.transform, turns=turns, reflect=reflect, axes=(0, 1))
    np.testing.assert_allclose(
        curl(move(velocity, kind="vector")), move(curl(velocity), kind="pseudoscalar"), atol=1e-12
    )


def test_boundary_channels_are_permuted_with_the_geometry():
    equation = equations.get("darcy")
    instance = random_instance("darcy", (7, 7), batch=1)
    inputs = problem.inputs(equation, instance)[0]
    turned = problem.inputs(
        equation, augment.apply_symmetry(instance, (1, False), equation="darcy")
    )[0]
    # A quarter turn carries the side x low to y low, y low to x high, x high to y high.
    for before, after in [(1, 3), (3, 2), (2, 4), (4, 1)]:
        np.testing.assert_array_equal(turned[..., after], jnp.rot90(inputs[..., before]))


def test_the_group_closes_and_random_elements_are_drawn_per_example():
    instance = random_instance("navier_stokes_spacetime", (5, 5, 3), batch=64)
    images = jax.jit(
        lambda key, i: augment.random_symmetry(key, i, equation="navier_stokes_spacetime")
    )(jax.random.key(0), instance)
    seen = set()
    for index in range(64):
        example = jax.tree.map(lambda leaf, i=index: leaf[i : i + 1], instance)
        matches = [
            element
            for element in ALL_ELEMENTS
            if jnp.array_equal(
                augment.apply_symmetry(
                    example, element, equation="navier_stokes_spacetime"
                ).solution[0],
                images.solution[index],
            )
        ]
        assert len(matches) == 1
        seen.update(matches)
    assert seen == set(ALL_ELEMENTS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: augment.random_symmetry(
                jax.random.key(0),
                random_instance("burgers", (5, 6)),
                equation="burgers",
                symmetries=("rotation",),
            ),
            r"symmetries of burgers are \['reflection'\], got \['rotation'\]",
        ),
        (
            lambda: augment.apply_symmetry(
                random_instance("burgers", (5, 6)), (1, False), equation="burgers"
            ),
            "burgers has no rotation symmetry, got 1 quarter turns",
        ),
        (
            lambda: augment.apply_symmetry(
                random_instance("darcy", (5, 6)), (1, False), equation="darcy"
            ),
            "a quarter turn needs a square grid",
        ),
    ],
)
def test_symmetries_that_do_not_hold_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
