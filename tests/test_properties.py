"""Public functions on drawn shapes, dtypes and values: a clear refusal, or the right answer."""

import os
import pathlib
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.configs import darcy as experiment
from sino_jax import equations, files, grid, loss, models, norms, partition, problem
from sino_jax.types import Instance

# The same examples in every run, and none kept on disk.
QUICK = settings(derandomize=True, deadline=None, database=None, max_examples=40)
FEW = settings(QUICK, max_examples=25)

DTYPES = ("f2", "f4", "c8", "i4", "u1", "?")
SPECIAL = (0.0, 1.0, -2.5, 1e-30, 1e30, float("nan"), float("inf"))
shapes = st.sampled_from([(2, 5, 4, 1), (1, 5, 4, 1), (2, 5, 4, 2), (2, 5, 4), (2, 0, 4, 1), (5,)])
numbers = st.one_of(
    st.integers(-3, 40),
    st.floats(width=32),
    st.sampled_from([True, None, "9", np.int64(9), np.float32(9), (9, 9), (9, 9.5), (9,), [], 1j]),
)


@st.composite
def arrays(draw, shapes=shapes, dtypes=DTYPES, special=SPECIAL):
    """An array of ordinary numbers of one size, of which some are special."""
    shape, dtype = draw(shapes), np.dtype(draw(st.sampled_from(dtypes)))
    values = np.random.default_rng(draw(st.integers(0, 3))).uniform(0.5, 1.5, size=shape)
    values = values * draw(st.sampled_from([1.0, 1e-30, 1e30, 1e-3]))
    if values.size and draw(st.booleans()):
        values.flat[draw(st.integers(0, values.size - 1))] = draw(st.sampled_from(special))
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def attempt(call):
    """The result of a call and whether it was refused; other errors than clear ones fail."""
    try:
        with jax.numpy_dtype_promotion("standard"):
            return call(), False
    except (ValueError, TypeError) as error:
        refusal = error
    last = traceback.extract_tb(refusal.__traceback__)[-1]
    # Raised on purpose, by the package or by the check of its annotations.
    ours = ("/sino_jax/", "/solvers/", "/experiments/", "jaxtyping")
    assert any(place in last.filename for place in ours), f"{last.filename}: {refusal!r}"
    assert last.line.startswith("raise"), f"{last.filename}: {refusal!r}"
    return None, True


def norm(values):
    wide = np.asarray(values).astype(np.clongdouble)
    return np.sqrt(np.sum(np.abs(wide) ** 2, axis=tuple(range(1, wide.ndim))))


@QUICK
@given(arrays(), arrays())
def test_relative_l2(prediction, target):
    result, refused = attempt(
        lambda: loss.relative_l2(jnp.asarray(prediction), jnp.asarray(target))
    )
    inexact = all(np.issubdtype(a.dtype, np.inexact) for a in (prediction, target))
    usable = prediction.shape == target.shape and target.ndim >= 3 and 0 not in target.shape
    assert refused == (not (inexact and usable))
    if refused:
        return
    with np.errstate(all="ignore"):
        difference = (jnp.asarray(prediction) - jnp.asarray(target)).astype(np.complex64)
        expected = norm(difference) / norm(target)
        finite = np.isfinite(np.asarray(expected, np.float32)) & np.isfinite(norm(target))
    # NaN and infinity in, never a number out; what a float32 cannot hold may be infinite.
    assert not np.isfinite(np.asarray(result)[~np.isfinite(norm(difference))]).any()
    np.testing.assert_allclose(
        np.asarray(result)[finite], expected[finite].astype(np.float32), rtol=5e-3
    )


@QUICK
@given(arrays(dtypes=("f2", "f4", "c8"), shapes=st.just((2, 5, 4, 1))))
def test_l2_norm(field):
    result, refused = attempt(lambda: norms.l2_norm(jnp.asarray(field)))
    assert not refused
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, norm(field).astype(np.float32), rtol=1e-5)


