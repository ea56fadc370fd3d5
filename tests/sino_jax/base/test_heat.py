"""The heat base: closed forms, exact integration in time, order two in space."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, equations, subdomain
from sino_jax.models import build

EXTENT = (0.7, 0.5)
heat = jax.jit(base.heat, static_argnames="extent")


def axes(frames, points):
    t, x = np.linspace(0, EXTENT[0], frames), np.linspace(0, EXTENT[1], points)
    return t[:, None, None], x[None, :, None]


def test_linear_profiles_that_move_with_the_sides_are_exact(x64):
    t, x = axes(5, 9)
    steady = jnp.asarray(2 - 3 * x + 0 * t)
    np.testing.assert_allclose(heat(steady, 40.0, extent=EXTENT), steady, atol=1e-13)


def test_a_sine_decays_at_the_rate_of_the_difference_quotient(x64):
    t, x = axes(6, 11)
    spacing, wave = EXTENT[1] / 10, 2 * np.pi / EXTENT[1]
    rate = (2 - 2 * np.cos(wave * spacing)) / spacing**2 / 30.0
    expected = np.exp(-rate * t) * np.sin(wave * x)
    field = jnp.asarray(np.where(t == 0, np.sin(wave * x), 0.0))
    np.testing.assert_allclose(heat(field, 30.0, extent=EXTENT), expected, atol=1e-13)


def test_moving_boundary_values_converge_at_order_two(x64):
    """u = exp(-ν p² t) cos(p x + 1) has values at the sides that are not linear in time."""
    reynolds, p = 5.0, 4.0
    errors = []
    for points in (17, 33):
        t, x = axes(points, points)
        exact = np.exp(-(p**2) * t / reynolds) * np.cos(p * x + 1)
        errors.append(np.abs(heat(jnp.asarray(exact), reynolds, extent=EXTENT) - exact).max())
    assert np.log2(errors[0] / errors[1]) > 1.8


def test_the_interior_of_the_field_is_not_read():
    field = jnp.asarray(np.random.default_rng(0).normal(size=(6, 7, 1)), jnp.float32)
    changed = field.at[1:, 1:-1].set(jnp.nan)
    np.testing.assert_array_equal(heat(field, 9.0), heat(changed, 9.0))


@pytest.mark.parametrize("size", [(5, 9), (9, 5), (5, 5)])
def test_a_rescaled_sub_domain_has_the_same_extent(x64, size):
    """The heat equation on a crop, in its own units: also where time and space shrink apart."""
    burgers = equations.get("burgers")
    t, x = axes(9, 9)
    wave = 2 * np.pi / EXTENT[1]
    field = jnp.asarray(np.where(t == 0, 1e-3 * np.sin(wave * x), 0.0))
    solution = heat(field, 30.0, extent=EXTENT)
    local = subdomain.restrict(
        burgers, None, solution, jnp.asarray(30.0), start=jnp.array([0, 2 if size[1] < 9 else 0]),
        size=size,
    )  # fmt: skip
    again = base.heat(local.boundary, local.scale, extent=EXTENT)
    # Boundary values between frames are interpolated: equal up to that.
    assert np.abs(again - local.solution).max() < 0.05 * np.abs(local.solution).max()


def test_initial_and_boundary_values_are_exact_for_any_weights(x64):
    burgers = equations.get("burgers")
    model = build(
        {"name": "fno", "n_modes": (3, 3), "hidden_channels": 4, "n_layers": 1, "base": "heat",
         "base_extent": EXTENT, **burgers.model_fields()}
    )  # fmt: skip
    rng = np.random.default_rng(1)
    field = jnp.asarray(rng.normal(size=(2, 7, 8, 1)))
    inputs, scale = jax.vmap(lambda g: burgers.inputs(None, g))(field), jnp.array([10.0, 50.0])
    shapes = jax.eval_shape(model.init, jax.random.key(0), inputs, scale)
    variables = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), shapes)
    solution = model.apply(variables, inputs, scale)
    np.testing.assert_allclose(solution[:, 0, 1:-1], field[:, 0, 1:-1], atol=1e-12)
    np.testing.assert_allclose(solution[:, 1:, 0], field[:, 1:, 0], atol=1e-12)
    np.testing.assert_allclose(solution[:, 1:, -1], field[:, 1:, -1], atol=1e-12)


@pytest.mark.parametrize("extent", [None, (1.0,), (1.0, -1.0), ("a", 1.0)])
def test_an_extent_that_is_none_is_refused(extent):
    with pytest.raises(ValueError, match="base_extent must be"):
        build({"name": "fno", "n_modes": (3, 3), "hidden_channels": 4, "out_channels": 1,
               "base": "heat", "base_extent": extent})  # fmt: skip
