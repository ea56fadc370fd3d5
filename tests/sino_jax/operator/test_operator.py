"""A trained operator in a user's hands: layouts, warnings, refinement, estimates, bad input."""

import functools
import json
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import base, checkpoint, equations, operator, train
from sino_jax.diagnostics.error_estimate import Calibration, calibrate
from sino_jax.loss import relative_l2
from sino_jax.loss.crops import trained_range
from sino_jax.operator import Operator, portable
from sino_jax.scale_range import ScaleWarning
from solvers import darcy
from tests import training_runs as runs

META = {"scales": [4.0], "grids": [[17, 17]], "scale_range": [1.0, 8.0]}


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """The run of a Fourier neural operator, one step long."""
    root = tmp_path_factory.mktemp("operator")
    path = runs.write_darcy(root / "train-4", samples=4, grid=(17, 17))
    with jax.numpy_dtype_promotion("standard"):
        config = runs.fno_config([path], steps=1, loss={"sub_sizes": (9,), "super_rates": (1.5,)})
        train.fit(config, root / "run")
    return root / "run"


@pytest.fixture(scope="module")
def trained(workdir):
    return operator.load(workdir)


def constant_medium(params, inputs, scale):
    """Exact on constant coefficients and square cells, but for a fraction `params` of itself."""
    extent = base.square_cells(inputs.shape[1:-1])

    def solve(sample):
        return base.harmonic(equations.get("darcy").split(sample)[1], extent=extent)

    return (1 + params) * jax.vmap(solve)(inputs)


def constant_medium_waves(params, inputs, scale):
    """The same for Helmholtz problems."""

    def solve(sample, k):
        coefficient, field = equations.get("helmholtz").split(sample)
        return base.helmholtz(field, k, jnp.mean(coefficient))

    return (1 + params) * jax.vmap(solve)(inputs, scale)


def exact(name="darcy", *, wrong=0.0):
    """An operator that is off by a fraction of the solution, for constant coefficients."""
    solve = {"darcy": constant_medium, "helmholtz": constant_medium_waves}[name]
    return Operator(equations.get(name), solve, wrong, META)


@jax.jit
def solve_in_medium(coefficient, boundary):
    """Finite element solutions of the batch that `problem` gives, for any coefficient."""
    extent = base.square_cells(coefficient.shape[1:-1])

    def solve(a, g):
        return darcy.solve(a[..., 0], g[..., 0], extent=extent)[..., None]

    return jax.vmap(solve)(jnp.asarray(coefficient), jnp.asarray(boundary))


def unusable(name, meta=META):
    """An operator whose model must not be called."""
    return Operator(equations.get(name), lambda *arguments: 1 / 0, None, meta)


def problem(shape=(17, 13), *, batch=(), seed=0):
    rng = np.random.default_rng(seed)
    coefficient = rng.choice([2.0, 12.0], size=(*batch, *shape, 1)).astype(np.float32)
    return coefficient, rng.normal(size=coefficient.shape).astype(np.float32)


def test_an_operator_shows_itself_in_one_line(trained):
    weights = sum(leaf.size for leaf in jax.tree.leaves(trained.params))
    assert re.fullmatch(
        rf"Operator\(darcy: .+, {weights:,} weights, scales .+ to .+\)", repr(trained)
    )


def test_one_problem_is_solved_as_it_is_among_many_whatever_the_arrays(trained):
    coefficient, boundary = problem(batch=(3,))
    many = trained.solve(coefficient, boundary, np.array([2.0, 4.0, 6.0]))
    assert many.shape == (3, 17, 13, 1)
    one = trained.solve(jnp.asarray(coefficient[1]), boundary[1].astype(float), 4)
    np.testing.assert_allclose(one, many[1], rtol=1e-4, atol=1e-5)


def test_the_range_of_scales_is_that_of_data_sub_and_super_domains(trained):
    assert trained.scales == (4.0,)
    assert trained.scale_range == (2.0, 6.0)
    darcy = equations.get("darcy")
    sets = [(4.0, (17, 17)), (8.0, (33, 33))]
    assert trained_range(darcy, sets, {}) == (4.0, 8.0)
    assert trained_range(darcy, sets, {"sub_sizes": (5,), "super_rates": [2.0]}) == (1.0, 16.0)