@FEW
@given(numbers)
def test_scale_consistency_of_any_size(size):
    """Constant fields are consistent at every size that there is."""
    ones = jnp.ones((1, 17, 17, 1))
    instance = Instance(ones, None, jnp.ones(1), ones)
    result, refused = attempt(
        lambda: loss.scale_consistency(
            lambda params, inputs, scale: inputs[..., 1:2],
            None, instance, equation="darcy", size=size, key=jax.random.key(0),
        )
    )  # fmt: skip
    entries = size if isinstance(size, tuple) else (size,)
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in entries)
    fits = whole and len(entries) in ({1, 2} - {1 if isinstance(size, tuple) else 3})
    assert refused == (not (fits and all(2 <= n <= 17 for n in entries)))
    assert refused or float(result[0]) == 0


@FEW
@given(
    arrays(dtypes=("f4", ">f4", "c8", "i4"), shapes=st.sampled_from([(2, 5, 6, 1), (5, 6, 1)])),
    st.sampled_from(["C", "F"]),
    st.sampled_from([1.0, -1.0, 0.0, float("nan"), "4", None, np.ones(2), np.ones(3)]),
)
def test_problems_keep_their_values(field, layout, scale):
    field = np.asarray(field, order=layout)
    result, refused = attempt(lambda: problem.as_batch(equations.get("darcy"), field, field, scale))
    good_field = field.dtype.kind == "f" and np.isfinite(field).all()
    single = field.ndim == 3
    good_scale = isinstance(scale, float) and scale > 0
    good_scale |= isinstance(scale, np.ndarray) and len(scale) == 2 and not single
    assert refused == (not (good_field and good_scale))
    if not refused:
        instance, was_single = result
        assert was_single == single
        coefficient = instance.coefficient[0] if single else instance.coefficient
        np.testing.assert_array_equal(coefficient, field.astype("f4"))


@QUICK
@given(st.integers(-2, 12), st.integers(-2, 12), st.sampled_from(["node", "cell", "edge"]))
def test_side_ratio(size, points, centring):
    result, refused = attempt(lambda: grid.side_ratio(size, points, centring))
    smallest = {"node": 2, "cell": 1}.get(centring, 99)
    assert refused == (not smallest <= size <= points)
    if not refused:
        cells = int(centring == "node")
        assert result == (size - cells) / (points - cells)


@QUICK
@given(st.integers(2, 40), numbers, numbers, st.sampled_from(["linear", "smooth", "Linear"]))
def test_patches_cover_the_grid(points, patches, overlap, blend):
    counts = patches if isinstance(patches, tuple) else (patches,)
    layout, refused = attempt(lambda: partition.cover((points,), counts, overlap, blend=blend))
    if not refused:
        weights = partition.weights(layout, 0)
        total = np.zeros(points)
        for first, weight in zip(layout.starts[0], weights, strict=True):
            total[first : first + layout.size[0]] += weight
        np.testing.assert_allclose(total, 1)


@QUICK
@given(
    st.text(max_size=12) | st.sampled_from(["..", "../x", "/etc", "a/b", "CON", "solution", "x\0y"])
)
def test_a_name_stays_in_its_directory(name):
    result, refused = attempt(lambda: files.check_name(name, "name"))
    if not refused:
        place = pathlib.Path("/data/set")
        assert os.path.normpath(place / f"{result}.npy") == f"/data/set/{name}.npy"


@QUICK
@given(
    st.sampled_from([*experiment.COMMON, *experiment.PRESETS["tiny"], "epoch", ""]),
    st.text(alphabet="0123456789.+-eanoysrubflt", max_size=6),
)
def test_a_config_says_what_its_text_says(field, value):
    text = f"tiny,{field}={value}"
    config, refused = attempt(lambda: experiment.get_config(text))
    if not refused:
        written = value.replace("+", ",") if isinstance(config[field], tuple) else value
        meant = {"yes": True, "no": False, "true": True, "false": False}.get(value, written)
        got = config[field]
        if isinstance(got, bool | str):
            assert got == (meant if isinstance(got, bool) else value)
        elif isinstance(got, tuple):
            assert got == tuple(float(part) for part in value.split("+") if value)
        else:
            assert got == float(value)
            assert np.isfinite(got)


@FEW
@given(st.sampled_from(["n_modes", "hidden_channels", "n_layers", "padding", "log_scale"]), numbers)
def test_a_model_is_what_its_fields_say(field, value):
    given_fields = {"name": "fno", "n_modes": (4, 4), "hidden_channels": 8, "out_channels": 1}
    model, refused = attempt(lambda: models.build({**given_fields, field: value}))
    if not refused:
        assert getattr(model, field) == (tuple(value) if isinstance(value, list) else value)
