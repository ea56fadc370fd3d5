"""Data sets as training sees them: loading, refusal of damage, and stateless batches."""

import json
import pathlib
from itertools import pairwise

import numpy as np
import pytest

from sino_jax import data
from sino_jax.data import batches
from sino_jax.data import dataset as dataset_module
from tests.dataset_files import write_dataset


def fields(samples=10, n=5, seed=0):
    rng = np.random.default_rng(seed)
    shape = (samples, n, n + 1, 1)
    return {
        "coefficient": rng.normal(size=shape).astype(np.float32),
        "solution": (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64),
    }


def test_what_is_written_is_what_is_loaded(tmp_path):
    written = fields()
    dataset = data.load(write_dataset(tmp_path / "a", written), verify=True)
    instance = dataset.examples([3, 1])
    np.testing.assert_array_equal(instance.coefficient, written["coefficient"][[3, 1]])
    np.testing.assert_array_equal(instance.solution, written["solution"][[3, 1]])
    np.testing.assert_array_equal(instance.scale, np.float32([4, 4]))
    assert instance.boundary is None
    assert (dataset.grid, dataset.equation, len(dataset)) == ((5, 6), "darcy", 10)
    assert set(dataset_module.REQUIRED) == set(dataset.meta)
    assert all(isinstance(field, np.memmap) for field in dataset.fields.values())
    assert sorted(p.name for p in dataset.path.iterdir()) == [
        "coefficient.npy",
        "meta.json",
        "solution.npy",
    ]


def test_a_data_set_shows_itself_in_one_line(tmp_path):
    field = np.ones((3, 5, 4, 1), np.float32)
    write_dataset(tmp_path / "train-4", {"coefficient": field, "solution": field})
    shown = repr(data.load(tmp_path / "train-4"))
    assert shown.startswith("Dataset(darcy, train, scale 4: 3 examples on 5 x 4 points, ")
    assert "\n" not in shown


def test_windows_of_a_trajectory(tmp_path):
    """Frame t of trajectory s holds the value 100 s + t, so that every window names itself."""
    values = 100 * np.arange(2)[:, None] + np.arange(9)[None, :]
    trajectory = np.broadcast_to(values[..., None, None, None], (2, 9, 4, 3, 2)).astype(np.float32)
    window = {"history": 3, "horizon": 2, "stride": 2, "frames": "channel", "dt": 0.1}
    path = write_dataset(tmp_path / "a", {"trajectory": trajectory}, window=window)
    dataset = data.load(path)
    assert len(dataset) == 2 * 3
    instance = dataset.examples([4])  # the second window of the second trajectory
    np.testing.assert_array_equal(instance.coefficient[0, 0, 0], [102, 102, 103, 103, 104, 104])
    np.testing.assert_array_equal(instance.solution[0, 0, 0], [105, 105, 106, 106])

    spacetime = dataset.with_window(frames="axis", history=2)
    assert spacetime.grid == (4, 3, 2)
    instance = spacetime.examples([0, 1])
    np.testing.assert_array_equal(instance.coefficient[1, 2, 2, :, 1], [2, 3])
    np.testing.assert_array_equal(instance.solution[1, 2, 2, :, 1], [4, 5])

    with pytest.raises(ValueError, match="does not fit into 9 frames"):
        dataset.with_window(horizon=7)


def test_an_epoch_sees_every_example_once_and_depends_on_seed_and_epoch_only(tmp_path):
    sets = [
        data.load(write_dataset(tmp_path / "a", fields(12, 5))),
        data.load(write_dataset(tmp_path / "b", fields(8, 7))),
    ]
    order = batches.Order.of(sets, seed=0, batch_size=4)
    steps = order.steps_per_epoch
    assert steps == 3 + 2

    def epoch(number, order=order):
        drawn = [order.draw(number * steps + i) for i in range(steps)]
        return [(draw.dataset, *draw.ids.tolist()) for draw in drawn]

    seen = sorted((first, example) for first, *rest in epoch(0) for example in rest)
    assert seen == [(0, i) for i in range(12)] + [(1, i) for i in range(8)]
    assert epoch(1) == epoch(1)
    other_seed = batches.Order.of(sets, seed=1, batch_size=4)
    for one, other in pairwise([epoch(0), epoch(1), epoch(0, other_seed)]):
        assert one != other


def test_batches_do_not_change_between_releases(tmp_path):
    sets = [data.load(write_dataset(tmp_path / "a", fields(6)))]
    order = batches.Order.of(sets, seed=7, batch_size=3)
    ids = [order.draw(step).ids.tolist() for step in range(4)]
    assert ids == [[3, 5, 0], [1, 4, 2], [1, 5, 3], [4, 0, 2]]
    np.testing.assert_array_equal(
        batches.batch(sets, 1, seed=7, batch_size=3).solution, sets[0].examples(ids[1]).solution
    )