def test_a_scale_outside_the_range_warns_with_range_and_scale(trained):
    coefficient, boundary = problem(batch=(2,))
    with pytest.warns(ScaleWarning, match="scale 16 is outside the range 2 to 6"):
        trained.solve(coefficient, boundary, [4.0, 16.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained.solve(coefficient, boundary, [2.0, 6.0])


def test_the_portable_operator_is_the_operator(trained, tmp_path):
    calibrated = trained.calibrate(*problem(batch=(4,)), 4.0, problem(batch=(4,))[1])
    place = calibrated.save(tmp_path / "saved" / "fno")
    assert sorted(path.name for path in place.parent.iterdir()) == ["fno"]
    assert sum(path.stat().st_size for path in place.iterdir()) < 30_000
    assert str(tmp_path) not in (place / portable.META_FILE).read_text()
    again = operator.load(place, equation="darcy")
    assert again.calibration == calibrated.calibration
    assert again.scale_range == trained.scale_range
    assert again.smallest_grid == trained.smallest_grid
    coefficient, boundary = problem()
    np.testing.assert_array_equal(
        again.solve(coefficient, boundary, 4.0), trained.solve(coefficient, boundary, 4.0)
    )
    with pytest.raises(FileExistsError, match="move it away first"):
        trained.save(place)
    assert again.save(tmp_path / "again").is_dir()


def test_a_save_that_fails_leaves_nothing(trained, tmp_path, monkeypatch):
    def full_disk(*arguments, **arrays):
        raise OSError("No space left on device")

    monkeypatch.setattr(portable.np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        trained.save(tmp_path / "fno")
    assert list(tmp_path.iterdir()) == []


def test_directories_that_hold_no_operator(trained, workdir, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        operator.load(tmp_path / "nowhere")
    with pytest.raises(checkpoint.CheckpointError, match="holds no checkpoint"):
        operator.load(tmp_path)
    with pytest.raises(ValueError, match="equation must be 'darcy'.*got 'helmholtz'"):
        operator.load(workdir, equation="helmholtz")
    place = trained.save(tmp_path / "fno")
    with pytest.raises(ValueError, match="step must be None"):
        operator.load(place, step=3)
    weights = place / portable.WEIGHTS_FILE
    data = bytearray(weights.read_bytes())
    weights.write_bytes(data[: len(data) // 2])
    with pytest.raises(portable.PortableError, match="cannot be read"):
        operator.load(place)
    np.savez(weights, other=np.zeros(3))
    with pytest.raises(portable.PortableError, match="digest has changed"):
        operator.load(place)
    meta = json.loads((place / portable.META_FILE).read_text())
    (place / portable.META_FILE).write_text(json.dumps({**meta, "format_version": 99}))
    with pytest.raises(portable.PortableError, match="this release reads"):
        operator.load(place)


def test_checkpoints_without_ranges_take_them_from_the_data(trained, tmp_path):
    meta = {name: value for name, value in trained.meta.items() if name != "grids"}
    assert operator.loading._with_ranges(meta, trained.equation) == {
        **trained.meta,
        "grids": [(17, 17)],
    }
    lost = {**meta, "config": {"data": {"train": [str(tmp_path / "gone")]}, "loss": {}}}
    unknown = operator.loading._with_ranges(lost, trained.equation)
    assert unknown["grids"] == []
    assert unknown["scale_range"] == [4.0, 4.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(coefficient=None), "coefficient is needed by darcy: .* got None"),
        (dict(boundary=np.ones((17, 13))), "boundary must be .*x, y, 1.* got shape .17, 13."),
        (dict(coefficient=np.ones((17, 13, 2))), "coefficient must be .* got shape .17, 13, 2."),
        (dict(boundary=np.ones((2, 17, 13, 1))), "must all be one problem or many"),
        (dict(boundary=np.ones((17, 14, 1))), "must have one grid"),
        (dict(coefficient=np.full((17, 13, 1), np.nan)), "^coefficient must be finite, got NaN"),
        (dict(coefficient=np.ones((17, 13, 1), int)), "coefficient .* floating dtype, got int"),
        (dict(boundary=np.ones((17, 13, 1), complex)), "boundary .* real values, got complex"),
        (dict(scale=[4.0]), "scale must be one number, got shape .1,."),
        (dict(scale=-1.0), "^scale must be positive"),
        (
            dict(coefficient=np.ones((3, 13, 1)), boundary=np.ones((3, 13, 1))),
            "at least 4 points on each grid axis, got a grid of .3, 13.",
        ),
    ],
)
def test_bad_problems(trained, change, message):
    coefficient, boundary = problem()
    arguments = {"coefficient": coefficient, "boundary": boundary, "scale": 4.0, **change}
    for method in (trained.solve, trained.refine, trained.estimate_error):
        with pytest.raises(ValueError, match=message):
            method(**arguments)


def test_refining_with_training_size_patches_reaches_the_solution():
    _, boundary = problem((33, 41))
    coefficient = np.ones_like(boundary)
    trained = exact()
    truth = trained._solve(0.0, trained._problems(coefficient, boundary, 8.0)[0])[0]
    refined = trained.refine_history(coefficient, boundary, 16.0, start="zeros", iterations=25)
    assert refined.solution.shape == (33, 41, 1)
    assert refined.change.shape == (25,)
    assert refined.residual.shape == (26,)
    assert relative_l2(refined.solution[None], truth[None])[0] < 0.05
    alone = trained.refine(coefficient, boundary, 16.0, start="zeros", iterations=25)
    np.testing.assert_array_equal(alone, refined.solution)
    # One step from the solution, given as an array, changes nothing.
    stays = trained.refine_history(
        coefficient, boundary, 16.0, start=np.asarray(truth), iterations=1
    )
    assert stays.change[0] < 1e-5


def test_solving_and_refining_within_transformations(trained):
    coefficient, boundary = (jnp.asarray(field) for field in problem((33, 33)))

    def solve(a, g, scale):
        return trained.solve(a, g, scale)

    alone = solve(coefficient, boundary, 4.0)
    np.testing.assert_allclose(jax.jit(solve)(coefficient, boundary, 4.0), alone, atol=1e-5)
    many = jax.vmap(solve, in_axes=(0, None, None))(coefficient[None], boundary, 4.0)
    np.testing.assert_allclose(many[0], alone, atol=1e-5)
    # Solutions are proportional to the boundary data: the derivative in its direction is itself.
    _, pullback = jax.vjp(lambda c: solve(coefficient, c * boundary, 4.0), jnp.float32(1.0))
    np.testing.assert_allclose(pullback(alone)[0], jnp.sum(alone**2), rtol=1e-3)
    refine = functools.partial(trained.refine, iterations=1)
    np.testing.assert_allclose(
        jax.jit(refine)(coefficient, boundary, 8.0),
        refine(coefficient, boundary, 8.0),
        atol=1e-5,
    )


def test_refinement_warns_about_the_scale_of_patches(trained):
    coefficient, boundary = problem((65, 65))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained.refine(coefficient, boundary, 16.0, iterations=1)  # patches of scale 4
    with pytest.warns(ScaleWarning, match="scale of the patches 1 is outside the range 2 to 6"):
        trained.refine(coefficient, boundary, 4.0, iterations=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(patch=33), "patch must be smaller than the grid"),
        (dict(patch=3), "patch must be at least 4 points"),
        (dict(patch=(9, 9, 9)), "patch must be one number or one for each of 2 axes"),
        (dict(overlap=17), "overlap must be at least 2 points and less than a patch of 17"),
        (dict(iterations=-1), "iterations must be at least 0"),
        (dict(start="ones"), "start must be one of"),
    ],
)
def test_bad_refinements(trained, options, message):
    with pytest.raises(ValueError, match=message):
        trained.refine(*problem((33, 33)), 8.0, **options)


def test_patches_without_a_recorded_grid_have_to_be_given():
    unknown = unusable("darcy", {**META, "grids": []})
    with pytest.raises(ValueError, match="patch must be given"):
        unknown.refine(*problem((33, 33)), 8.0)
    flow = unusable("navier_stokes")
    with pytest.raises(ValueError, match="no boundary data"):
        flow.refine(np.ones((9, 9, 10)), None, 4.0)


@pytest.mark.parametrize("wrong", [0.02, 0.1])
def test_the_bound_is_sharp_where_only_the_boundary_values_are_wrong(wrong):
    _, boundary = problem(batch=(2,))
    found = exact(wrong=wrong).estimate_error(3 * np.ones_like(boundary), boundary, 4.0)
    np.testing.assert_allclose(found.bound, wrong, rtol=1e-3)
    assert found.guarantee.startswith("bound is guaranteed")
    assert not found.calibrated


def test_the_bound_encloses_errors_in_random_media_and_calibration_estimates_them():
    coefficient, boundary = problem(batch=(24,))
    truth = solve_in_medium(coefficient, boundary)
    noise = np.random.default_rng(2).normal(size=truth.shape).astype(np.float32)
    size = np.geomspace(1e-3, 3e-2, 24, dtype=np.float32).reshape(-1, 1, 1, 1)
    for prediction in (truth + size * noise, truth + 0.1 * size):
        found = unusable("darcy").estimate_error(coefficient, boundary, 4.0, solution=prediction)
        assert (found.bound > relative_l2(prediction, truth)).all()
    # The harmonic extension is a poor model here; half of the problems tell how poor.
    poor, half, rest = exact(), slice(0, None, 2), slice(1, None, 2)
    calibrated = poor.calibrate(coefficient[half], boundary[half], 4.0, truth[half])
    prediction = poor.solve(coefficient[rest], boundary[rest], 4.0)
    after = calibrated.estimate_error(coefficient[rest], boundary[rest], 4.0)
    before = poor.estimate_error(coefficient[rest], boundary[rest], 4.0)
    errors = relative_l2(prediction, truth[rest])
    assert after.calibrated
    assert 0.7 < float(jnp.median(after.relative / errors)) < 1.4
    assert (after.upper >= errors).mean() > 0.6
    np.testing.assert_allclose(
        after.relative, calibrated.calibration.factor * before.relative, rtol=1e-5
    )
    np.testing.assert_array_equal(after.bound, before.bound)


def test_helmholtz_is_bounded_below_the_first_resonance_only():
    rng = np.random.default_rng(1)
    boundary = (rng.normal(size=(2, 9, 9, 1)) + 1j * rng.normal(size=(2, 9, 9, 1))).astype("c8")
    coefficient = np.full(boundary.shape, 1.1, np.float32)
    waves = exact("helmholtz", wrong=0.05)
    low = waves.estimate_error(coefficient, boundary, 2.0)
    assert ((low.bound > 0.05) & (low.bound < 0.1)).all()
    assert low.guarantee.startswith("bound is guaranteed")
    high = waves.estimate_error(coefficient, boundary, 8.0)
    assert np.isinf(high.bound).all()
    assert (high.relative > 0).all()
    assert high.guarantee.startswith("indicator only")
    single = waves.estimate_error(coefficient[0], boundary[0], 8.0)
    np.testing.assert_allclose(single.relative, high.relative[0], rtol=1e-3)


def test_errors_of_flows_are_not_estimated():
    burgers = unusable("burgers")
    field = np.ones((9, 9, 1))
    with pytest.raises(ValueError, match="darcy and helmholtz, not for burgers"):
        burgers.estimate_error(None, field, 4.0, solution=field)


def test_calibration_refuses_lists_that_do_not_belong_together():
    with pytest.raises(ValueError, match="two lists of one length"):
        calibrate(jnp.ones(3), jnp.ones(4))
    with pytest.raises(ValueError, match="must be finite"):
        calibrate(jnp.array([1.0, jnp.nan]), jnp.ones(2))
    found = calibrate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, 1.0, 3.0]))
    assert found == Calibration(0.5, pytest.approx(0.95), pytest.approx(1.0), 3)
