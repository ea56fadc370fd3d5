"""Helmholtz equation: plane waves, exact discrete scale-consistency, gradients, resonance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvers import darcy, elliptic, helmholtz, q1
from tests.solvers import sparse_reference

EXTENT = (1.2, 0.9)


def plane_wave(shape, k, extent, angle=0.6):
    """exp(ik d·x) and its impedance data ∂ₙu - iku on the sides (a = 1), averaged at corners."""
    axes = [np.linspace(0, length, n) for length, n in zip(extent, shape, strict=True)]
    x, y = np.meshgrid(*axes, indexing="ij")
    d = np.cos(angle), np.sin(angle)
    u = np.exp(1j * k * (d[0] * x + d[1] * y))
    return u, d


@pytest.mark.parametrize("condition", ["dirichlet", "impedance"])
def test_second_order_in_l2_on_plane_waves(condition, x64):
    k = 2.0
    sizes = [(9, 7), (13, 10), (25, 19)]
    errors = []
    for shape in sizes:
        u, direction = plane_wave(shape, k, EXTENT)
        if condition == "dirichlet":
            data = u
        else:
            # At a corner the normals of both sides meet: u is smooth there, so is their mean.
            normal = np.zeros((2, *shape))
            normal[0, 0], normal[0, -1], normal[1, :, 0], normal[1, :, -1] = -1, 1, -1, 1
            sides = np.maximum(1, np.abs(normal).sum(0))
            slope = (normal[0] * direction[0] + normal[1] * direction[1]) / sides
            data = 1j * k * (slope - 1) * u
        got = helmholtz.solve(jnp.ones(shape), k, extent=EXTENT, **{condition: jnp.asarray(data)})
        errors.append(np.sqrt(np.mean(np.abs(np.asarray(got) - u) ** 2)))
    order = -np.polyfit(np.log([shape[0] - 1 for shape in sizes]), np.log(errors), 1)[0]
    assert order >= 1.9


def test_impedance_problem_agrees_with_a_sparse_solver_at_k_50(x64):
    rng = np.random.default_rng(0)
    a = np.where(rng.standard_normal((61, 61)) > 0, 2.0, 12.0)
    g, f = rng.standard_normal((2, 61, 61)) + 1j * rng.standard_normal((2, 61, 61))
    u = helmholtz.solve(jnp.asarray(a), 50.0, impedance=jnp.asarray(g), forcing=jnp.asarray(f))
    matrix = sparse_reference.assemble(a, shift=2500.0, robin=50j)
    # ∫ f v and ∮ g v, from the reference's own mass matrices.
    nothing = np.zeros_like(a)
    load = sparse_reference.assemble(nothing, shift=-1.0) @ f.ravel()
    load = load + sparse_reference.assemble(nothing, robin=-1.0) @ g.ravel()
    expected = sparse_reference.solve(matrix, load.reshape(a.shape))
    assert np.linalg.norm(u - expected) < 1e-10 * np.linalg.norm(expected)


def test_a_restricted_solution_solves_the_rescaled_problem(x64):
    n, k = 129, 10.0
    instance = helmholtz.sample(jax.random.key(3), n, k)
    points = 41
    box = (slice(77, 77 + points), slice(20, 20 + points))
    ratio = (points - 1) / (n - 1)
    expected = instance.solution[box]
    u = helmholtz.solve(instance.coefficient[box], ratio * k, dirichlet=expected)
    assert jnp.linalg.norm(u - expected) < 1e-9 * jnp.linalg.norm(expected)


@pytest.mark.parametrize("condition", ["dirichlet", "impedance"])
def test_gradients_agree_with_finite_differences(condition, x64):
    keys = jax.random.split(jax.random.key(0), 6)
    shape = (9, 12)
    a = jnp.exp(0.3 * jax.random.normal(keys[0], shape))
    data, weight, change = jax.random.normal(keys[1], (3, *shape), complex)
    da = jax.random.normal(keys[2], shape)

    def value(a, data, k):
        u = helmholtz.solve(a, k, extent=EXTENT, **{condition: data})
        return jnp.sum((weight * u).real)

    k, step = jnp.asarray(5.0), 1e-5
    # One compiled program gives both.
    both = jax.jit(jax.value_and_grad(value, argnums=(0, 1, 2)))
    slopes = both(a, data, k)[1]
    central = lambda high, low: (both(*high)[0] - both(*low)[0]) / (2 * step)  # noqa: E731
    by_a = central((a + step * da, data, k), (a - step * da, data, k))
    by_data = central((a, data + step * change, k), (a, data - step * change, k))
    by_k = central((a, data, k + step), (a, data, k - step))
    np.testing.assert_allclose(jnp.vdot(slopes[0], da), by_a, rtol=1e-6)
    # JAX's gradient of a real function of complex z is ∂f/∂Re z - i ∂f/∂Im z.
    np.testing.assert_allclose(jnp.sum(slopes[1] * change).real, by_data, rtol=1e-6)
    np.testing.assert_allclose(slopes[2], by_k, rtol=1e-6)


def test_resonance_is_named_with_its_wave_number_and_marked_under_jit(x64):
    # Eigenvalues of the bilinear elements on the square are sums of those of the linear elements.
    n = 17
    angle = np.pi / (n - 1)
    line = [6 * (n - 1) ** 2 * (1 - np.cos(m * angle)) / (2 + np.cos(m * angle)) for m in (1, 2)]
    k = float(np.sqrt(sum(line)))
    a, data = jnp.ones((n, n)), jnp.ones((n, n), complex)
    with pytest.raises(ValueError, match=rf"resonant.*k = {k}"):
        helmholtz.solve(a, k, dirichlet=data)
    marked = jax.jit(lambda k: helmholtz.solve(a, k, dirichlet=data))
    assert jnp.isnan(marked(k)).all()
    near = marked(k + 1e-4)
    assert jnp.isfinite(near).all()


def test_batches_in_single_precision(x64):
    sample = lambda key: helmholtz.sample(key, 9, 5.0)  # noqa: E731
    batch = jax.jit(jax.vmap(sample))(jax.random.split(jax.random.key(0), 2))
    single = jax.vmap(lambda a, g: helmholtz.solve(a, 5.0, dirichlet=g))
    u = jax.jit(single)(batch.coefficient.astype(jnp.float32), batch.boundary.astype(jnp.complex64))
    assert u.dtype == jnp.complex64
    error = jnp.linalg.norm(u.astype(complex) - batch.solution) / jnp.linalg.norm(batch.solution)
    assert error < 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of dirichlet and impedance"),
        ({"dirichlet": np.ones((5, 5))}, "dirichlet must be complex"),
        ({"impedance": np.ones((5, 6))}, "impedance must have the shape"),
        ({"impedance": np.ones((5, 5)), "coefficient": -np.ones((5, 5))}, "positive and finite"),
        ({"impedance": np.ones((2, 5)), "coefficient": np.ones((2, 5))}, "at least 3 x 3"),
    ],
)
def test_bad_input_is_named(options, message, x64):
    fields = {"coefficient": np.ones((5, 5))} | options
    fields = {name: jnp.asarray(field) for name, field in fields.items()}
    with pytest.raises(ValueError, match=message):
        helmholtz.solve(k=1.0, **fields)


def test_random_waves_solve_the_equation_in_the_mean_medium(x64):
    """Their traces determine them for a = 1, up to the second order of the finite elements."""
    k, errors = 6.0, []
    for n in (17, 33):
        wave = helmholtz.sample_boundary(jax.random.key(3), (n, n), k)
        solution = helmholtz.solve(jnp.ones((n, n)), k, dirichlet=wave)
        errors.append(float(jnp.linalg.norm(solution - wave) / jnp.linalg.norm(wave)))
    assert errors[1] < 0.02
    assert errors[0] / errors[1] > 2**1.9


def test_random_waves_have_unit_variance_in_both_parts_and_no_preferred_phase(x64):
    keys = jax.random.split(jax.random.key(0), 2000)
    centre = jax.vmap(lambda key: helmholtz.sample_boundary(key, (3, 5), 20.0)[1, 2])(keys)
    np.testing.assert_allclose(np.mean(np.abs(centre) ** 2), 2.0, rtol=0.1)
    assert abs(np.mean(centre**2)) < 0.15


@pytest.mark.slow
def test_a_medium_with_a_nearly_singular_block_is_solved_to_round_off(x64):
    """Without pivots inside the large blocks, this one's relative residual was 1e-3."""
    shape, k = (513, 513), 50.0
    key = jax.random.key(2)
    coefficient = helmholtz.sample_coefficient(key, shape)
    impedance = darcy.sample_boundary(key, shape)
    solution = helmholtz.solve(coefficient, k, impedance=impedance)
    operator = q1.Operator(coefficient, shift=jnp.asarray(k**2), robin=jnp.asarray(1j * k))
    load = q1.boundary_load(impedance.astype(complex), (1.0, 1.0))
    assert elliptic.residual(operator, solution, load) < 1e-14
