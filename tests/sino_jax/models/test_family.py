"""What models share: start, kernel and modulation of the Fourier ones, grid of the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import models
from sino_jax.models import unet
from sino_jax.nn import bands, layers
from tests.sino_jax.models.test_models import SCALE, _count, _inputs, _model


def test_cells_and_nodes_of_linear_fields_agree():
    x, y = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 6), indexing="ij")
    field = jnp.asarray(3 * x - 2 * y + 1, jnp.float32)[None, :, :, None]
    cells = unet.nodes_to_cells(field)
    assert cells.shape == (1, 8, 5, 1)
    np.testing.assert_allclose(unet.cells_to_nodes(cells), field, atol=1e-6)


@pytest.mark.parametrize("name", ["unet", "cno"])
def test_convolutional_models_work_at_the_spacing_of_their_input(name):
    """Size 0 has the weights of any other size, and on that size's own cells the same results."""
    own, fixed = (
        models.build(dict(name=name, hidden_channels=4, n_levels=2, size=size, out_channels=1,
                   centring="cell"))
        for size in (0, 16)
    )  # fmt: skip
    inputs = jax.random.normal(jax.random.key(0), (2, 16, 16, 3))
    weights = fixed.init(jax.random.key(1), inputs, jnp.ones(2))
    expected = fixed.apply(weights, inputs, jnp.ones(2))
    np.testing.assert_allclose(own.apply(weights, inputs, jnp.ones(2)), expected, rtol=1e-5)
    assert own.apply(weights, inputs[:, :11, :7], jnp.ones(2)).shape == (2, 11, 7, 1)


@pytest.mark.parametrize(("name", "bound"), [("small", 0.2), ("unit", 1.0)])
def test_the_start_is_as_large_as_its_name_says(name, bound):
    model = _model("fno", initialisation=name)
    weights = model.init(jax.random.key(0), _inputs((16, 16)), SCALE)["params"]
    kernel = weights["kernel_0"]["real"]
    np.testing.assert_allclose(jnp.std(kernel), bound * (2 * 8) ** -0.5, rtol=0.05)
    skip = weights["layer_0"]["skip"]
    assert (jnp.abs(skip["kernel"]).max() <= 8**-0.5) == (name == "small")
    assert bool(skip["bias"].any()) == (name == "small")
    with pytest.raises(ValueError, match="initialisation must be one of"):
        _model("fno", initialisation="tiny").init(jax.random.key(0), _inputs((16, 16)), SCALE)


def test_every_point_of_the_family_is_a_model():
    """Kernel and flags are independent; a shared kernel has no weights for single modes."""
    counts = {}
    for kernel in ("tensor", "shared"):
        for scale in (False, True):
            for frequency in (False, True):
                model = _model(
                    "fno", kernel=kernel, scale_informed=scale, frequency_embedding=frequency
                )
                counts[kernel, scale, frequency] = _count(model)
    for kernel in ("tensor", "shared"):
        plain = counts[kernel, False, False]
        assert plain < counts[kernel, True, False] < counts[kernel, False, True]
        assert counts[kernel, False, True] < counts[kernel, True, True]
    extra = {counts["tensor", s, f] - counts["shared", s, f] for s in (0, 1) for f in (0, 1)}
    assert len(extra) == 1


@pytest.mark.parametrize("form", ["mlp", "octaves", "inverse_powers", "powers"])
def test_every_form_of_the_modulation_depends_on_the_scale(form):
    model = _model("fno", scale_informed=True, frequency_embedding=True, scale_embedding=form)
    inputs = _inputs((16, 16))
    weights = model.init(jax.random.key(0), inputs, SCALE)
    near, far = (model.apply(weights, inputs, factor * SCALE) for factor in (1.0, 4.0))
    assert jnp.linalg.norm(far - near) > 1e-4 * jnp.linalg.norm(near)


def test_a_complex_factor_tells_left_from_right():
    """With a real factor of |ξ| a kernel of equal matrices commutes with reflections."""
    modes = (1, 5)
    spectrum = jax.random.normal(jax.random.key(0), (*bands.band_shape(modes), 2, 1, 3))
    for signed in (False, True):
        modulation = layers.Modulation(True, True, complex_factor=signed)
        weights = modulation.init(jax.random.key(1), spectrum, jnp.ones(1))
        once = modulation.apply(weights, spectrum, jnp.ones(1))
        mirrored = modulation.apply(weights, spectrum[:, ::-1], jnp.ones(1))[:, ::-1]
        assert np.allclose(once, mirrored, rtol=1e-5) != signed
