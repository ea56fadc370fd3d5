"""The losses with an exact operator, with wrong ones, and what they differentiate."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import boundary, channels, equations, grid, loss, problem, subdomain
from sino_jax.types import Instance
from tests import exact_solutions
from tests.exact_operators import OPERATORS

SHAPE = (13, 17)  # crops with equal side ratios exist: 12 and 16 are multiples of 4
SIZES = (4, 7)
WAVENUMBER = 7.0


@functools.cache
def exact_instance(name):
    """Random coefficients with jumps, random boundary values, and the solver's solutions."""
    rng, batch = np.random.default_rng(0), 2
    coefficient = jnp.asarray(rng.choice([2.0, 12.0], size=(batch, *SHAPE, 1)))
    field = rng.normal(size=(batch, *SHAPE, 1))
    if name == "helmholtz":
        field = field + 1j * rng.normal(size=field.shape)
    instance = Instance(coefficient, jnp.asarray(field), jnp.full(batch, WAVENUMBER))
    inputs = problem.inputs(equations.get(name), instance)
    solution = jax.jit(functools.partial(OPERATORS[name], None))(inputs, instance.scale)
    if name == "helmholtz":
        solution = channels.from_channels(solution)
    return instance._replace(solution=solution)


def over_positions(name, instance, *, size, equation=None, positions=6):
    """Largest loss over random positions, compiled."""
    losses = jax.jit(
        lambda keys: jax.lax.map(
            lambda key: loss.scale_consistency(
                OPERATORS[name], None, instance, equation=equation or name, size=size, key=key
            ),
            keys,
        )
    )(jax.random.split(jax.random.key(1), positions))
    assert losses.shape == (positions, instance.scale.shape[0])
    return losses


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_exact_operator_is_consistent_at_every_size(name, supervised, size, x64):
    instance = exact_instance(name)
    instance = instance if supervised else instance._replace(solution=None)
    assert over_positions(name, instance, size=size).max() < 1e-8


@pytest.mark.parametrize("supervised", [True, False])
def test_a_wrong_scaling_law_is_seen_by_the_loss(supervised, x64):
    instance = exact_instance("helmholtz")
    instance = instance if supervised else instance._replace(solution=None)
    wrong = dataclasses.replace(
        equations.get("helmholtz"), rescale=lambda scale, ratio: scale / ratio
    )
    assert over_positions("helmholtz", instance, size=7, equation=wrong).min() > 0.05


TIME_DEPENDENT = (
    exact_solutions.burgers_travelling_wave,
    exact_solutions.taylor_green_vorticity,
    exact_solutions.taylor_green_velocity,
)


@pytest.mark.parametrize("make", TIME_DEPENDENT, ids=lambda f: f.__name__)
def test_the_loss_hands_the_model_a_problem_that_the_crop_solves(make, x64):
    """The residual of target and inputs on the sub-domain vanishes at the stencils' order."""

    def residual(points):
        problem = make(points)
        equation, shape = problem.equation, problem.solution.shape[:-1]
        node = equation.centrings[0] == "node"
        size, key = (points - node) // 2 + node, jax.random.key(3)
        seen = {}

        def record_inputs(params, inputs, scale):
            seen.update(inputs=inputs[0], scale=scale[0])
            return jnp.zeros((*inputs.shape[:-1], problem.solution.shape[-1]))

        def record_target(prediction, target):
            seen.update(target=target[0])
            return jnp.zeros(1)

        loss.scale_consistency(
            record_inputs,
            None,
            Instance(
                jax.tree.map(lambda leaf: leaf[None], problem.coefficient),
                None,
                jnp.array([problem.scale]),
                problem.solution[None],
            ),
            equation=equation,
            size=size,
            key=key,
            error_fn=record_target,
        )
        coefficient, traces = equation.split(seen["inputs"])
        for side in equation.sides:
            np.testing.assert_array_equal(
                boundary.trace(traces, side), boundary.trace(seen["target"], side)
            )
        options = dict(problem.residual_options)
        if "velocity" in options:  # x is rescaled and t is not
            sizes = equation.crop_size(size, shape)
            start = subdomain.random_starts(equation, key, 1, sizes, shape)[0]
            options["velocity"] = grid.crop(options["velocity"], start, sizes) * 2
        values = equation.residual(
            coefficient, seen["target"], seen["scale"], extent=problem.extent, **options
        )
        return jnp.sqrt(jnp.mean(values**2))

    offset = 1 if make is exact_solutions.taylor_green_vorticity else 0
    assert jnp.log2(residual(25 - offset) / residual(49 - offset)) > 1.7


def linear_model(params, inputs, scale):
    """A plain function as model: a weighted sum of channels, with a dependence on the scale."""
    return jnp.tensordot(inputs, params, 1)[..., None] * jnp.log(scale).reshape(-1, 1, 1, 1)


