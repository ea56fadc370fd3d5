"""The infinitesimal loss: zero for exact operators, and the limit of the finite one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import grid, loss, models
from sino_jax.loss.infinitesimal import directional_derivative
from sino_jax.types import Instance
from tests import exact_solutions
from tests.exact_operators import OPERATORS

UNIT = {"extent": (1.0, 1.0)}  # the exact operators solve on the unit square
CASES = {
    "darcy": lambda points: exact_solutions.darcy_layered(points, **UNIT),
    "helmholtz": lambda points: exact_solutions.helmholtz_plane_wave(
        points, wavenumber=2.5, **UNIT
    ),
}


@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_exact_operator_loss_converges_at_the_stencils_order(name, supervised, x64):
    def value(points):
        problem = CASES[name](points)
        instance = Instance(
            problem.coefficient[None],
            problem.solution[None],
            jnp.array([problem.scale]),
            problem.solution[None] if supervised else None,
        )
        return jax.jit(
            lambda i: loss.infinitesimal_scale_consistency(OPERATORS[name], None, i, equation=name)
        )(instance)[0]

    coarse, fine = value(17), value(33)
    assert jnp.log2(coarse / fine) > 1.7
    assert fine < 0.01


def inconsistent_model(params, inputs, scale):
    """Takes its boundary values, but solves nothing: blended traces, the coefficient, the scale."""
    del params
    points = grid.coordinates(inputs.shape[1:3], centrings=("node", "node"))[None]
    x, y = points[..., 0], points[..., 1]
    x_low, x_high, y_low, y_high = (inputs[..., i] for i in (1, 2, 3, 4))
    along_x = (1 - x) * x_low + x * x_high
    along_y = (1 - y) * y_low + y * y_high
    low = (1 - x) * x_low[:, :, :1] + x * x_high[:, :, :1]
    high = (1 - x) * x_low[:, :, -1:] + x * x_high[:, :, -1:]
    bubble = x * (1 - x) * y * (1 - y)
    forcing = bubble * jnp.sin(inputs[..., 0]) * jnp.log(scale).reshape(-1, 1, 1)
    return (along_x + along_y - (1 - y) * low - y * high + 3 * forcing)[..., None]


@pytest.mark.parametrize("centre", [(0.5, 0.5), (0.0, 1.0)])
def test_it_is_the_limit_of_the_finite_loss_over_one_minus_the_ratio(centre, x64):
    points = 257
    x, y = jnp.moveaxis(grid.coordinates((points, points), centrings=("node", "node")), -1, 0)
    coefficient = (1 + x * y)[None, ..., None]
    field = jnp.cos(2 * x + y)[None, ..., None]
    instance = Instance(coefficient, field, jnp.array([4.0]))
    limit = loss.infinitesimal_scale_consistency(
        inconsistent_model, None, instance, equation="darcy", centre=jnp.array(centre)
    )

    def finite(removed):
        """Crops that lie about the centre: `removed` points fewer on each axis."""
        size = points - removed
        start = jnp.array([round(c * removed) for c in centre])
        prediction = inconsistent_model(None, inputs_of(coefficient, field), instance.scale)[0]
        local = [grid.crop(f, start, (size, size))[None] for f in (coefficient[0], prediction)]
        ratio = (size - 1) / (points - 1)
        again = inconsistent_model(None, inputs_of(*local), instance.scale * ratio)
        return loss.relative_l2(again, local[1]) / (1 - ratio)

    np.testing.assert_allclose(finite(2), limit, rtol=0.02)
    far, near = (abs(finite(removed) / limit - 1)[0] for removed in (16, 4))
    assert far > 2 * near


def inputs_of(coefficient, field):
    traces = [field[:, :1], field[:, -1:], field[:, :, :1], field[:, :, -1:]]
    return jnp.concatenate(
        [coefficient, *(jnp.broadcast_to(t, coefficient.shape) for t in traces)], axis=-1
    )


@pytest.mark.parametrize("name", ["fno", "sino_u"])
def test_it_differentiates_our_models_and_their_weights(name, x64):
    """Against central differences: along inputs and scale, and then along the weights."""
    model = models.build(
        {"name": name, "n_modes": (4, 4), "hidden_channels": 8, "n_layers": 2, "out_channels": 1}
    )
    keys = jax.random.split(jax.random.key(0), 4)
    fields = [jax.random.normal(key, (2, 12, 11, 1), jnp.float64) for key in keys[:2]]
    instance = Instance(2 + jnp.tanh(fields[0]), fields[1], jnp.array([2.0, 3.0]))
    inputs = inputs_of(instance.coefficient, instance.boundary)
    variables = jax.jit(model.init)(keys[2], inputs, instance.scale)
    variables = jax.tree.map(lambda x: x.astype(jnp.float64), variables)
    tangents = (jnp.sin(3 * inputs), jnp.array([0.5, -1.0]))
    step = 1e-5

    def shifted(tree, direction, size):
        return jax.tree.map(lambda x, d: x + size * d, tree, direction)

    apply, primals = jax.jit(model.apply), (inputs, instance.scale)
    ends = [apply(variables, *shifted(primals, tangents, h)) for h in (step, -step)]
    ours = jax.jit(
        lambda v: directional_derivative(lambda *moved: model.apply(v, *moved), primals, tangents)
    )(variables)
    np.testing.assert_allclose(ours, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-7)

    @jax.jit
    def value(v):
        return jnp.sum(
            loss.infinitesimal_scale_consistency(model.apply, v, instance, equation="darcy")
        )

    gradient = jax.jit(jax.grad(value))(variables)
    slope = sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradient))
    ends = [value(shifted(variables, gradient, h / jnp.sqrt(slope))) for h in (step, -step)]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), jnp.sqrt(slope), rtol=1e-5)
