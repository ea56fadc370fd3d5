"""Every model: what its architecture promises, its parameters, and the errors of bad input."""

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import pytest

from sino_jax import models, spectral

SMALL = {
    "fno": dict(n_modes=(6, 5), hidden_channels=8, n_layers=2),
}
PERIODIC = dict(coordinates=False, centring="cell")
NAMES = sorted(SMALL)


def _model(name, **fields):
    return models.build({"name": name, "out_channels": 2, **SMALL[name], **fields})


def _inputs(grid=(16, 13), channels=3, batch=2):
    return jax.random.normal(jax.random.key(0), (batch, *grid, channels))


SCALE = jnp.array([2.0, 3.0])


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_gradient(name):
    model, inputs = _model(name), _inputs()
    variables = model.init(jax.random.key(1), inputs, SCALE)
    target = jax.random.normal(jax.random.key(2), (*inputs.shape[:-1], 2))

    @jax.jit
    @jax.grad
    def gradient(variables):
        return jnp.mean((model.apply(variables, inputs, SCALE) - target) ** 2)

    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient(variables)):
        assert jnp.linalg.norm(leaf) > 0, path


@pytest.mark.parametrize("name", NAMES)
def test_homogeneous_in_the_boundary_data(name):
    """The magnitude normaliser: multiplying the boundary data multiplies the output."""
    model, inputs = _model(name, boundary_channels=2), _inputs()
    variables = model.init(jax.random.key(1), inputs, SCALE)
    scaled = inputs.at[..., 1:].multiply(7.0)
    apply = jax.jit(model.apply)
    expected = 7 * apply(variables, inputs, SCALE)
    np.testing.assert_allclose(apply(variables, scaled, SCALE), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("coordinates", [False, True])
def test_fno_is_equivariant_to_periodic_shifts_unless_given_coordinates(coordinates):
    model = _model("fno", **PERIODIC | {"coordinates": coordinates})
    inputs = _inputs()
    variables = model.init(jax.random.key(1), inputs, SCALE)
    outputs = model.apply(variables, inputs, SCALE)
    shifted = model.apply(variables, jnp.roll(inputs, (5, -3), (1, 2)), SCALE)
    error = jnp.max(jnp.abs(shifted - jnp.roll(outputs, (5, -3), (1, 2))))
    assert (error < 1e-5) if not coordinates else (error > 1e-2)


def test_parameter_count_of_fno():
    model = _model("fno")
    variables = model.init(jax.random.key(1), _inputs(), SCALE)
    width, modes, layers = 8, spectral.band_shape((6, 5)), 2

    def mlp(inputs, hidden, outputs):
        return inputs * hidden + hidden + hidden * outputs + outputs

    kernel = 2 * np.prod(modes) * width**2
    block = kernel + (width**2 + width) + mlp(width, width // 2, width) + width
    expected = mlp(3 + 2, 2 * width, width) + layers * block + mlp(width, 2 * width, 2)
    assert sum(leaf.size for leaf in jax.tree.leaves(variables)) == expected


@pytest.mark.parametrize(("n_modes", "grid"), [((5,), (16,)), ((3, 3, 3), (6, 7, 8))])
def test_dimension_is_the_length_of_n_modes(n_modes, grid):
    """One kernel in every dimension: a field constant along the extra axes stays so."""
    model = _model("fno", n_modes=n_modes, **PERIODIC)
    inputs = _inputs(grid)
    inputs = jnp.broadcast_to(
        inputs[(slice(None), slice(None), *(slice(0, 1),) * (len(grid) - 1))], inputs.shape
    )
    variables = model.init(jax.random.key(1), inputs, SCALE)
    outputs = model.apply(variables, inputs, SCALE)
    assert outputs.shape == (2, *grid, 2)
    spread = jnp.max(jnp.ptp(outputs.reshape(2, grid[0], -1, 2), axis=2))
    assert spread < 1e-5


def test_config_fields_are_checked_and_the_nearest_is_named():
    config = ml_collections.ConfigDict(dict(name="fno", out_channels=1, **SMALL["fno"]))
    assert models.build(config).n_modes == (6, 5)
    with pytest.raises(ValueError, match="has no field 'hidden_chanels'; did you mean 'hidden_ch"):
        models.build(dict(name="fno", hidden_chanels=8))
    with pytest.raises(ValueError, match="unknown model name 'fn'; did you mean 'fno'"):
        models.build(dict(name="fn"))
    with pytest.raises(ValueError, match=r"needs the fields \['out_channels'\]"):
        models.build(dict(name="fno", **SMALL["fno"]))


@pytest.mark.parametrize(
    ("inputs", "scale", "message"),
    [
        (jnp.ones((2, 16, 16, 4)), SCALE, "in_channels = 3 channels, got 4"),
        (jnp.ones((2, 16, 3)), SCALE, "2 grid axes"),
        (jnp.ones((2, 16, 16, 3), int), SCALE, "real floating point, got int32"),
        (jnp.ones((2, 16, 16, 3), complex), SCALE, "real floating point, got complex64"),
        (jnp.ones((2, 2, 16, 3)), SCALE, "at least 4 points"),
        (jnp.ones((2, 16, 16, 3)), jnp.ones(3), r"shape \(2,\)"),
        (jnp.ones((2, 16, 16, 3)), jnp.array([1.0, 0.0]), "scale must be positive"),
    ],
)
def test_bad_inputs_are_named(inputs, scale, message):
    with pytest.raises(ValueError, match=message):
        _model("fno", in_channels=3).init(jax.random.key(0), inputs, scale)


def test_boundary_channels_must_exist():
    with pytest.raises(ValueError, match="boundary_channels must be between 0 and the 3"):
        _model("fno", boundary_channels=4).init(jax.random.key(0), _inputs(), SCALE)
