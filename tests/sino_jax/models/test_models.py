"""Every model: what its architecture promises, its parameters, and the errors of bad input."""

import zlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import pytest

from benchmarks import resolution_freedom
from sino_jax import models
from sino_jax.nn import backend, bands, spectral

SMALL = {
    "fno": dict(n_modes=(6, 5), hidden_channels=8, n_layers=2),
    "sino": dict(n_modes=(6, 5), hidden_channels=8, n_layers=2),
    "sino_u": dict(n_modes=(6, 5), hidden_channels=4, n_layers=2, n_levels=2),
    "uno": dict(n_modes=(6, 5), hidden_channels=4, n_levels=2),
    "unet": dict(hidden_channels=4, n_levels=2, size=16),
    "cno": dict(hidden_channels=4, n_levels=2, size=16),
    "fno_unet": dict(n_modes=(6, 5), hidden_channels=4, n_levels=2, size=16),
}
NAMES = sorted(SMALL)
CONVOLUTIONAL = ("unet", "cno", "fno_unet")


def _periodic(name):
    periodic = {"periodic": True} if name in CONVOLUTIONAL else {}
    return dict(coordinates=False, centring="cell", **periodic)


def _model(name, **fields):
    return models.build({"name": name, "out_channels": 2, **SMALL[name], **fields})


def _variables(model, inputs):
    """Random variables that depend on their path and shape alone; spares compiling `init`."""
    scale = jnp.ones(len(inputs))
    shapes = jax.eval_shape(model.init, jax.random.key(0), inputs, scale)

    def draw(path, leaf):
        generator = np.random.default_rng(zlib.crc32(jax.tree_util.keystr(path).encode()))
        deviation = leaf.shape[-2] ** -0.5 if len(leaf.shape) > 1 else 1.0
        return jnp.asarray(deviation * generator.normal(size=leaf.shape), leaf.dtype)

    return jax.tree_util.tree_map_with_path(draw, shapes)


def _inputs(grid=(16, 13), channels=3, batch=2):
    return jax.random.normal(jax.random.key(0), (batch, *grid, channels))


SCALE = jnp.array([2.0, 3.0])


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_gradient(name):
    model, inputs = _model(name), _inputs()
    variables = _variables(model, inputs)
    target = jax.random.normal(jax.random.key(2), (*inputs.shape[:-1], 2))

    @jax.jit
    @jax.grad
    def gradient(variables):
        return jnp.mean((jax.jit(model.apply)(variables, inputs, SCALE) - target) ** 2)

    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient(variables)):
        assert jnp.linalg.norm(leaf) > 0, path


@pytest.mark.parametrize("name", NAMES)
def test_one_channel_is_wide_enough(name):
    model, inputs = _model(name, hidden_channels=1), _inputs()
    shapes = jax.eval_shape(model.init, jax.random.key(0), inputs, SCALE)
    assert all(0 not in leaf.shape for leaf in jax.tree.leaves(shapes))


@pytest.mark.parametrize("name", NAMES)
def test_homogeneous_in_the_boundary_data(name):
    """The magnitude normaliser: multiplying the boundary data multiplies the output, down to 0."""
    model, inputs = _model(name, boundary_channels=2), _inputs()
    variables = _variables(model, inputs)
    apply = jax.jit(model.apply)
    outputs = apply(variables, inputs, SCALE)
    for factor in (7.0, 1e-30):
        scaled = apply(variables, inputs.at[..., 1:].multiply(factor), SCALE)
        np.testing.assert_allclose(scaled / factor, outputs, rtol=1e-4, atol=1e-4)
    nothing = apply(variables, inputs.at[..., 1:].set(0.0), SCALE)
    np.testing.assert_array_equal(nothing, jnp.zeros_like(outputs))


@pytest.mark.parametrize("name", ["fno", "sino_u", "fno_unet"])
def test_plain_forms_of_other_backends_give_the_same_gradient(name, monkeypatch):
    model, inputs = _model(name), _inputs()
    variables = _variables(model, inputs)

    def gradient():
        return jax.jit(jax.grad(lambda v: jnp.sum(model.apply(v, inputs, SCALE) ** 2)))(variables)

    with_cpu_forms = gradient()
    monkeypatch.setattr(backend, "forms_for_cpu", lambda: False)
    # A bias before a normalisation has no gradient but round-off.
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(with_cpu_forms))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-5 * largest),
        with_cpu_forms,
        gradient(),
    )


def _shift_error(model, shift=(4, -4), grid=(16, 16)):
    inputs = _inputs(grid)
    variables = _variables(model, inputs)
    apply = jax.jit(model.apply)
    outputs = apply(variables, inputs, SCALE)
    shifted = apply(variables, jnp.roll(inputs, shift, (1, 2)), SCALE)
    difference = shifted - jnp.roll(outputs, shift, (1, 2))
    return float(jnp.linalg.norm(difference) / jnp.linalg.norm(outputs))