LINEAR_PARAMS = np.array([0.3, 0.1, 0.2, 0.3, 0.4], "f4")


def small_instance(**changes):
    rng = np.random.default_rng(1)
    fields = [jnp.asarray(rng.normal(size=(3, 17, 17, 1)), "f4") for _ in range(3)]
    return Instance(fields[0], fields[1], jnp.array([2.0, 4.0, 8.0]), fields[2])._replace(**changes)


def test_supervised_loss_is_the_error_on_a_crop_that_numpy_cuts():
    instance = small_instance()
    equation, size = equations.get("darcy"), (9, 9)
    key = jax.random.key(5)
    value = loss.scale_consistency(
        linear_model, LINEAR_PARAMS, instance, equation="darcy", size=size, key=key
    )
    starts = subdomain.random_starts(equation, key, 3, size, (17, 17))
    for i, (x, y) in enumerate(starts.tolist()):
        u = np.asarray(instance.solution[i, x : x + 9, y : y + 9])
        a = np.asarray(instance.coefficient[i, x : x + 9, y : y + 9])
        sides = [u[:1], u[-1:], u[:, :1], u[:, -1:]]
        inputs = np.concatenate([a] + [np.broadcast_to(side, u.shape) for side in sides], axis=-1)
        prediction = (inputs @ LINEAR_PARAMS)[..., None] * np.log(instance.scale[i] / 2)
        expected = np.linalg.norm(prediction - u) / np.linalg.norm(u)
        np.testing.assert_allclose(value[i], expected, rtol=1e-5)


@pytest.mark.parametrize("detach", ["input", "target", "both", "none", "prediction"])
def test_what_is_detached_has_no_gradient(detach):
    """Gradients against the loss with each use of the parameters differentiated on its own."""
    instance = small_instance(solution=None)
    key = jax.random.key(0)

    def loss_of(given, target, local):
        """The loss with parameters of its own for the input, the target and the local model."""
        equation = equations.get("darcy")
        inputs = problem.inputs(equation, instance)
        fields = [linear_model(p, inputs, instance.scale) for p in (given, target)]

        def crop(start, coefficient, field, scale):
            return subdomain.restrict(equation, coefficient, field, scale, start=start, size=(9, 9))

        starts = subdomain.random_starts(equation, key, 3, (9, 9), (17, 17))
        local_problem, truth = (
            jax.vmap(crop)(starts, instance.coefficient, field, instance.scale) for field in fields
        )
        local_inputs = problem.inputs(equation, local_problem)
        pair = linear_model(local, local_inputs, local_problem.scale), truth.solution
        return loss.relative_l2(*(pair[::-1] if detach == "prediction" else pair)).sum()

    params = jnp.asarray(LINEAR_PARAMS)
    gradient = jax.grad(
        lambda p: loss.scale_consistency(
            linear_model, p, instance, equation="darcy", size=9, key=key, detach=detach
        ).sum()
    )(params)
    by_given, by_target, by_local = jax.grad(loss_of, argnums=(0, 1, 2))(params, params, params)
    expected = by_local if detach != "prediction" else 0
    expected += by_given if detach in ("target", "none") else 0
    expected += by_target if detach in ("input", "none", "prediction") else 0
    np.testing.assert_allclose(gradient, expected, rtol=1e-4)
    assert all(jnp.abs(part).max() > 1e-3 for part in (by_given, by_target, by_local))


def test_several_sub_domains_are_those_of_a_repeated_batch():
    for instance in (small_instance(), small_instance(solution=None)):
        repeated = jax.tree.map(lambda x: jnp.repeat(x, 4, axis=0), instance)
        options = dict(equation="darcy", size=9, key=jax.random.key(3))
        apart = loss.scale_consistency(linear_model, LINEAR_PARAMS, repeated, **options)
        together = loss.scale_consistency(linear_model, LINEAR_PARAMS, instance, count=4, **options)
        np.testing.assert_allclose(together, apart.reshape(-1, 4).mean(axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 18}, "between 2 and the axis's 17 points for a node-centred axis, got 18"),
        ({"size": (9, 18)}, r"box of \(9, 18\) points in a grid of \(17, 17\)"),
        ({"detach": "boundary"}, "detach must be one of .* got 'boundary'"),
        ({"equation": "darzy"}, "did you mean 'darcy'"),
        ({"instance": small_instance(boundary=None, solution=None)}, "got None for both"),
    ],
)
def test_bad_input_is_refused(options, message):
    arguments = {"instance": small_instance(), "equation": "darcy", "size": 9} | options
    with pytest.raises(ValueError, match=message):
        loss.scale_consistency(
            linear_model,
            LINEAR_PARAMS,
            arguments.pop("instance"),
            key=jax.random.key(0),
            **arguments,
        )
