"""Models on top of base solutions: exact boundary and constant coefficients for any weights."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, channels, equations, krylov
from sino_jax.boundary import ring
from sino_jax.loss import relative_l2
from sino_jax.models import build, network
from sino_jax.models.with_base import WithBase, boundary_field
from sino_jax.types import Instance

CASES = [("darcy", "coons", 0.0), ("darcy", "harmonic", 0.0), ("helmholtz", "helmholtz", 0.05)]
SHAPE = (13, 10)


def problem(name, *, constant=False, batch=2):
    """Coefficient and rough boundary data of a batch of problems."""
    equation = equations.get(name)
    rng = np.random.default_rng(1)
    coefficient = (
        np.full((batch, *SHAPE, 1), 1.7) if constant else rng.uniform(1, 3, (batch, *SHAPE, 1))
    )
    g = rng.normal(size=(batch, *SHAPE, 1))
    if equation.complex_valued:
        g = g + 1j * rng.normal(size=g.shape)
    coefficient, g = jnp.asarray(coefficient), jnp.asarray(g)
    return coefficient, g, jax.vmap(equation.inputs)(coefficient, g), jnp.linspace(4.0, 7.0, batch)


def operator(name, base_name, shift=0.0, **options):
    equation = equations.get(name)
    config = dict(
        name="fno", n_modes=(4, 4), hidden_channels=8, n_layers=1, base=base_name,
        in_channels=equation.input_channels, out_channels=equation.output_channels,
        boundary_channels=equation.boundary_channels,
    )  # fmt: skip
    return build({**config, **({"base_shift": shift} if shift else {}), **options})


@functools.cache
def compiled(name, base_name, shift=0.0):
    """One program for all tests of an operator."""
    return jax.jit(operator(name, base_name, shift).apply)


def random_variables(model, inputs, scale):
    """Weights of any size, not only an initialiser's; without compiling the initialisation."""
    rng = np.random.default_rng(2)
    shapes = jax.eval_shape(model.init, jax.random.key(0), inputs, scale)
    return jax.tree.map(lambda leaf: jnp.asarray(0.5 * rng.normal(size=leaf.shape)), shapes)


@pytest.mark.parametrize(("name", "base_name", "shift"), CASES)
def test_trace_is_the_boundary_data_for_any_weights(x64, name, base_name, shift):
    _, g, inputs, scale = problem(name)
    variables = random_variables(operator(name, base_name, shift), inputs, scale)
    output = compiled(name, base_name, shift)(variables, inputs, scale)
    expected = channels.to_channels(g)
    for i in range(len(g)):
        np.testing.assert_allclose(ring(output[i]), ring(expected[i]), atol=1e-13)
    # The inside is the network's: it is not the base alone.
    without = jax.tree.map(jnp.zeros_like, variables)
    base_alone = compiled(name, base_name, shift)(without, inputs, scale)
    assert jnp.abs(output - base_alone).max() > 1e-3


@pytest.mark.parametrize(("name", "base_name"), [case[:2] for case in CASES[1:]])
def test_constant_coefficients_are_exact_for_any_weights(x64, name, base_name):
    coefficient, g, inputs, scale = problem(name, constant=True)
    variables = random_variables(operator(name, base_name), inputs, scale)
    output = compiled(name, base_name)(variables, inputs, scale)
    extent = base.square_cells(SHAPE)
    if name == "darcy":
        solve = jax.vmap(lambda g, k, a: base.harmonic(g, extent=extent))
    else:
        solve = jax.vmap(lambda g, k, a: base.helmholtz(g, k, a, extent=extent))
    expected = jax.jit(solve)(g, scale, coefficient[:, 0, 0, 0])
    np.testing.assert_allclose(output, channels.to_channels(expected), atol=1e-11)


def test_the_correction_is_homogeneous_in_the_boundary_data(x64):
    coefficient, g, inputs, scale = problem("darcy")
    variables = random_variables(operator("darcy", "harmonic"), inputs, scale)
    model = compiled("darcy", "harmonic")
    output = model(variables, inputs, scale)
    scaled = jax.vmap(equations.get("darcy").inputs)(coefficient, 1000 * g)
    np.testing.assert_allclose(model(variables, scaled, scale), 1000 * output, rtol=1e-9)


@pytest.mark.parametrize(
    ("base_name", "field"), [("harmonic", "base_centred"), ("none", "centred")]
)
def test_a_constant_added_to_the_boundary_values_is_added_to_the_output(x64, base_name, field):
    coefficient, g, inputs, scale = problem("darcy")
    raised = jax.vmap(equations.get("darcy").inputs)(coefficient, g + 50.0)
    changes = {}
    for centred in (True, False):
        model = operator("darcy", base_name, **{field: centred})
        variables = random_variables(model, inputs, scale)
        outputs = [jax.jit(model.apply)(variables, given, scale) for given in (inputs, raised)]
        changes[centred] = float(jnp.abs(outputs[1] - outputs[0] - 50.0).max())
    assert changes[True] < 1e-11
    assert changes[False] > 1e-1


