"""The gradient of a loss piece by piece: that of the whole, with less memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations, loss
from sino_jax.loss.terms import Term
from sino_jax.models import network
from sino_jax.train import gradient
from sino_jax.types import Instance

FOURIER = {"n_modes": (3, 3), "hidden_channels": 6, "n_layers": 1}
BOTH = {"sub_sizes": (9,), "super_rates": (2.0,), "super_start": 0.0}
CASES = {
    "fno, both, symmetries": (
        "darcy",
        {"name": "fno", **FOURIER},
        {**BOTH, "super_count": 1, "symmetries": ("reflection",)},
    ),
    "sino on a base, few super-domains": (
        "darcy",
        {"name": "sino", "base": "harmonic", **FOURIER},
        {
            "super_rates": (2.0,),
            "super_start": 0.0,
            "super_points": 2 * 33**2,
            "super_positions": 2,
            "detach": "prediction",
        },
    ),
    "sino_u, complex": (
        "helmholtz",
        {"name": "sino_u", "n_levels": 2, **FOURIER},
        {**BOTH, "sub_sizes": (11,), "sub_count": 3, "super_count": 1, "super_crop": 0.5},
    ),
}


def make_batch(equation, examples=6, grid=(17, 17)):
    rng = np.random.default_rng(0)

    def field(channels, complex_valued):
        values = rng.normal(size=(2, examples, *grid, channels))
        return values[0] + 1j * values[1] if complex_valued else values[0]

    coefficients = equation.coefficient_channels
    return Instance(
        coefficient=np.exp(field(coefficients, False)) if coefficients else None,
        boundary=None,
        scale=np.linspace(2.0, 3.0, examples),
        solution=field(equation.solution_channels, equation.complex_valued),
    )


def make_problem(name, model_config, options, **sizes):
    """The loss of a model, and the arguments of its gradient."""
    equation = equations.get(name)
    batch = jax.tree.map(jnp.asarray, make_batch(equation, **sizes))
    model, apply_fn = network.build({**equation.model_fields(), **model_config}, equation, None)
    params = network.init(model, equation, batch.grid, jax.random.key(0))
    params = jax.tree.map(lambda x: x.astype(batch.scale.dtype), params)
    weight = jnp.linspace(0.5, 1.0, len(batch.scale)).at[-3:].set(0)
    loss_fn = gradient.SumOfTerms(
        lambda batch, key, progress: loss.training_terms(
            apply_fn, batch, equation=equation, key=key, progress=progress, **options
        )
    )
    return loss_fn, (params, (batch, weight), jax.random.key(1), jnp.asarray(0.5))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pieces_add_up_to_the_gradient_and_the_values_of_the_whole(case, x64):
    loss_fn, arguments = make_problem(*case)
    expected, values = jax.jit(gradient.at_once(loss_fn))(*arguments)
    largest = max(jnp.abs(leaf).max() for leaf in jax.tree.leaves(expected))
    # Three examples of the data at once; sub-domains all or two by two, super-domains one by one.
    piecewise = jax.jit(gradient.piecewise(loss_fn, 3 * 17**2))
    found, sums = piecewise(*arguments)
    assert sums.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_allclose(sums[name], value, rtol=1e-12)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * largest), found, expected
    )


def test_memory_is_that_of_one_term_and_of_one_piece_of_it():
    width, layers, examples, points = 16, 8, 8, 500

    def errors(weights, fields):
        for weight in weights:
            fields = jnp.tanh(fields @ weight)
        return jnp.sum(fields**2, axis=(1, 2))

    def terms(batch, key, progress):
        del key, progress
        inputs = [number * batch.solution for number in range(1, 5)]
        return [Term("error", 1.0, 1.0, points, lambda x=x: x, errors) for x in inputs]

    def temporary_bytes(gradient_fn):
        weights = [jnp.ones((width, width))] * layers
        fields = jnp.ones((examples, points, width))
        batch = Instance(None, None, jnp.ones(examples), fields)
        arguments = (weights, (batch, jnp.ones(examples)), jax.random.key(0), jnp.zeros(()))
        return jax.jit(gradient_fn).lower(*arguments).compile().memory_analysis().temp_size_in_bytes

    loss_fn = gradient.SumOfTerms(terms)
    four_terms = temporary_bytes(gradient.at_once(loss_fn))
    one_term = temporary_bytes(gradient.piecewise(loss_fn, examples * points))
    one_example = temporary_bytes(gradient.piecewise(loss_fn, points))
    assert one_term < four_terms / 2
    assert one_example < one_term / 2


def test_the_fewest_equal_pieces_that_fit():
    assert gradient.number_of_pieces(8, points_each=100, points=800) == 1
    assert gradient.number_of_pieces(8, points_each=100, points=799) == 2
    assert gradient.number_of_pieces(8, points_each=100, points=399) == 4
    assert gradient.number_of_pieces(10, points_each=100, points=400) == 5
    assert gradient.number_of_pieces(7, points_each=100, points=600) == 7
    assert gradient.number_of_pieces(8, points_each=100, points=1) == 8


def test_losses_that_cannot_be_cut_are_refused():
    with pytest.raises(ValueError, match="points_at_once must be 0 for a loss .* got 50"):
        gradient.piecewise(lambda params, batch, key, progress: None, 50)
    loss_fn, arguments = make_problem(
        "darcy", {"name": "fno", **FOURIER}, {**BOTH, "sub_sizes": (5, 9)}
    )
    with pytest.raises(ValueError, match="points_at_once needs one .* several for the sub_domain"):
        gradient.piecewise(loss_fn, 50)(*arguments)
