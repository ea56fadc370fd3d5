"""Exported operators: any batch, without this package, with the solutions of `solve`."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from sino_jax import equations
from sino_jax.models import network
from sino_jax.operator import Operator
from sino_jax.operator import export as exporting

FIELDS = {"n_modes": (2, 2), "hidden_channels": 4, "n_layers": 1}


def random_operator(name, grid):
    equation = equations.get(name)
    model, apply_fn = network.build({"name": "fno", **FIELDS}, equation, None)
    params = network.init(model, equation, grid, jax.random.key(0))
    meta = {"scales": [4.0], "scale_range": [1.0, 9.0], "grids": [(5, 6), grid]}
    return Operator(equation, apply_fn, params, meta)


def problems(equation, grid, count):
    rng = np.random.default_rng(count)
    arrays = {}
    if equation.coefficient_channels:
        shape = (count, *grid, equation.coefficient_channels)
        arrays["coefficient"] = rng.uniform(1, 2, shape).astype(np.float32)
    if equation.sides:
        field = rng.normal(size=(2, count, *grid, equation.solution_channels)).astype(np.float32)
        arrays["boundary"] = (field[0] + 1j * field[1]) if equation.complex_valued else field[0]
    return arrays, np.linspace(2, 4, count, dtype=np.float32)


@pytest.mark.parametrize("name", ["helmholtz", "burgers", "navier_stokes"])
def test_a_program_takes_any_batch_and_solves_as_the_operator(name):
    grid = (9, 8)
    trained = random_operator(name, grid)
    program = exporting.exported(trained.equation, trained.apply_fn, trained.params, grid)
    assert program.platforms == ("cpu", "cuda")
    for count in (1, 3):
        arrays, scale = problems(trained.equation, grid, count)
        expected = trained.solve(arrays.get("coefficient"), arrays.get("boundary"), scale)
        found = program.call(*arrays.values(), scale)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


WITHOUT_THE_PACKAGE = """
import sys
sys.modules["sino_jax"] = None
import jax, jax.export, numpy as np, pathlib
program = jax.export.deserialize(bytearray(pathlib.Path("darcy.bin").read_bytes()))
given = np.load("given.npz")
solution = jax.jit(program.call)(given["coefficient"], given["boundary"], given["scale"])
np.save("solution.npy", solution)
"""


def test_a_file_is_run_by_jax_alone(tmp_path):
    pytest.importorskip("flatbuffers")
    grid = (9, 8)
    trained = random_operator("darcy", grid)
    path = trained.export(tmp_path / "darcy.bin")
    assert [entry.name for entry in tmp_path.iterdir()] == ["darcy.bin"]
    arrays, scale = problems(trained.equation, grid, 3)
    np.savez(tmp_path / "given.npz", **arrays, scale=scale)
    subprocess.run([sys.executable, "-c", WITHOUT_THE_PACKAGE], cwd=tmp_path, check=True)
    expected = trained.solve(**arrays, scale=scale)
    solution = np.load(tmp_path / "solution.npy")
    np.testing.assert_allclose(solution, expected, rtol=1e-4, atol=1e-5)

    program = jax.export.deserialize(bytearray(path.read_bytes()))
    with pytest.raises(ValueError, match="shape"):
        program.call(*(array[:, :-1] for array in arrays.values()), scale)


def test_gradients_of_a_program_that_has_them(tmp_path):
    pytest.importorskip("flatbuffers")
    trained = random_operator("darcy", (9, 8))
    path = trained.export(tmp_path / "darcy.bin", platforms=("cpu",), vjp_order=1)
    program = jax.export.deserialize(bytearray(path.read_bytes()))
    arrays, scale = problems(trained.equation, (9, 8), 2)
    given = tuple(map(jax.numpy.asarray, (arrays["coefficient"], arrays["boundary"], scale)))
    found = jax.grad(lambda a: program.call(a, *given[1:]).sum())(given[0])
    expected = jax.grad(lambda a: trained.solve(a, *given[1:]).sum())(given[0])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_a_grid_of_another_dimension_is_refused():
    trained = random_operator("darcy", (9, 8))
    with pytest.raises(ValueError, match="a number of points for each of x, y"):
        trained.export("nowhere", grid=(9, 9, 9))
