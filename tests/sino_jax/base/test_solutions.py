"""Base solutions against an element-by-element assembly, closed forms and their defining traits."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft
import scipy.sparse
from jax.test_util import check_grads

from sino_jax import base, grid
from sino_jax.base.sine_transform import sine_transform
from sino_jax.boundary import ring
from solvers import darcy as darcy_solver
from solvers import helmholtz as helmholtz_solver

# Compiled whole: operation by operation, every new shape would be compiled dozens of times.
coons = jax.jit(base.coons)
harmonic = jax.jit(base.harmonic, static_argnames="extent")
helmholtz = jax.jit(base.helmholtz, static_argnames=("shift", "extent"))

RECTANGLES = [((12, 7), (1.5, 0.4)), ((3, 8), (1.0, 2.0))]


def random_field(shape, *, channels=1, is_complex=False, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(*shape, channels))
    if is_complex:
        values = values + 1j * rng.normal(size=(*shape, channels))
    return jnp.asarray(values)


def nodes(shape, extent=(1.0, 1.0)):
    axes = [np.linspace(0, length, n) for length, n in zip(extent, shape, strict=True)]
    return np.meshgrid(*axes, indexing="ij")


def q1_matrices(shape, extent):
    """Stiffness and consistent mass matrix by quadrature on each element, without stencils."""

    def hat(corner, x):
        return x if corner else 1 - x

    def assemble(local):
        values = np.repeat(local.ravel(), cells.shape[1])
        return scipy.sparse.coo_matrix((values, (rows, columns))).toarray()

    step = [length / (n - 1) for length, n in zip(extent, shape, strict=True)]
    gauss = [0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3)]
    corners = list(itertools.product((0, 1), (0, 1)))
    stiffness, mass = np.zeros((4, 4)), np.zeros((4, 4))
    for s, t in itertools.product(gauss, gauss):
        value = np.array([hat(a, s) * hat(b, t) for a, b in corners])
        gradient = np.array(
            [((2 * a - 1) * hat(b, t) / step[0], (2 * b - 1) * hat(a, s) / step[1])
             for a, b in corners]
        )  # fmt: skip
        weight = step[0] * step[1] / 4
        stiffness += weight * gradient @ gradient.T
        mass += weight * np.outer(value, value)
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    cells = np.stack(
        [number[a : shape[0] - 1 + a, b : shape[1] - 1 + b].ravel() for a, b in corners]
    )
    rows, columns = np.repeat(cells, 4, axis=0).ravel(), np.tile(cells, (4, 1)).ravel()
    return assemble(stiffness), assemble(mass)


def finite_element_solution(g, coefficient, k_squared, extent):
    shape = g.shape[:2]
    stiffness, mass = q1_matrices(shape, extent)
    matrix = coefficient * stiffness - k_squared * mass
    inner = np.zeros(shape, bool)
    inner[1:-1, 1:-1] = True
    inner = inner.ravel()
    u = np.array(g, np.complex128).reshape(-1, g.shape[-1])
    right = -matrix[np.ix_(inner, ~inner)] @ u[~inner]
    u[inner] = np.linalg.solve(matrix[np.ix_(inner, inner)], right)
    return u.reshape(g.shape)


def every_base(extent):
    return {
        "coons": coons,
        "harmonic": lambda g: harmonic(g, extent=extent),
        "helmholtz": lambda g: helmholtz(g, 7.0, 1.3, extent=extent),
        "shifted helmholtz": lambda g: helmholtz(g, 7.0, 1.3, shift=0.1, extent=extent),
    }


@pytest.mark.parametrize(("shape", "extent"), RECTANGLES)
@pytest.mark.parametrize("is_complex", [False, True])
def test_trace_is_the_boundary_data_and_the_interior_is_never_read(x64, shape, extent, is_complex):
    g = random_field(shape, channels=2, is_complex=is_complex)
    for name, extend in every_base(extent).items():
        u = extend(g)
        np.testing.assert_allclose(ring(u), ring(g), atol=1e-14, err_msg=name)
        np.testing.assert_allclose(extend(ring(g)), u, rtol=1e-10, err_msg=name)


@pytest.mark.parametrize(("shape", "extent"), RECTANGLES)
@pytest.mark.parametrize("is_complex", [False, True])
def test_harmonic_is_the_finite_element_solution(x64, shape, extent, is_complex):
    g = random_field(shape, channels=2, is_complex=is_complex)
    expected = finite_element_solution(g, 3.0, 0.0, extent)
    np.testing.assert_allclose(harmonic(g, extent=extent), expected, atol=1e-12)


@pytest.mark.parametrize(("shape", "extent"), RECTANGLES)
def test_helmholtz_is_the_finite_element_solution(x64, shape, extent):
    g = random_field(shape, is_complex=True)
    k, coefficient = 7.0, 1.3
    expected = finite_element_solution(g, coefficient, k**2, extent)
    actual = helmholtz(g, k, coefficient, extent=extent)
    np.testing.assert_allclose(actual, expected, atol=1e-11 * np.abs(expected).max())


def test_constant_coefficients_agree_with_the_solvers_of_the_data(x64):
    shape, extent = (12, 9), (1.5, 0.8)
    g = random_field(shape, is_complex=True)
    coefficient = jnp.full(shape, 1.3)
    expected = darcy_solver.solve(coefficient, g.real[..., 0], extent=extent)
    np.testing.assert_allclose(harmonic(g.real, extent=extent)[..., 0], expected, atol=1e-12)
    expected = helmholtz_solver.solve(coefficient, 7.0, dirichlet=g[..., 0], extent=extent)
    actual = helmholtz(g, 7.0, 1.3, extent=extent)[..., 0]
    np.testing.assert_allclose(actual, expected, atol=1e-11 * np.abs(expected).max())


def test_shift_regularises_the_finite_element_problem(x64):
    """With a shift the correction v of the start w minimises |M⁻¹A(w + v)|² + shift² k⁴ |v|²."""
    shape, extent, k, coefficient, shift = (6, 8), (1.0, 0.8), 7.0, 1.3, 0.2
    g = random_field(shape)
    stiffness, mass = q1_matrices(shape, extent)
    inner = np.zeros(shape, bool)
    inner[1:-1, 1:-1] = True
    inner = inner.ravel()
    to_residual = np.linalg.solve(
        mass[np.ix_(inner, inner)], (coefficient * stiffness - k**2 * mass)[inner]
    )
    start = np.asarray(coons(g)).ravel()
    square = np.vstack([to_residual[:, inner], shift * k**2 * np.eye(inner.sum())])
    right = np.concatenate([-to_residual @ start, np.zeros(inner.sum())])
    expected = start.copy()
    expected[inner] += np.linalg.lstsq(square, right)[0]
    actual = helmholtz(g, k, coefficient, shift=shift, extent=extent)
    np.testing.assert_allclose(np.asarray(actual).ravel(), expected, atol=1e-11)


def test_zero_wave_number_is_harmonic(x64):
    g = random_field((10, 6))
    np.testing.assert_allclose(helmholtz(g, 0.0, 2.0), harmonic(g), atol=1e-14)


def fitted_order(errors):
    return -np.polyfit(np.arange(len(errors)), np.log2(errors), 1)[0]


@pytest.mark.parametrize("name", ["harmonic", "helmholtz"])
def test_second_order_convergence_to_closed_forms(x64, name):
    extent, k, coefficient = (1.0, 0.7), 6.0, 1.5
    errors = []
    for points in (17, 33, 65):
        x, y = nodes((points, points), extent)
        if name == "harmonic":
            exact = jnp.asarray(np.exp(2 * x) * np.sin(2 * y) + x * y)[..., None]
            u = harmonic(exact, extent=extent)
        else:
            phase = k / np.sqrt(coefficient) * (0.6 * x + 0.8 * y)
            exact = jnp.asarray(np.exp(1j * phase))[..., None]
            u = helmholtz(exact, k, coefficient, extent=extent)
        errors.append(float(np.linalg.norm(u - exact) / np.linalg.norm(exact)))
    assert errors[-1] < 2e-3
    assert fitted_order(errors) > 1.75


def test_coons_reproduces_its_space(x64):
    x, y = nodes((11, 6))
    u = jnp.asarray(np.exp(x) * (1 + 2 * y) + (3 - x) * np.cos(4 * y))[..., None]
    np.testing.assert_allclose(coons(u), u, atol=1e-14)


def test_shift_bounds_the_solution_at_a_resonance(x64):
    shape, k = (17, 13), 8.0
    # The coefficient that puts k² / a on the lowest discrete eigenvalue of the unit square.
    lowest = [
        12 * np.sin(t / 2) ** 2 / (2 + np.cos(t)) * (n - 1) ** 2
        for n, t in zip(shape, [np.pi / (n - 1) for n in shape], strict=True)
    ]
    resonant = k**2 / sum(lowest)
    g = random_field(shape)
    assert jnp.abs(helmholtz(g, k, resonant)).max() > 1e8
    assert jnp.abs(helmholtz(g, k, resonant, shift=0.1)).max() < 30


def test_derivatives_in_data_wave_number_and_coefficient(x64):
    g = random_field((6, 7), is_complex=True)

    @jax.jit
    def energy(g, k, coefficient):
        return jnp.sum(jnp.abs(base.helmholtz(g, k, coefficient, shift=0.1)) ** 2)

    check_grads(energy, (g, jnp.array(3.0), jnp.array(1.2)), order=1, modes=["fwd", "rev"])


def test_single_precision_is_close_to_double(x64):
    x, y = nodes((257, 200))
    g = jnp.asarray(np.sin(3 * x + y**2))[..., None]
    single, double = harmonic(g.astype(jnp.float32)), harmonic(g)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, atol=1e-6)


def test_square_cells_is_the_extent_of_a_rescaled_crop():
    centrings = ("node", "node")
    expected = grid.rescaled_extent((1.0, 1.0), (9, 17), (65, 65), centrings)
    np.testing.assert_allclose(base.square_cells((9, 17)), expected, rtol=1e-12)
    assert base.square_cells((65, 65)) == (1.0, 1.0)


@pytest.mark.parametrize("method", ["matrix", "fft", "auto"])
@pytest.mark.parametrize("points", [1, 2, 31, 50])
def test_sine_transform(x64, method, points):
    values = random_field((3, points, 2))
    actual = sine_transform(values, 1, method=method)
    np.testing.assert_allclose(
        actual, scipy.fft.dst(values, type=1, axis=1, norm="ortho"), atol=1e-13
    )
    np.testing.assert_allclose(sine_transform(actual, 1, method=method), values, atol=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: base.coons(g[:2]), "at least 3 points"),
        (lambda g: base.harmonic(g[None]), "one sample"),
        (lambda g: base.harmonic(g, extent=(1.0, 0.0)), "positive side lengths"),
        (lambda g: base.helmholtz(g, 1.0, 1.0, shift=-0.1), "shift must not be negative"),
        (lambda g: sine_transform(g, 0, method="dct"), "method must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(jnp.zeros((5, 5, 1)))


def test_batches_by_vmap_with_a_wave_number_each(x64):
    g = jnp.stack([random_field((8, 9), seed=seed) for seed in range(3)])
    k, coefficient = jnp.array([1.0, 2.0, 5.0]), jnp.array([1.0, 1.1, 0.9])
    together = jax.jit(jax.vmap(base.helmholtz))(g, k, coefficient)
    for i in range(3):
        alone = helmholtz(g[i], float(k[i]), float(coefficient[i]))
        np.testing.assert_allclose(together[i], alone, atol=1e-12)
