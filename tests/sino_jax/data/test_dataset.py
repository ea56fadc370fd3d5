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
    steps = batches.steps_per_epoch(sets, 4)
    assert steps == 3 + 2

    def epoch(number, seed=0):
        drawn = [
            batches.draw(sets, number * steps + i, seed=seed, batch_size=4) for i in range(steps)
        ]
        return [(draw.dataset, *draw.ids.tolist()) for draw in drawn]

    seen = sorted((first, example) for first, *rest in epoch(0) for example in rest)
    assert seen == [(0, i) for i in range(12)] + [(1, i) for i in range(8)]
    assert epoch(1) == epoch(1)
    for one, other in pairwise([epoch(0), epoch(1), epoch(0, seed=1)]):
        assert one != other


def test_batches_do_not_change_between_releases(tmp_path):
    sets = [data.load(write_dataset(tmp_path / "a", fields(6)))]
    ids = [batches.draw(sets, step, seed=7, batch_size=3).ids.tolist() for step in range(4)]
    assert ids == [[3, 5, 0], [1, 4, 2], [1, 5, 3], [4, 0, 2]]


def test_remainders_are_kept_on_request(tmp_path):
    sets = [data.load(write_dataset(tmp_path / "a", fields(10)))]
    options = {"seed": 0, "batch_size": 4, "keep_remainder": True}
    assert batches.steps_per_epoch(sets, 4) == 2
    assert batches.steps_per_epoch(sets, 4, keep_remainder=True) == 3
    ids = np.concatenate([batches.draw(sets, step, **options).ids for step in range(3)])
    assert sorted(ids) == list(range(10))
    assert [len(b.scale) for b in batches.in_order(sets[0], 4)] == [4, 4, 2]


def test_processes_share_the_global_batch(tmp_path):
    sets = [data.load(write_dataset(tmp_path / "a", fields(12)))]
    whole = batches.batch(sets, 2, seed=3, batch_size=4)
    parts = [
        batches.batch(sets, 2, seed=3, batch_size=4, process_index=i, process_count=2)
        for i in range(2)
    ]
    joined = np.concatenate([part.solution for part in parts])
    np.testing.assert_array_equal(joined, whole.solution)
    with pytest.raises(ValueError, match="batch_size must divide evenly"):
        batches.batch(sets, 2, seed=3, batch_size=5, process_count=2)
    with pytest.raises(ValueError, match="batch_size must be at most"):
        batches.batch(sets, 0, seed=3, batch_size=16)


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
