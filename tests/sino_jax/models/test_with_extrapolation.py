"""A model that corrects the linear continuation of past frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations, problem, subdomain
from sino_jax.models import build, network
from sino_jax.types import Instance

EQUATION = equations.get("navier_stokes_spacetime")
FIELDS = {"name": "fno", "n_modes": (2, 2, 2), "hidden_channels": 4, "n_layers": 1}


def based_model():
    return build({**EQUATION.model_fields(), **FIELDS, "base": "extrapolation"})


def random_fields(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def test_flows_that_change_at_a_constant_rate_need_no_weights():
    start, rate = random_fields(2, 1, 7, 6, 1, 2)
    field = start + rate * jnp.linspace(0, 1, 10).reshape(1, 1, 1, 10, 1)
    past, future = field[..., :5, :], field[..., 5:, :]
    inputs = problem.inputs(EQUATION, Instance(past, None, jnp.ones(1), future))
    model = based_model()
    variables = model.init(jax.random.key(0), inputs, jnp.ones(1))
    without = jax.tree.map(jnp.zeros_like, variables)
    np.testing.assert_allclose(model.apply(without, inputs, jnp.ones(1)), future, atol=1e-5)
    rest = build({**EQUATION.model_fields(), **FIELDS}).apply(
        {"params": variables["params"]["model"]}, inputs, jnp.ones(1)
    )
    assert float(jnp.abs(rest).max()) > 1e-3
    np.testing.assert_allclose(
        model.apply(variables, inputs, jnp.ones(1)), future + rest, atol=1e-5
    )


@pytest.mark.parametrize("size", [(5, 5, 4), (9, 9, 4), (5, 5, 7)])
def test_the_base_commutes_with_restriction(size):
    """Also on boxes that are shorter in time than in space, whose velocities are in other units."""
    past, future = random_fields(2, 9, 9, 7, 2)
    start = jnp.array([2 if size[0] == 5 else 0, 3 if size[1] == 5 else 0, 0])

    def base_of(instance):
        batch = jax.tree.map(lambda leaf: leaf[None], instance)
        inputs = problem.inputs(EQUATION, batch)
        model, scale = based_model(), jnp.reshape(instance.scale, 1)
        variables = model.init(jax.random.key(0), inputs, scale)
        without = jax.tree.map(jnp.zeros_like, variables)
        return model.apply(without, inputs, scale)[0]

    whole = Instance(past, None, jnp.asarray(1000.0), future)
    local = subdomain.restrict(EQUATION, past, future, whole.scale, start=start, size=size)
    of_whole = subdomain.restrict(
        EQUATION, past, base_of(whole), whole.scale, start=start, size=size
    )
    np.testing.assert_allclose(
        base_of(local._replace(boundary=None)), of_whole.solution, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("name", ["darcy", "burgers", "navier_stokes"])
def test_equations_without_frames_on_the_last_axis_are_refused(name):
    equation = equations.get(name)
    fields = {**FIELDS, "n_modes": (2,) * len(equation.axes), "base": "extrapolation"}
    with pytest.raises(ValueError, match=f"base must not be 'extrapolation' for {name}"):
        network.build(fields, equation, None)
