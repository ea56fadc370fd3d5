"""Checkpoints: round trips, which ones are kept, damage that is found, and what they record."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sino_jax import checkpoint
from sino_jax.train import provenance
from sino_jax.train.step import init_state
from sino_jax.train.store import DAMAGED, Store

META = {"config": {"equation": "darcy", "sizes": [1, 2]}, "statistics": None}


def make_state(step=0, *, width=3, optimizer=None, averaged=True):
    """A state whose every number depends on `step`."""
    optimizer = optax.adamw(1e-3) if optimizer is None else optimizer
    params = {"params": {"layer": {"kernel": jnp.ones((2, width)), "bias": jnp.zeros(width)}}}
    state = init_state(params, optimizer, jax.random.key(step), averaged=averaged)
    shift = jax.tree.map(lambda x: x + step, state._replace(key=None))
    return shift._replace(key=state.key, step=jnp.int32(step))


def open_store(path, messages=None, keep=2):
    report = (lambda text: None) if messages is None else messages.append
    return Store(path, keep=keep, report=report)


def assert_equal(state, other):
    one, two = (s._replace(key=jax.random.key_data(s.key)) for s in (state, other))
    jax.tree.map(np.testing.assert_array_equal, one, two)
    assert jax.tree.structure(one) == jax.tree.structure(two)


@pytest.mark.parametrize("averaged", [True, False])
def test_a_state_comes_back_bit_by_bit_and_with_its_meta(tmp_path, averaged):
    state = make_state(7, averaged=averaged)
    with open_store(tmp_path) as store:
        assert store.restore(make_state(averaged=averaged)) is None
        store.save(state, META)
    with open_store(tmp_path) as store:
        restored = store.restore(jax.eval_shape(lambda: make_state(averaged=averaged)))
    assert_equal(restored.state, state)
    assert {name: restored.meta[name] for name in META} == META


def test_saving_does_not_see_what_happens_to_the_state_afterwards(tmp_path):
    state = make_state(1)
    expected = jax.device_get(state.params)
    overwrite = jax.jit(lambda s: jax.tree.map(lambda x: x * 0, s), donate_argnums=0)
    with open_store(tmp_path) as store:
        store.save(state, META)
        overwrite(state._replace(key=None))
    items, _ = checkpoint.read(tmp_path, 1)
    jax.tree.map(np.testing.assert_array_equal, items["params"], expected)


def evaluated(error):
    """Test data is worse the better the validation data: only the latter ranks."""
    results = {"test-4": {"relative_l2": 0.0 if error is None else 1 / error}}
    if error is not None:
        results["val-4"] = {"relative_l2": error}
    return {**META, "evaluation": results, "validation": ["val-4"]}


def test_the_newest_and_the_best_are_kept(tmp_path):
    errors = [(0, None), (10, 0.5), (20, 0.1), (30, 0.3), (40, None), (50, 0.2)]
    with open_store(tmp_path) as store:
        for step, error in errors:
            store.save(make_state(step), evaluated(error))
        store.wait()
        assert store.steps() == [20, 40, 50]
    # A second process knows the errors of the first one's checkpoints.
    with open_store(tmp_path) as store:
        store.save(make_state(60), evaluated(0.01))
        store.wait()
        assert store.steps() == [50, 60]


@pytest.mark.parametrize("error", [float("nan"), float("inf"), -float("inf")])
def test_an_error_that_is_not_finite_is_never_the_best(tmp_path, error):
    with open_store(tmp_path, keep=1) as store:
        for step, value in [(10, 0.5), (20, error), (30, 0.7), (40, None)]:
            store.save(make_state(step), evaluated(value))
            store.wait()
        assert store.steps() == [10, 40]
    assert checkpoint.best(tmp_path) == 10
    with open_store(tmp_path, keep=1) as store:
        store.save(make_state(50), evaluated(error))
        store.wait()
        assert store.steps() == [10, 50]


def test_the_best_is_the_one_of_least_error_and_of_equal_ones_the_newest(tmp_path):
    with open_store(tmp_path, keep=4) as store:
        store.save(make_state(5), evaluated(None))
        store.wait()
        with pytest.raises(
            checkpoint.CheckpointError, match="evaluated on validation data: name some"
        ):
            checkpoint.best(tmp_path)
        for step, error in [(10, 0.25), (20, 0.25), (30, 0.5)]:
            store.save(make_state(step), evaluated(error))
    assert checkpoint.best(tmp_path) == 20
    remove_meta(tmp_path / checkpoint.DIRECTORY / "20")
    assert checkpoint.best(tmp_path) == 10


@pytest.mark.parametrize("averaged", [True, False])
def test_weights_are_read_without_the_state_of_the_optimiser(tmp_path, averaged, monkeypatch):
    state = make_state(7, averaged=averaged)
    with open_store(tmp_path) as store:
        store.save(state, META)
    seen, read_arrays = [], checkpoint._read_arrays
    monkeypatch.setattr(
        checkpoint, "_read_arrays", lambda path: seen.append(path.name) or read_arrays(path)
    )
    weights, meta = checkpoint.read_weights(tmp_path, 7)
    assert seen == ["averages" if averaged else "params"]
    jax.tree.map(np.testing.assert_array_equal, weights, state.evaluated)
    assert meta["config"] == META["config"]


def largest_file(path):
    return max(
        (file for file in path.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size
    )


def flip_bytes(path):
    for file in (path / "params").rglob("d/*"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)


def truncate(path):
    file = largest_file(path / "training")
    file.write_bytes(file.read_bytes()[:10])


def remove_meta(path):
    (path / "meta" / "metadata").unlink()


def alter_meta(path):
    file = path / "meta" / "metadata"
    meta = json.loads(file.read_text())
    meta["config"]["sizes"] = [1, 3]  # the arrays are as they were
    file.write_text(json.dumps(meta))


@pytest.mark.parametrize("damage", [flip_bytes, truncate, remove_meta, alter_meta])
def test_a_damaged_newest_checkpoint_is_set_aside_for_the_one_before(tmp_path, damage):
    messages = []
    with open_store(tmp_path) as store:
        store.save(make_state(5), META)
        store.save(make_state(10), META)
    damage(tmp_path / checkpoint.DIRECTORY / "10")
    with open_store(tmp_path, messages) as store:
        restored = store.restore(make_state())
        assert_equal(restored.state, make_state(5))
        assert len(messages) == 1
        assert "checkpoint of step 10" in messages[0]
        assert "falling back to the one before" in messages[0]
        # The step can be saved again, and what was damaged is not lost.
        store.save(make_state(10), META)
        store.wait()
        assert_equal(store.restore(make_state()).state, make_state(10))
    assert [path.name for path in (tmp_path / DAMAGED).iterdir()] == ["10-0"]


def test_all_damaged_is_an_error_and_not_a_new_beginning(tmp_path):
    with open_store(tmp_path) as store:
        store.save(make_state(5), META)
    remove_meta(tmp_path / checkpoint.DIRECTORY / "5")
    with (
        open_store(tmp_path) as store,
        pytest.raises(checkpoint.CheckpointError, match=r"no checkpoint of steps \[5\]"),
    ):
        store.restore(make_state())


def test_an_unfinished_checkpoint_is_none(tmp_path):
    with open_store(tmp_path) as store:
        store.save(make_state(5), META)
    leftover = tmp_path / checkpoint.DIRECTORY / "10.orbax-checkpoint-tmp"
    leftover.mkdir()
    (leftover / "junk").write_text("half a checkpoint")
    with open_store(tmp_path) as store:
        assert_equal(store.restore(make_state()).state, make_state(5))


@pytest.mark.parametrize(
    ("other", "place"),
    [({"width": 4}, "bias"), ({"optimizer": optax.sgd(0.1)}, "optimizer")],
)
def test_another_model_or_optimiser_is_refused_with_the_place(tmp_path, other, place):
    with open_store(tmp_path) as store:
        store.save(make_state(5), META)
        store.wait()
        with pytest.raises(checkpoint.CheckpointError, match=f"another model.*{place}"):
            store.restore(make_state(**other))


def test_a_directory_without_checkpoints_is_named(tmp_path):
    with pytest.raises(checkpoint.CheckpointError, match="holds no checkpoint"):
        checkpoint.newest(tmp_path)


def test_digests_see_values_shapes_dtypes_and_names():
    base = {"a": np.arange(4.0), "b": np.zeros(2)}
    others = [
        {"a": np.arange(4.0) + np.eye(4)[1] * 1e-15, "b": np.zeros(2)},
        {"a": np.arange(4.0).reshape(2, 2), "b": np.zeros(2)},
        {"a": np.arange(4.0), "b": np.zeros(2, np.int64)},
        {"a": np.arange(4.0), "c": np.zeros(2)},
    ]
    digests = {checkpoint.digest(tree) for tree in (base, *others)}
    assert len(digests) == 5
    assert checkpoint.digest({"b": np.zeros(2), "a": np.arange(4.0)}) == checkpoint.digest(base)


def test_provenance_names_this_revision_and_the_packages():
    described = provenance.describe()
    assert described["versions"]["jax"] == jax.__version__
    if (pathlib.Path(provenance.__file__).parents[2] / ".git").exists():
        assert described["revision"] != "unknown"