# A nonlinearity acts on real and imaginary parts of Fourier coefficients, which a shift mixes:
# the kernels of SINO and SINO-U are no convolutions.
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"sino", "sino_u"}))
def test_equivariant_to_periodic_shifts(name):
    assert _shift_error(_model(name, **_periodic(name))) < 1e-5


@pytest.mark.parametrize("name", ["sino", "sino_u"])
def test_nonlinear_kernels_are_not_equivariant(name):
    assert _shift_error(_model(name, **_periodic(name))) > 1e-3


def test_coordinates_and_padding_break_equivariance():
    assert _shift_error(_model("fno", **_periodic("fno") | {"coordinates": True})) > 1e-2
    assert _shift_error(_model("fno", padding=0.25, **_periodic("fno"))) > 1e-2


def _count(model):
    shapes = jax.eval_shape(model.init, jax.random.key(1), _inputs(), SCALE)
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def _mlp_count(inputs, hidden, outputs):
    return inputs * hidden + hidden + hidden * outputs + outputs


def _pointwise_count(width, layers):
    """Lifting from 3 channels and 2 coordinates, pointwise blocks, projection to 2 channels."""
    block = (width**2 + width) + _mlp_count(width, width // 2, width) + width
    lifting, projection = _mlp_count(5, 2 * width, width), _mlp_count(width, 2 * width, 2)
    return lifting + layers * block + projection


def test_parameter_count_of_fno():
    kernel = 2 * np.prod(bands.band_shape((6, 5))) * 8**2
    assert _count(_model("fno")) == _pointwise_count(8, 2) + 2 * kernel


def test_parameter_count_of_sino_does_not_depend_on_modes():
    features = _model("sino").n_features
    modulation = (features + 2 * features) * 8 + 8 * 8 + 8
    kernel = 2 * (2 * 8**2) + 8  # two complex matrices and the gain of the normalisation
    expected = _pointwise_count(8, 2) + 2 * (kernel + modulation)
    assert _count(_model("sino")) == _count(_model("sino", n_modes=(3, 8))) == expected


def test_levels_of_sino_u_have_equally_many_weights():
    """C_l² M_l² is the same for all l in two dimensions; here 2 M_l² counts as M_l (2 M_l - 1)."""
    model = _model("sino_u", n_modes=(64, 64), hidden_channels=8, n_levels=4)
    shapes = jax.eval_shape(model.init, jax.random.key(1), _inputs((128, 128)), SCALE)["params"]
    for level in (1, 2, 3):
        width, modes = 8 * 2**level, 64 // 2**level
        kernels = [shapes[f"kernel_0_{way}_{level}"] for way in ("down", "up")]
        size = sum(leaf.size for leaf in jax.tree.leaves(kernels))
        assert size == 2 * width**2 * modes * (2 * modes - 1)
        assert abs(size / (4 * 8**2 * 64**2) - 1) < 1 / modes


class _KernelOfSino(models.MODELS["sino"], kw_only=True):
    @nn.compact
    def core(self, spectrum):
        return self.mix(spectrum, self.hidden_channels, self.n_modes, name="kernel_0")


def test_without_embeddings_sino_is_the_plain_shared_kernel():
    """Both flags off: the parameters and the results of K v_hat = R_2 cGeLU(norm(R_1 v_hat))."""
    flags = dict(scale_informed=False, frequency_embedding=False)
    model, inputs = _model("sino", n_layers=1, **flags), _inputs((16, 16))
    variables = _variables(model, inputs)
    assert not any("modulation" in name for name in variables["params"])
    spectrum = jax.random.normal(jax.random.key(2), (6, 9, 2, 2, 8))
    weights = variables["params"]
    inner, outer = (
        spectral.SharedWeights(**weights[f"kernel_0_{part}"]) for part in ("inner", "outer")
    )
    hidden = spectral.mix_shared(spectrum, inner)
    hidden = spectral.group_norm(hidden, weights["kernel_0_norm"]["gain"])
    expected = spectral.mix_shared(jax.nn.gelu(hidden), outer)
    fields = {**SMALL["sino"], **flags}
    kernel = _KernelOfSino(out_channels=2, **fields)
    ours = kernel.apply(variables, spectrum, method=_KernelOfSino.core)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    apply = jax.jit(model.apply)
    other_scale = apply(variables, inputs, 10 * SCALE)
    np.testing.assert_array_equal(other_scale, apply(variables, inputs, SCALE))


@pytest.mark.parametrize("name", ["fno", "sino", "sino_u"])
@pytest.mark.parametrize("form", ["mlp", "powers"])
def test_each_embedding_flag_changes_one_thing(name, form):
    """Only the scale flag lets the scale in; the frequency flag changes the outputs by itself."""
    inputs = _inputs((16, 16))

    def outputs(**flags):
        """At two scales."""
        off = dict(scale_informed=False, frequency_embedding=False)
        model = _model(name, scale_embedding=form, n_layers=1, **off | flags)
        # Parameters that two of these models share are equal.
        variables, apply = _variables(model, inputs), jax.jit(model.apply)
        return [apply(variables, inputs, scale) for scale in (SCALE, 5 * SCALE)]

    plain, *again = outputs()
    np.testing.assert_array_equal(plain, again[0])
    with_frequency, *again = outputs(frequency_embedding=True)
    np.testing.assert_array_equal(with_frequency, again[0])
    with_scale, at_other_scale = outputs(scale_informed=True)
    for one, other in ((with_frequency, plain), (with_scale, plain), (at_other_scale, with_scale)):
        assert jnp.linalg.norm(one - other) > 1e-3 * jnp.linalg.norm(plain)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("fno", {"n_layers": 2}),
        ("uno", {"n_levels": 2}),
        ("sino", {"n_layers": 2, "truncated": False}),
        ("sino_u", {"n_layers": 2, "n_levels": 2}),
    ],
)
def test_outputs_approach_one_another_as_the_grid_is_refined(name, fields):
    sizes = dict(n_modes=(8, 8), hidden_channels=8, out_channels=1, coordinates=False)
    grids = ((20, 24), (64, 64))
    fields = dict(name=name, **sizes, **fields)
    coarse, fine = resolution_freedom.differences(fields, grids, finest=128)
    assert fine < 1e-5
    assert fine < coarse


