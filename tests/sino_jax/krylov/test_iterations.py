"""Conjugate gradients and GMRES on dense systems whose solutions and spectra are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax.krylov import conjugate_gradients, gmres

SIZE = 24


def identity(fields):
    return fields


def spd(eigenvalues, seed=0):
    """A symmetric matrix with these eigenvalues."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(SIZE, SIZE)))
    return rotation @ np.diag(eigenvalues) @ rotation.T


def times(matrices):
    return lambda fields: jnp.einsum("bij,bj->bi", matrices, fields)


def batch_of_spd():
    """Three systems of different difficulty: 1, 4 and all eigenvalues different."""
    spectra = [
        np.ones(SIZE),
        np.repeat([1.0, 2.0, 5.0, 9.0], SIZE // 4),
        np.linspace(1, 300, SIZE),
    ]
    matrices = jnp.asarray(np.stack([spd(spectrum, i) for i, spectrum in enumerate(spectra)]))
    return matrices, jnp.asarray(np.random.default_rng(9).normal(size=(3, SIZE)))


def run(method, matrices, load, **options):
    options = {"precondition": identity, "start": jnp.zeros_like(load), **options}
    found = jax.jit(lambda b: method(times(matrices), b, **options))(load)
    return found if method is conjugate_gradients else found.iterations


@pytest.mark.parametrize("method", [conjugate_gradients, gmres])
def test_as_many_iterations_as_different_eigenvalues_and_each_example_its_own(x64, method):
    matrices, load = batch_of_spd()
    found = run(method, matrices, load, tolerance=1e-10, iterations=60)
    assert found.reached.all()
    np.testing.assert_array_equal(found.count[:2], [1, 4])
    assert 15 < found.count[2] <= SIZE + 1
    np.testing.assert_allclose(found.solution, jnp.linalg.solve(matrices, load[..., None])[..., 0],
                               rtol=1e-7)  # fmt: skip
    for i, count in enumerate(found.count):
        column = np.asarray(found.history[:, i])
        assert np.isfinite(column[: count + 1]).all()
        assert np.isnan(column[count + 1 :]).all()
        assert column[count - 1] > 1e-10 >= column[count]


@pytest.mark.parametrize("method", [conjugate_gradients, gmres])
def test_a_batch_is_its_examples_one_by_one(x64, method):
    matrices, load = batch_of_spd()
    options = {"tolerance": 1e-6, "iterations": 40}
    together = run(method, matrices, load, **options)
    for i in range(len(load)):
        alone = run(method, matrices[i : i + 1], load[i : i + 1], **options)
        assert int(alone.count[0]) == int(together.count[i])
        np.testing.assert_allclose(alone.solution[0], together.solution[i], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(alone.history[:, 0], together.history[:, i], rtol=1e-6)


def test_conjugate_gradients_minimise_the_energy_of_the_error_over_the_krylov_space(x64):
    matrices, load = batch_of_spd()
    matrix, b = np.asarray(matrices[2]), np.asarray(load[2])
    found = run(conjugate_gradients, matrices[2:], load[2:], tolerance=0.0, iterations=5)
    space = np.stack([np.linalg.matrix_power(matrix, j) @ b for j in range(5)], axis=1)
    space, _ = np.linalg.qr(space)
    best = space @ np.linalg.solve(space.T @ matrix @ space, space.T @ b)
    np.testing.assert_allclose(found.solution[0], best, rtol=1e-8)
    assert not found.reached[0]


def complex_system(seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, 2, SIZE, SIZE))
    matrix = np.eye(SIZE) * 3j + (parts[0] + 1j * parts[1]) / SIZE**0.5
    right = rng.normal(size=(2, SIZE)) + 1j * rng.normal(size=(2, SIZE))
    return jnp.asarray(matrix), jnp.asarray(right)


def test_gmres_has_the_smallest_residual_of_the_krylov_space(x64):
    matrices, load = complex_system()
    found = run(gmres, matrices, load, tolerance=0.0, iterations=6, restart=6)
    for i in range(2):
        matrix, b = np.asarray(matrices[i]), np.asarray(load[i])
        space = np.stack([np.linalg.matrix_power(matrix, j) @ b for j in range(6)], axis=1)
        weights = np.linalg.lstsq(matrix @ space, b)[0]
        best = np.linalg.norm(matrix @ space @ weights - b) / np.linalg.norm(b)
        np.testing.assert_allclose(found.history[6, i], best, rtol=1e-8)
        actual = np.linalg.norm(matrix @ np.asarray(found.solution[i]) - b) / np.linalg.norm(b)
        np.testing.assert_allclose(actual, best, rtol=1e-8)


def test_gmres_restarts_and_reports_the_residuals_that_it_reaches(x64):
    matrices, load = complex_system()
    found = run(gmres, matrices, load, tolerance=1e-9, iterations=80, restart=5)
    assert found.reached.all()
    assert (found.count > 5).all()
    residual = jnp.linalg.norm(load - times(matrices)(found.solution), axis=1)
    assert (residual <= 1e-9 * jnp.linalg.norm(load, axis=1)).all()
    history = np.asarray(found.history)
    assert (np.diff(history[: int(found.count.min()) + 1], axis=0) <= 1e-12).all()


def test_a_preconditioner_that_is_not_linear_is_allowed_on_the_right(x64):
    matrices, load = complex_system()
    inverse = jnp.linalg.inv(matrices)

    def wrong_by_a_third(fields):
        """Nearly the inverse, off by an amount that depends on the vector in no linear way."""
        noise = jnp.cos(40 * jnp.abs(fields)).astype(fields.dtype)
        scale = jnp.linalg.norm(fields, axis=1, keepdims=True).astype(fields.dtype)
        return times(inverse)(fields) + 0.02 * scale * noise

    plain = run(gmres, matrices, load, tolerance=1e-8, iterations=40)
    flexible = run(gmres, matrices, load, tolerance=1e-8, iterations=40, flexible=wrong_by_a_third)
    assert flexible.reached.all()
    assert (flexible.count < plain.count - 5).all()
    np.testing.assert_allclose(times(matrices)(flexible.solution), load, atol=1e-6)


def test_flexible_directions_minimise_the_energy_and_the_inverse_needs_one(x64):
    matrices, load = batch_of_spd()
    inverse = jnp.linalg.inv(matrices)
    options = {"tolerance": 1e-8, "iterations": 60}
    exact = run(
        conjugate_gradients, matrices, load, flexible=lambda u, r: times(inverse)(r), **options
    )
    np.testing.assert_array_equal(exact.count, 1)

    def distorted(solution, residual, inverse=inverse):
        """Neither linear nor symmetric."""
        return times(inverse)(residual) * (1 + 0.3 * jnp.tanh(20 * residual))

    truth = times(inverse)(load)
    energies = []
    for iterations in range(1, 8):
        few = run(conjugate_gradients, matrices, load, tolerance=0.0, iterations=iterations,
                  flexible=distorted)  # fmt: skip
        error = few.solution - truth
        energies.append(jnp.sum(error * times(matrices)(error), axis=1))
    assert (jnp.diff(jnp.stack(energies), axis=0) < 1e-25).all()
    plain = run(conjugate_gradients, matrices[2:], load[2:], **options)
    found = run(conjugate_gradients, matrices[2:], load[2:],
                flexible=lambda u, r: distorted(u, r, inverse[2:]),
                **options)  # fmt: skip
    assert found.reached.all()
    assert 2 * found.count[0] <= plain.count[0]


def test_the_map_itself_as_flexible_changes_nothing(x64):
    matrices, load = batch_of_spd()
    halves = lambda fields: 0.5 * fields  # noqa: E731
    options = {"tolerance": 1e-6, "iterations": 40, "precondition": halves}
    plain = run(conjugate_gradients, matrices, load, **options)
    same = run(conjugate_gradients, matrices, load, flexible=lambda u, r: halves(r), **options)
    np.testing.assert_array_equal(same.count, plain.count)
    np.testing.assert_allclose(same.solution, plain.solution, rtol=1e-6)


def test_a_loose_tolerance_does_not_overlook_a_resonance(x64):
    """Half of the solution, but 0.5 % of the residual, is in a nearly singular direction."""
    eigenvalues = np.append(np.linspace(1, 3, SIZE - 1), 0.01)
    load = np.append(np.full(SIZE - 1, SIZE**-0.5), 0.005)
    matrix, load = jnp.asarray(np.diag(eigenvalues))[None], jnp.asarray(load)[None]
    found = run(gmres, matrix, load, tolerance=1e-2, iterations=SIZE)
    truth = load / jnp.asarray(eigenvalues)[None]
    error = jnp.linalg.norm(found.solution - truth) / jnp.linalg.norm(truth)
    assert found.reached[0]
    assert error < 1e-2
    # The residual alone, times what the process knew by then, would have ended it before.
    early = run(gmres, matrix, load, tolerance=0.0, iterations=int(np.argmax(
        np.asarray(found.history[:, 0]) <= 1e-2)))  # fmt: skip
    assert jnp.linalg.norm(early.solution - truth) > 0.3 * jnp.linalg.norm(truth)


def test_the_amplification_is_the_norm_of_the_inverse_and_infinite_if_there_is_none(x64):
    eigenvalues = np.linspace(1, 4, SIZE)
    small, singular = eigenvalues.copy(), eigenvalues.copy()
    small[0], singular[0] = -1e-3, 0
    matrices = jnp.asarray(np.stack([spd(e) for e in (eigenvalues, small, singular)]))
    load = jnp.asarray(np.random.default_rng(0).normal(size=(3, SIZE)))
    found = jax.jit(
        lambda b: gmres(times(matrices), b, precondition=identity, start=jnp.zeros_like(b),
                        tolerance=1e-7, iterations=SIZE)
    )(load)  # fmt: skip
    np.testing.assert_array_equal(found.iterations.reached, [True, True, False])
    np.testing.assert_allclose(found.amplification[:2], [1, 1000], rtol=0.05)
    assert found.amplification[2] > 1e12
    truth = jnp.linalg.solve(matrices[:2], load[:2, :, None])[..., 0]
    error = jnp.linalg.norm(found.iterations.solution[:2] - truth, axis=1)
    assert (error <= 1.1e-7 * jnp.linalg.norm(load[:2], axis=1)).all()


def test_a_start_that_is_the_solution_takes_no_iteration_and_a_zero_load_no_nan(x64):
    matrices, _ = batch_of_spd()
    load = jnp.zeros((3, SIZE))
    for method in (conjugate_gradients, gmres):
        found = run(method, matrices, load, tolerance=1e-8, iterations=5)
        np.testing.assert_array_equal(found.count, 0)
        np.testing.assert_array_equal(found.solution, 0)
        assert found.reached.all()