def test_centring_is_refused_where_constants_are_no_solutions():
    _, _, inputs, scale = problem("darcy")
    with pytest.raises(ValueError, match='centred is an option of base "harmonic" only'):
        operator("darcy", "coons", base_centred=True).init(jax.random.key(0), inputs, scale)
    with pytest.raises(ValueError, match="centred must be False for a model with a base"):
        operator("darcy", "harmonic", centred=True)
    fields = {"name": "fno", "n_modes": (4, 4), "hidden_channels": 8, "centred": True}
    with pytest.raises(ValueError, match="centred must be False for helmholtz"):
        network.build(fields, equations.get("helmholtz"), None)


@pytest.mark.parametrize("constant", [False, True])
def test_gradients_are_finite_and_reach_every_parameter_unless_the_base_is_exact(x64, constant):
    _, _, inputs, scale = problem("darcy", constant=constant)
    model = operator("darcy", "harmonic")
    variables = random_variables(model, inputs, scale)

    @jax.jit
    @functools.partial(jax.grad, argnums=(0, 1))
    def gradient(variables, inputs):
        return jnp.sum(model.apply(variables, inputs, scale) ** 2)

    of_variables, of_inputs = gradient(variables, inputs)
    assert jnp.isfinite(of_inputs).all()
    for path, leaf in jax.tree.leaves_with_path(of_variables):
        largest = float(jnp.abs(leaf).max())
        assert largest < 1e-12 if constant else largest > 1e-8, jax.tree_util.keystr(path)


@pytest.mark.parametrize(("name", "base_name"), [case[:2] for case in CASES[1:]])
def test_iterations_bring_the_base_to_the_solution_and_the_gate_closes(x64, name, base_name):
    """With random weights: the output's error is what the base left out, and goes with it."""
    coefficient, g, inputs, _ = problem(name)
    scale = jnp.array([1.0, 3.0])
    extent = base.square_cells(SHAPE)
    instance = Instance(coefficient, g, scale)
    exact = krylov.solve(
        instance, equation=equations.get(name), tolerance=1e-12, extent=extent
    ).solution
    exact = channels.to_channels(exact)
    errors = {}
    for iterations in (0, 2, 6):
        model = operator(name, base_name, base_iterations=iterations, base_gate="residual")
        variables = random_variables(model, inputs, scale)
        output = jax.jit(model.apply)(variables, inputs, scale)
        for i in range(len(g)):
            rings = ring(output[i]), ring(channels.to_channels(g)[i])
            np.testing.assert_allclose(*rings, atol=1e-13)
        of_base = jax.jit(model.apply)(jax.tree.map(jnp.zeros_like, variables), inputs, scale)
        errors[iterations] = jnp.stack([relative_l2(u, exact) for u in (output, of_base)])
        assert (jnp.abs(output - of_base).max(axis=(1, 2, 3)) > 0).all()
    for before, after in ((0, 2), (2, 6)):
        assert (errors[after] < 0.4 * errors[before]).all()


def test_gradients_pass_through_iterations_and_gate(x64):
    _, _, inputs, scale = problem("helmholtz")
    model = operator("helmholtz", "helmholtz", 0.05, base_iterations=1, base_gate="residual")
    variables = random_variables(model, inputs, scale)

    @jax.jit
    def loss(inputs, step):
        moved = inputs + step * jnp.cos(3 * inputs)
        return jnp.sum(model.apply(variables, moved, scale) ** 2)

    slope = jax.grad(loss, argnums=1)(inputs, 0.0)
    difference = (loss(inputs, 1e-5) - loss(inputs, -1e-5)) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-5)


def test_boundary_field_inverts_the_extension_of_traces(x64):
    _, g, inputs, _ = problem("helmholtz")
    expected = jax.vmap(ring)(channels.to_channels(g))
    np.testing.assert_array_equal(boundary_field(inputs[..., 1:]), expected)


@pytest.mark.parametrize(
    ("fields", "channels", "message"),
    [
        (dict(base="spline", out_channels=1), 5, "base must be one of"),
        (dict(base="harmonic", out_channels=1), 4, "a coefficient before the 4"),
        (dict(base="harmonic", out_channels=1, shift=0.1), 5, "shift is an option"),
        (dict(base="helmholtz", out_channels=1), 5, "pairs"),
        (dict(base="harmonic", out_channels=1, gate="wide"), 5, "gate must be one of"),
        (dict(base="coons", out_channels=1, iterations=2), 5, "knows its equation"),
        (dict(base="harmonic", out_channels=1, iterations=-1), 5, "must not be negative"),
    ],
)
def test_bad_input(fields, channels, message):
    inputs = jnp.ones((1, 8, 8, channels))
    with pytest.raises(ValueError, match=message):
        WithBase(model=operator("darcy", "none"), **fields).init(
            jax.random.key(0), inputs, jnp.ones(1)
        )