def test_biases_in_an_untruncated_kernel_network_spoil_the_limit():
    biased = resolution_freedom.VARIANTS["SINO, untruncated, with biases"] | dict(
        hidden_channels=8, n_layers=1
    )
    assert resolution_freedom.differences(biased, [(64, 64)], finest=128)[0] > 1e-2


def test_cno_gives_band_limited_fields_the_same_outputs_on_any_grid():
    """Fields that its own grid of 16 points resolves pass the series interpolation unchanged."""
    x = np.arange(32) / 32
    fine = np.cos(2 * np.pi * (x[:, None] - 2 * x[None]))[None, :, :, None]
    fine = jnp.asarray(np.repeat(fine, 3, axis=-1), jnp.float32)
    model = _model("cno", **_periodic("cno"))
    variables = _variables(model, fine)
    coarse = jax.jit(model.apply)(variables, fine[:, ::2, ::2], SCALE[:1])
    common = jax.jit(model.apply)(variables, fine, SCALE[:1])[:, ::2, ::2]
    np.testing.assert_allclose(common, coarse, rtol=1e-4)


@pytest.mark.parametrize(("n_modes", "grid"), [((5,), (16,)), ((3, 3, 3), (6, 7, 8))])
def test_dimension_is_the_length_of_n_modes(n_modes, grid):
    """One kernel in every dimension: a field constant along the extra axes stays so."""
    model = _model("fno", n_modes=n_modes, **_periodic("fno"))
    inputs = _inputs(grid)
    inputs = jnp.broadcast_to(
        inputs[(slice(None), slice(None), *(slice(0, 1),) * (len(grid) - 1))], inputs.shape
    )
    variables = _variables(model, inputs)
    outputs = jax.jit(model.apply)(variables, inputs, SCALE)
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


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_modes", (0, 4), "fno.n_modes must be at least 1, got 0"),
        ("n_modes", 4, "one whole number for each axis, got 4"),
        ("n_modes", (4.0, 4), "fno.n_modes must be a whole number, got 4.0"),
        ("hidden_channels", -8, "fno.hidden_channels must be at least 1, got -8"),
        ("hidden_channels", "8", "fno.hidden_channels must be a whole number, got '8'"),
        ("n_layers", True, "fno.n_layers must be a whole number, got True"),
        ("padding", -0.1, "fno.padding must be finite, at least 0, at most 4, got -0.1"),
        ("padding", float("nan"), "fno.padding must be finite"),
        ("log_scale", "no", "fno.log_scale must be True or False, got 'no'"),
        ("normalisation", "batch", "fno.normalisation must be one of"),
        ("base_shift", -1.0, "base_shift must be finite, at least 0"),
    ],
)
def test_values_of_fields_are_checked_before_anything_is_built(field, value, message):
    config = {"name": "fno", "n_modes": (4, 4), "hidden_channels": 8, "out_channels": 1}
    with pytest.raises(ValueError, match=message):
        models.build({**config, field: value})
    assert models.build({**config, "n_layers": np.int64(2)}).n_layers == 2
