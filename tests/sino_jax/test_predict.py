"""The command line for files of problems: bounded batches, atomic output, one-line errors."""

import dataclasses
import io

import jax
import numpy as np
import pytest

from sino_jax import operator, predict
from tests import training_runs as runs


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A portable operator with random weights."""
    return runs.untrained_operator().save(tmp_path_factory.mktemp("predict") / "operator")


@pytest.fixture
def problems(tmp_path):
    """A file of five problems on 17 x 13 points, and its arrays."""
    rng = np.random.default_rng(0)
    arrays = {
        "coefficient": rng.uniform(1, 2, (5, 17, 13, 1)).astype(np.float32),
        "boundary": rng.normal(size=(5, 17, 13, 1)).astype(np.float32),
        "scale": np.linspace(3, 5, 5),
    }
    np.savez(tmp_path / "input.npz", **arrays)
    return arrays


def run(place, tmp_path, *options):
    predict.main([str(place), str(tmp_path / "input.npz"), str(tmp_path / "output.npz"), *options])
    with np.load(tmp_path / "output.npz") as stored:
        return dict(stored)


def test_batches_do_not_change_the_solutions(place, problems, tmp_path, capsys):
    whole = run(place, tmp_path)
    expected = operator.load(place).solve(*problems.values())
    np.testing.assert_allclose(whole["solution"], expected, rtol=1e-4, atol=1e-5)
    parts = run(place, tmp_path, f"--points_per_batch={2 * 17 * 13}")
    np.testing.assert_allclose(parts["solution"], whole["solution"], rtol=1e-4, atol=1e-5)
    assert "solution [5, 17, 13, 1]" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.npz", "output.npz"]


def test_refinement_and_estimates_are_those_of_the_operator(place, problems, tmp_path):
    options = ("--refine=2", "--estimate", f"--points_per_batch={3 * 17 * 13}", "--overlap=5")
    found = run(place, tmp_path, *options)
    trained = operator.load(place)
    refined = trained.refine_history(*problems.values(), iterations=2, overlap=5)
    np.testing.assert_allclose(found["solution"], refined.solution, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found["change"], refined.change.T, rtol=1e-3)
    errors = trained.estimate_error(*problems.values(), solution=refined.solution)
    np.testing.assert_allclose(found["error_estimate"], errors.relative, rtol=1e-3)
    np.testing.assert_allclose(found["error_upper"], errors.upper, rtol=1e-3)
    assert found["error_bound"].shape == (5,)


def test_solving_to_a_tolerance_is_that_of_the_operator(place, problems, tmp_path):
    found = run(place, tmp_path, "--tolerance=1e-4", f"--points_per_batch={2 * 17 * 13}")
    solved = operator.load(place).solve(*problems.values(), tolerance=1e-4)
    np.testing.assert_allclose(found["solution"], solved.solution, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(found["iterations"], solved.iterations)
    np.testing.assert_allclose(found["history"], solved.history.T, rtol=0.05)
    assert found["reached"].all()
    assert (found["error_bound"] <= 1e-4).all()


def test_iterations_after_the_tolerance_are_marked(place, problems, tmp_path):
    found = run(place, tmp_path, "--refine=3", "--tolerance=1e9")
    assert np.isfinite(found["change"][:, 0]).all()
    assert np.isnan(found["change"][:, 1:]).all()


def test_one_problem_has_no_sample_axis(place, problems):
    one = {name: array[2] for name, array in problems.items()}
    found = predict.predict_all(operator.load(place), one)
    assert found["solution"].shape == (17, 13, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(scale=None), "must hold the array scale; it holds ['boundary', 'coefficient']"),
        (dict(coefficient=None), "coefficient is needed by darcy"),
        (dict(velocity=np.ones(3)), "it also holds ['velocity']"),
        (
            dict(coefficient=np.zeros((5, 17, 13, 1))),
            "coefficient of darcy must be positive, got 0",
        ),
        (dict(boundary=np.full((5, 17, 13, 1), np.inf)), "boundary must be finite"),
        (dict(coefficient=np.array([{}])), "cannot be read as an .npz file"),
    ],
)
def test_bad_files_end_with_one_line_and_no_output(place, problems, tmp_path, change, message):
    arrays = {**problems, **change}
    np.savez(tmp_path / "input.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(SystemExit) as ended:
        run(place, tmp_path)
    assert message in ended.value.code
    assert ended.value.code.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["input.npz"]


def test_bad_arguments(place, problems, tmp_path, capsys):
    for options, message in [
        (("--equation=burgers",), "equation must be 'darcy'"),
        (("--refine=1", "--patch=99"), "patch must be smaller than the grid"),
    ]:
        with pytest.raises(SystemExit) as ended:
            run(place, tmp_path, *options)
        assert message in ended.value.code
    np.save(tmp_path / "one.npy", np.ones(3))
    for arguments, message in [
        ((place, tmp_path / "missing.npz", tmp_path / "output.npz"), "cannot be read"),
        ((place, tmp_path / "input.npz", tmp_path / "nowhere/output.npz"), "no directory"),
        ((place, tmp_path / "input.npz", tmp_path / "output"), "must be the name of an .npz file"),
        ((place, tmp_path / "one.npy", tmp_path / "output.npz"), "holds one array, not an .npz"),
        ((tmp_path / "nothing", "input.npz", "output.npz"), "there is no such directory"),
    ]:
        with pytest.raises(SystemExit) as ended:
            predict.main([str(argument) for argument in arguments])
        assert message in ended.value.code
    with pytest.raises(SystemExit):
        run(place, tmp_path, "--patch=9")
    assert "--patch is an option of --refine" in capsys.readouterr().err


def test_progress_is_drawn_on_terminals_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    quiet, terminal = io.StringIO(), Terminal()
    for stream in (quiet, terminal):
        report = predict.Progress(stream)
        report(12, 48)
        report(48, 48)
    assert quiet.getvalue() == ""
    assert "[######..................] 12/48" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


@pytest.mark.parametrize("same", ["input.npz", "./input.npz", "link.npz"])
def test_the_input_is_never_overwritten(place, problems, tmp_path, same):
    (tmp_path / "link.npz").symlink_to(tmp_path / "input.npz")
    before = (tmp_path / "input.npz").read_bytes()
    with pytest.raises(SystemExit) as ended:
        predict.main([str(place), str(tmp_path / "input.npz"), f"{tmp_path}/{same}"])
    assert "output must not be the input" in ended.value.code
    assert (tmp_path / "input.npz").read_bytes() == before


def test_solutions_that_are_not_finite_end_with_an_error(place, problems, tmp_path, monkeypatch):
    weights = operator.load(place)
    spoilt = dataclasses.replace(
        weights, params=jax.tree.map(lambda x: np.full_like(x, np.nan), weights.params)
    )
    monkeypatch.setattr(predict.operator, "load", lambda *args, **options: spoilt)
    with pytest.raises(SystemExit) as ended:
        run(place, tmp_path)
    assert "1105 values of the solution in" in ended.value.code
    assert (tmp_path / "output.npz").exists()
