"""A right-hand side as interior data: f̂ = λ²f on sub-domains, super-domains and in the limit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations, grid, loss, subdomain, superdomain
from sino_jax.types import Instance

EQUATION = equations.get("darcy_forced")


def exact(points=33):
    """a = 1 + x, u = sin(2x) cos(y): f = -∇·(a∇u) = -2 cos(2x) cos(y) + 5 (1 + x) u."""
    x, y = jnp.moveaxis(grid.coordinates((points, points), centrings=EQUATION.centrings), -1, 0)
    u = jnp.sin(2 * x) * jnp.cos(y)
    f = -2 * jnp.cos(2 * x) * jnp.cos(y) + 5 * (1 + x) * u
    return jnp.stack([1 + x, f], axis=-1), u[..., None]


def test_the_residual_converges_and_its_law_holds(x64):
    sizes = []
    for points in (17, 33):
        coefficient, solution = exact(points)
        sizes.append(float(jnp.abs(EQUATION.residual(coefficient, solution)).max()))
    assert np.log2(sizes[0] / sizes[1]) > 1.75
    found = equations.check(EQUATION, solution=solution, coefficient=coefficient, scale=1.0)
    assert found.holds, str(found)
    unscaled = dataclasses.replace(EQUATION, coefficient_powers=())
    assert not equations.check(
        unscaled, solution=solution, coefficient=coefficient, scale=1.0
    ).holds


def test_restriction_scales_the_forcing_alone(x64):
    coefficient, solution = exact()
    start, size = jnp.array([3, 8]), (17, 17)
    local = subdomain.restrict(
        EQUATION, coefficient, solution, jnp.asarray(2.0), start=start, size=size
    )
    cropped = grid.crop(coefficient, start, size)
    np.testing.assert_array_equal(local.coefficient[..., 0], cropped[..., 0])
    np.testing.assert_allclose(local.coefficient[..., 1], cropped[..., 1] / 4, rtol=1e-14)
    residual = EQUATION.residual(local.coefficient, local.solution)
    assert jnp.abs(residual).max() < 0.01 * jnp.abs(local.coefficient[..., 1]).max()


def test_a_super_domain_restricted_is_the_data_again(x64):
    coefficient, solution = exact()
    instance = Instance(coefficient[None], None, jnp.full(1, 2.0), solution[None])
    larger = superdomain.reflected(instance, equation=EQUATION, rate=2.0)
    assert larger.coefficient.shape == (1, 65, 65, 2)
    back = subdomain.restrict(
        EQUATION,
        larger.coefficient[0],
        larger.boundary[0],
        larger.scale[0],
        start=jnp.zeros(2, int),
        size=(33, 33),
    )
    np.testing.assert_allclose(back.coefficient, coefficient, rtol=1e-13)
    np.testing.assert_allclose(back.scale, 2.0, rtol=1e-13)


def exact_operator(params, inputs, scale):
    """Solves Poisson's equation on the unit interval in x for f constant, data alike in y.

    u = g₀ (1 - x) + g₁ x + f x (1 - x) / 2 is scale-consistent if and only if f̂ = λ²f.
    """
    x = grid.coordinates(inputs.shape[1:-1], centrings=EQUATION.centrings)[..., 0]
    x = x[None].astype(inputs.dtype)
    forcing, low, high = inputs[..., 1], inputs[..., 2], inputs[..., 3]
    return (low * (1 - x) + high * x + forcing * x * (1 - x) / 2)[..., None]


@pytest.mark.parametrize("powers", [(0, 2), ()])
def test_losses_vanish_for_an_exact_operator_only_with_the_law(powers, x64):
    equation = dataclasses.replace(EQUATION, coefficient_powers=powers)
    x = jnp.broadcast_to(jnp.linspace(0.0, 1.0, 33)[:, None], (33, 33))
    coefficient = jnp.stack([jnp.ones_like(x), jnp.full_like(x, 3.0)], axis=-1)[None]
    solution = (1 + 2 * x + 1.5 * x * (1 - x))[None, ..., None]
    instance = Instance(coefficient, None, jnp.ones(1), solution)
    crop = loss.scale_consistency(
        exact_operator, None, instance, equation=equation, size=17, key=jax.random.key(0)
    )
    limit = loss.infinitesimal_scale_consistency(exact_operator, None, instance, equation=equation)
    for value in (crop, limit):
        assert (value < 1e-10) if powers else (value > 1e-2)


def test_powers_must_be_as_many_as_channels():
    with pytest.raises(ValueError, match="one entry for each of 2 channels"):
        dataclasses.replace(EQUATION, coefficient_powers=(2,))
