"""Data sets from a user's arrays: what is read back, how samples are split, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import data, equations
from sino_jax.data import arrays as arrays_module


def arrays(samples, shape=(9, 7), seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(1, 2, (samples, *shape)), rng.normal(size=(samples, *shape))


def test_arrays_come_back_as_examples(tmp_path):
    a, u = arrays(5)
    made = data.from_arrays(
        tmp_path, equation="darcy", coefficient=a, solution=u, scale=4, extent=(2.0, 1.0)
    )
    assert list(made) == ["train-4"]
    dataset = data.load(tmp_path / "train-4", verify=True)
    assert (dataset.split, dataset.scale, dataset.grid, len(dataset)) == ("train", 4.0, (9, 7), 5)
    assert dataset.meta["grid"]["extent"] == [2.0, 1.0]
    batch = dataset.examples([3, 1])
    np.testing.assert_array_equal(batch.solution[..., 0], u[[3, 1]].astype(np.float32))
    np.testing.assert_array_equal(batch.coefficient[..., 0], a[[3, 1]].astype(np.float32))
    equations.get("darcy").validate(jax.tree.map(jnp.asarray, batch))


def test_samples_are_grouped_by_scale_and_grid(tmp_path):
    pairs = [arrays(1, shape, seed=i) for i, shape in enumerate([(9, 9), (17, 9)] * 3)]
    a, u = ([pair[field][0] for pair in pairs] for field in (0, 1))
    scale = [1, 2, 1, 2, 1, 3]
    made = data.from_arrays(tmp_path, equation="helmholtz", coefficient=a, solution=u, scale=scale)
    sizes = {name: (len(dataset), dataset.grid) for name, dataset in made.items()}
    assert sizes == {"train-1": (3, (9, 9)), "train-2": (2, (17, 9)), "train-3": (1, (17, 9))}
    assert np.iscomplexobj(made["train-1"].examples([0]).solution)
    both = data.from_arrays(
        tmp_path / "both", equation="helmholtz", coefficient=a, solution=u, scale=1.5
    )
    assert sorted(both) == ["train-1.5-17x9", "train-1.5-9x9"]


def test_a_split_is_a_partition_that_the_seed_decides(tmp_path):
    a, u = arrays(20)
    shares = {"train": 0.7, "val": 0.1, "test": 0.2}

    def split(place, seed):
        made = data.from_arrays(
            tmp_path / place,
            equation="darcy",
            coefficient=a,
            solution=u,
            scale=[1.0] * 10 + [2.0] * 10,
            split=shares,
            seed=seed,
        )
        return {name: np.array(dataset.fields["solution"]) for name, dataset in made.items()}

    first, again, other = split("a", 0), split("b", 0), split("c", 1)
    assert {name: len(part) for name, part in first.items()} == {
        f"{name}-{scale}": count
        for scale in (1, 2)
        for name, count in (("train", 7), ("val", 1), ("test", 2))
    }
    everything = np.concatenate(list(first.values()))[..., 0]
    np.testing.assert_array_equal(
        np.sort(everything[:, 0, 0]), np.sort(u[:, 0, 0].astype(np.float32))
    )
    assert all((first[name] == again[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


def problem(**changes):
    a, u = arrays(4)
    return {"equation": "darcy", "coefficient": a, "solution": u, "scale": 1.0, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coefficient": None}, "coefficient is needed by darcy"),
        ({"coefficient": -arrays(4)[0]}, "coefficient of darcy must be positive, got -1"),
        ({"equation": "burgers"}, "coefficient must be None: burgers has none"),
        ({"solution": arrays(3)[1]}, "the same number of samples"),
        ({"solution": arrays(4, (9, 8))[1]}, "sample 0 must have one grid"),
        ({"solution": arrays(4, (9, 8, 7))[1]}, r"must be \[sample, x, y, 1\] or \[sample, x, y\]"),
        ({"solution": 1j * arrays(4)[1]}, "real numbers, got complex128"),
        ({"scale": [1.0, 2.0]}, "one for each of 4 samples"),
        ({"scale": -1.0}, r"scale must be one positive number, .* got \[-1.0\]"),
        ({"scale": np.inf}, r"scale must be one positive number, .* got \[inf\]"),
        ({"split": {"train": 0.5}}, "must add up to 1"),
        ({"split": "valid"}, "split must be one of"),
        ({"split": {"train": 0.95, "test": 0.05}}, "leaves nothing for"),
        ({"extent": (1.0,)}, "extent must be a positive length for each of x, y"),
        ({"equation": "darcey"}, "did you mean 'darcy'"),
    ],
)
def test_what_does_not_fit_is_named(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        data.from_arrays(tmp_path / "new", **problem(**changes))
    assert not (tmp_path / "new").exists()


def test_values_that_are_not_finite_and_existing_data_are_refused(tmp_path):
    u = arrays(4)[1]
    u[2, 3, 3] = np.nan
    with pytest.raises(ValueError, match=r"solution must be finite, .* samples \[2\]"):
        data.from_arrays(tmp_path, **problem(solution=u))
    data.from_arrays(tmp_path, **problem())
    with pytest.raises(FileExistsError, match="train-1"):
        data.from_arrays(tmp_path, **problem())


def test_scales_that_differ_in_the_last_digits_are_two(tmp_path):
    made = data.from_arrays(tmp_path, **problem(scale=[100.0, 100.0, 100.0001, 100.0001]))
    assert {name: (d.scale, len(d)) for name, d in made.items()} == {
        "train-100": (100.0, 2),
        "train-100.0001": (100.0001, 2),
    }


def test_a_failure_leaves_nothing_that_blocks_a_second_try(tmp_path, monkeypatch):
    write, written = arrays_module.write, []

    def full_disk(directory, *args, **options):
        if written:
            raise OSError("No space left on device")
        written.append(write(directory, *args, **options))

    monkeypatch.setattr(arrays_module, "write", full_disk)
    with pytest.raises(OSError, match="No space left"):
        data.from_arrays(tmp_path, **problem(scale=[1.0, 1.0, 2.0, 2.0]))
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert len(data.from_arrays(tmp_path, **problem(scale=[1.0, 1.0, 2.0, 2.0]))) == 2


def test_many_scales_are_refused_with_a_way_out(tmp_path):
    a, u = arrays(70, (4, 4))
    with pytest.raises(ValueError, match="70 different values in 70 samples"):
        data.from_arrays(
            tmp_path, equation="darcy", coefficient=a, solution=u, scale=np.linspace(1, 2, 70)
        )
