"""The composite loss: its parts, their weights, and super-domain problems."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import equations, loss, problem, superdomain
from sino_jax.types import Instance

PARAMS = np.array([0.3, 0.1, 0.2, 0.3, 0.4], "f4")


def model(params, inputs, scale):
    return jnp.tensordot(inputs, jnp.asarray(params), 1)[..., None] * scale.reshape(-1, 1, 1, 1)


def make_instance(batch=3, shape=(9, 9)):
    rng = np.random.default_rng(0)
    fields = [jnp.asarray(rng.normal(size=(batch, *shape, 1)), "f4") for _ in range(2)]
    return Instance(fields[0], None, jnp.linspace(1.0, 2.0, batch), fields[1])


def constant_prior(key, shape, scale):
    """Inputs that tell the shape and scale they were asked for."""
    noise = jax.random.normal(key, (*shape, 1))
    return jnp.full((*shape, 1), scale), noise


def compiled(**options):
    return jax.jit(
        lambda progress, instance: loss.training_loss(
            model,
            PARAMS,
            instance,
            equation="darcy",
            key=jax.random.key(0),
            progress=progress,
            **options,
        )
    )


def test_without_options_it_is_the_supervised_loss():
    instance = make_instance()
    inputs = problem.inputs(equations.get("darcy"), instance)
    expected = loss.relative_l2(model(PARAMS, inputs, instance.scale), instance.solution)
    total, parts = compiled()(0.5, instance)
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    assert set(parts) == {"supervised"}


def test_total_is_the_weighted_sum_of_its_parts():
    evaluate_at = compiled(
        sub_sizes=(5, 9),
        sub_count=2,
        sub_weight=0.7,
        super_prior=constant_prior,
        super_rates=(1.5, 2.0),
        super_count=3,
        super_weight=0.5,
        super_start=0.25,
    )
    for progress, weight in [(0.1, 0.0), (0.25, 0.125), (1.0, 0.5)]:
        total, parts = evaluate_at(progress, make_instance())
        expected = parts["supervised"] + 2 * 0.7 * parts["sub_domain"]
        np.testing.assert_allclose(total, expected + 3 * weight * parts["super_domain"], rtol=1e-5)
        assert (parts["super_domain"] > 0).all()


def test_super_domain_gradient_sets_in_with_its_weight():
    def gradient(progress, **options):
        return jax.jit(
            jax.grad(
                lambda params, instance: loss.training_loss(
                    model,
                    params,
                    instance,
                    equation="darcy",
                    key=jax.random.key(0),
                    progress=progress,
                    **options,
                )[0].sum()
            )
        )(jnp.asarray(PARAMS), make_instance())

    options = {"super_prior": constant_prior, "super_rates": (2.0,), "super_start": 0.25}
    np.testing.assert_array_equal(gradient(0.2, **options), gradient(0.2))
    assert jnp.abs(gradient(0.3, **options) - gradient(0.3)).max() > 1e-3


def draws(options, steps, *, seed=3):
    return [loss.draw_crops(options, seed=seed, step=n, total_steps=steps) for n in range(steps)]


def test_every_size_and_rate_is_drawn_and_super_domains_begin_in_time():
    options = {"sub_sizes": (5, (7, 9), 9), "super_rates": (1.5, 2.0), "super_start": 0.5}
    drawn = draws(options, 400)
    assert drawn == draws(options, 400)
    assert drawn != draws(options, 400, seed=4)
    assert all(draw.super_rates == () for draw in drawn[:200])
    pairs = collections.Counter((*draw.sub_sizes, *draw.super_rates) for draw in drawn[200:])
    assert set(pairs) == set(itertools.product((5, (7, 9), 9), (1.5, 2.0)))
    assert min(pairs.values()) > 15
    assert loss.draw_crops({}, seed=0, step=9, total_steps=10) == ((), ())


def test_rates_grow_one_after_the_other():
    options = {"super_rates": (2.0, 4.0, 8.0), "super_growing": True, "super_start": 0.25}
    drawn = collections.defaultdict(set)
    for step in range(400):
        draw = loss.draw_crops(options, seed=0, step=step, total_steps=400)
        drawn[step // 100].update(draw.super_rates)
    assert drawn == {0: set(), 1: {2.0}, 2: {2.0, 4.0}, 3: {2.0, 4.0, 8.0}}
    # The compiled choice keeps to the same rule: a model that tells scales shows what was drawn.
    instance = make_instance(batch=1)._replace(scale=jnp.ones(1))

    def scales_of(progress):
        asked = set()

        def telling(params, inputs, scale):
            jax.debug.callback(lambda s: asked.add(float(s[0])), scale)
            return inputs[..., :1]

        for seed in range(12):
            loss.training_loss(
                telling, None, instance, equation="darcy", key=jax.random.key(seed),
                progress=progress, super_prior=constant_prior, super_count=1, **options,
            )  # fmt: skip
        jax.effects_barrier()
        return asked - {1.0}

    assert scales_of(0.3) == {2.0}
    assert scales_of(0.6) == {2.0, 4.0}


def test_super_domains_are_judged_by_halves_and_bounded_in_number():
    asked = []

    def telling(params, inputs, scale):
        asked.append(inputs.shape[:3])
        return jnp.full_like(inputs[..., :1], 2.0) * scale.reshape(-1, 1, 1, 1)

    total, parts = loss.training_loss(
        telling,
        None,
        make_instance(batch=3)._replace(scale=jnp.ones(3)),
        equation="darcy",
        key=jax.random.key(0),
        progress=1.0,
        super_prior=constant_prior,
        super_rates=(4.0,),
        super_count=1,
        super_weight=1.0,
        super_crop=0.5,
        super_positions=5,
        super_points=2 * 33**2,
        detach="prediction",
    )
    assert asked[-2:] == [(2, 33, 33), (10, 17, 17)]
    np.testing.assert_allclose(parts["super_domain"], 1.0)  # |4 - 2| / 2, the judge's being 2
    assert total.shape == (3,)


def test_crops_do_not_change_between_releases():
    """The first numbers of a stream that NumPy guarantees: raw Philox output, modulo the sizes."""
    drawn = [size for draw in draws({"sub_sizes": range(10)}, 12) for size in draw.sub_sizes]
    assert drawn == [0, 8, 0, 1, 5, 0, 5, 8, 2, 6, 3, 6]


@pytest.mark.parametrize(
    ("name", "shape", "rate", "larger"),
    [
        ("darcy", (9, 5), 2.0, (17, 9)),
        ("burgers", (9, 5), 1.5, (13, 7)),
        ("navier_stokes", (8, 6), 1.5, (12, 9)),
    ],
)
def test_a_sub_domain_of_a_super_domain_has_the_scale_it_came_from(name, shape, rate, larger):
    equation = equations.get(name)
    assert superdomain.superdomain_shape(equation, shape, rate) == larger
    scale = jnp.array([3.0, 5.0])
    problem = superdomain.sample(
        constant_prior, jax.random.key(0), scale, equation=equation, shape=shape, rate=rate
    )
    np.testing.assert_allclose(problem.scale, equation.rescale(scale, rate), rtol=1e-6)
    assert problem.coefficient.shape == (2, *larger, 1)
    np.testing.assert_array_equal(problem.coefficient[:, 0, 0, 0], problem.scale)
    assert not jnp.array_equal(problem.boundary[0], problem.boundary[1])
    back = equation.rescale(problem.scale, equation.ratio(shape, larger))
    np.testing.assert_allclose(back, scale, rtol=1e-6)


def test_reflection_continues_the_data_and_contains_it():
    equation = equations.get("burgers")
    field = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 9, 1)), "f4")
    instance = Instance(None, None, jnp.array([100.0, 200.0]), field)
    larger = superdomain.reflected(instance, equation=equation, rate=2.0)
    assert larger.solution is None
    np.testing.assert_array_equal(larger.boundary[:, :5, :9], field)
    np.testing.assert_array_equal(larger.boundary[:, 4:, :9], field[:, ::-1])
    np.testing.assert_array_equal(larger.scale, [200.0, 400.0])


def test_relabelled_data_is_asked_at_a_larger_scale_and_compared_at_its_own():
    """An operator that gives the scale everywhere shows which scales it was asked for."""
    field = jnp.asarray(np.random.default_rng(0).normal(size=(2, 9, 17, 1)), "f4")
    instance = Instance(None, None, jnp.array([100.0, 200.0]), field)
    asked = []

    def scale_everywhere(params, inputs, scale):
        asked.append((inputs.shape[1:3], scale))
        return jnp.broadcast_to(scale[:, None, None, None], (*inputs.shape[:3], 1))

    _, parts = loss.training_loss(
        scale_everywhere,
        None,
        instance,
        equation="burgers",
        key=jax.random.key(0),
        progress=1.0,
        super_rates=(2.0,),
        super_count=1,
        super_method="relabel",
    )
    (whole, larger), (part, own) = asked[-2:]
    assert (whole, part) == ((9, 17), (5, 9))
    np.testing.assert_allclose(larger, [200.0, 400.0])
    np.testing.assert_allclose(own, instance.scale)
    np.testing.assert_allclose(parts["super_domain"], 0.5)  # |λ k r - k r| / (k r)


@pytest.mark.parametrize(("region", "expected"), [("whole", 1.0), ("central_half", 0.0)])
def test_errors_at_the_rim_of_a_crop_do_not_count_in_its_central_half(region, expected):
    """A model of frames that knows the next one except where something could have entered."""
    frames = jnp.ones((2, 16, 16, 11))
    instance = Instance(frames[..., :10], None, jnp.array([100.0, 200.0]), frames[..., 10:])

    def blind_at_the_rim(params, inputs, scale):
        wide = [(0, 0), *[(n // 4, n // 4) for n in inputs.shape[1:3]], (0, 0)]
        inner = jnp.ones((len(inputs), *(n - 2 * (n // 4) for n in inputs.shape[1:3]), 1))
        return jnp.pad(inner, wide)

    _, parts = loss.training_loss(
        blind_at_the_rim,
        None,
        instance,
        equation="navier_stokes",
        key=jax.random.key(0),
        progress=1.0,
        sub_sizes=(8,),
        super_rates=(2.0,),
        super_method="relabel",
        crop_region=region,
    )
    share = np.sqrt(3 / 4)  # of the whole that the rim has
    np.testing.assert_allclose(parts["supervised"], share, rtol=1e-6)
    np.testing.assert_allclose(parts["sub_domain"], share * expected, rtol=1e-6)


def test_symmetries_augment_the_batch():
    """A loss that is not invariant changes; the parts stay per example."""
    plain, _ = compiled()(0.0, make_instance())
    augmented, parts = compiled(symmetries=("rotation", "reflection"))(0.0, make_instance())
    assert augmented.shape == plain.shape == parts["supervised"].shape
    assert not jnp.allclose(plain, augmented)


def test_it_runs_for_equations_without_coefficient_or_boundary():
    rng = np.random.default_rng(0)

    def mean_of_inputs(params, inputs, scale):
        return jnp.mean(inputs, axis=-1, keepdims=True)

    burgers = Instance(
        None, None, jnp.array([100.0]), jnp.asarray(rng.normal(size=(1, 9, 13, 1)), "f4")
    )
    vorticity = jnp.asarray(rng.normal(size=(1, 8, 8, 11)), "f4")
    navier_stokes = Instance(vorticity[..., :10], None, jnp.array([100.0]), vorticity[..., 10:])
    for name, instance in {"burgers": burgers, "navier_stokes": navier_stokes}.items():
        total, parts = jax.jit(
            lambda instance, name=name: loss.training_loss(
                mean_of_inputs,
                None,
                instance,
                equation=name,
                key=jax.random.key(0),
                progress=1.0,
                sub_sizes=(5,),
                super_rates=(2.0,),
                symmetries=("reflection",),
            )
        )(instance)
        assert set(parts) == {"supervised", "sub_domain", "super_domain"}
        assert total.shape == (1,)
        assert (total > parts["supervised"]).all()


def test_unlabelled_problems_and_small_rates_are_refused():
    with pytest.raises(ValueError, match="instance.solution is needed"):
        loss.training_loss(
            model,
            PARAMS,
            make_instance()._replace(solution=None),
            equation="darcy",
            key=jax.random.key(0),
            progress=0.0,
        )
    with pytest.raises(ValueError, match="must be finite, at least 1, got 0.5"):
        superdomain.superdomain_shape(equations.get("darcy"), (9, 9), 0.5)
