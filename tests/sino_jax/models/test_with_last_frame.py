"""A model that predicts the change from the last frame."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations
from sino_jax.models import build, network

FIELDS = {"name": "fno", "n_modes": (4, 4), "hidden_channels": 6, "n_layers": 1}


def test_the_newest_frame_is_added_to_what_the_model_gives():
    equation = equations.get("navier_stokes")
    frames = jnp.asarray(np.random.default_rng(0).normal(size=(2, 12, 9, 10)), jnp.float32)
    scale = jnp.asarray([500.0, 1000.0])
    fields = {**equation.model_fields(), **FIELDS}
    plain, based = build(fields), build({**fields, "base": "last_frame"})
    variables = based.init(jax.random.key(0), frames, scale)
    inside = {"params": variables["params"]["model"]}
    change = plain.apply(inside, frames, scale)
    assert float(jnp.abs(change).max()) > 1e-3
    np.testing.assert_allclose(
        based.apply(variables, frames, scale), frames[..., -1:] + change, rtol=1e-6
    )


@pytest.mark.parametrize("name", ["darcy", "burgers", "navier_stokes_spacetime"])
def test_inputs_that_end_with_traces_are_refused(name):
    equation = equations.get(name)
    fields = {**FIELDS, "n_modes": (2,) * len(equation.axes), "base": "last_frame"}
    with pytest.raises(ValueError, match=f"base must not be 'last_frame' for {name}"):
        network.build(fields, equation, None)