def test_batches_of_two_data_sets_do_not_change_between_releases():
    """What the releases before `Order` drew: a run that they began goes on with the same."""
    order = batches.Order((5, 4), seed=2, batch_size=2, keep_remainder=True)
    assert [(draw.dataset, draw.ids.tolist()) for draw in map(order.draw, range(7))] == [
        (1, [1, 3]),
        (0, [4, 1]),
        (0, [0, 3]),
        (0, [2]),
        (1, [0, 2]),
        (1, [3, 1]),
        (0, [1, 2]),
    ]


def test_remainders_are_kept_on_request():
    order = batches.Order((10,), seed=0, batch_size=4, keep_remainder=True)
    assert batches.Order((10,), seed=0, batch_size=4).steps_per_epoch == 2
    assert order.steps_per_epoch == 3
    drawn = [order.draw(step).ids for step in range(3)]
    assert sorted(np.concatenate(drawn)) == list(range(10))
    assert [len(ids) for ids in drawn] == [4, 4, 2]
    with pytest.raises(ValueError, match="batch_size must be at most"):
        batches.Order((12,), seed=3, batch_size=16)


def test_statistics_are_those_of_the_real_channels_and_of_training_data_only(tmp_path):
    one, other = fields(10, 5), fields(6, 7, seed=1)
    sets = [
        data.load(write_dataset(tmp_path / "a", one)),
        data.load(write_dataset(tmp_path / "b", other)),
    ]
    found = data.statistics(sets)["solution"]
    joined = np.concatenate([one["solution"].ravel(), other["solution"].ravel()])
    np.testing.assert_allclose(found["mean"], [joined.real.mean(), joined.imag.mean()], rtol=1e-4)
    np.testing.assert_allclose(found["std"], [joined.real.std(), joined.imag.std()], rtol=1e-4)
    test = data.load(write_dataset(tmp_path / "c", one, split="test"))
    with pytest.raises(ValueError, match="training data alone"):
        data.statistics([sets[0], test])


def truncate(path: pathlib.Path):
    file = path / "solution.npy"
    file.write_bytes(file.read_bytes()[:-100])


def flip_header_byte(path: pathlib.Path):
    file = path / "solution.npy"
    content = bytearray(file.read_bytes())
    content[30] ^= 1
    file.write_bytes(content)


def alter_meta(path: pathlib.Path):
    meta = json.loads((path / "meta.json").read_text())
    meta["scale"] = 8.0
    (path / "meta.json").write_text(json.dumps(meta))


def other_version(path: pathlib.Path):
    meta = json.loads((path / "meta.json").read_text())
    meta["format_version"] = 2
    (path / "meta.json").write_text(json.dumps(meta))


def cut_meta(path: pathlib.Path):
    content = (path / "meta.json").read_text()
    (path / "meta.json").write_text(content[:100])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "solution.npy is damaged"),
        (flip_header_byte, "solution.npy"),
        (alter_meta, "meta.json was altered"),
        (other_version, "has format version 2, this release reads version 1"),
        (cut_meta, "meta.json is damaged"),
        (lambda path: (path / "solution.npy").unlink(), "solution.npy is missing"),
        (lambda path: (path / "meta.json").unlink(), "not finished"),
    ],
)
def test_damage_is_refused_at_every_load(tmp_path, damage, message):
    path = write_dataset(tmp_path / "a", fields())
    damage(path)
    with pytest.raises(data.DatasetError, match=message):
        data.load(path)


def test_a_flipped_byte_is_found_by_full_verification(tmp_path):
    path = write_dataset(tmp_path / "a", fields())
    content = bytearray((path / "solution.npy").read_bytes())
    content[-17] ^= 1
    (path / "solution.npy").write_bytes(content)
    data.load(path)
    with pytest.raises(data.DatasetError, match="its checksum is not the one"):
        data.load(path, verify=True)


def test_values_that_are_not_finite_are_found_by_full_verification(tmp_path):
    bad = fields()
    bad["coefficient"][6, 2, 2] = np.nan
    path = write_dataset(tmp_path / "a", bad)
    with pytest.raises(data.DatasetError, match="sample 6"):
        data.load(path, verify=True)


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_values_do_not_depend_on_byte_order_and_layout(tmp_path, byte_order, layout):
    """Files of other machines and of Fortran programs: JAX takes native arrays only."""
    given = fields()
    path = write_dataset(tmp_path / "data", given)
    expected = data.statistics([data.load(path)])
    meta = json.loads((path / dataset_module.META).read_text())
    for name, field in given.items():
        stored = np.asarray(field, field.dtype.newbyteorder(byte_order), order=layout)
        np.save(path / f"{name}.npy", stored)
        meta["fields"][name]["dtype"] = stored.dtype.str
    stated = {key: value for key, value in meta.items() if key != "checksum"}
    meta["checksum"] = dataset_module.checksum(stated)
    (path / dataset_module.META).write_text(json.dumps(meta))
    loaded = data.load(path)
    examples = loaded.examples([3, 1])
    for name, field in given.items():
        assert getattr(examples, name).dtype.isnative
        np.testing.assert_array_equal(getattr(examples, name), field[[3, 1]])
    assert data.statistics([loaded]) == expected
