"""Truncated Fourier transforms against numpy's FFT and against closed forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax.nn import bands, dft, spectral

GRIDS = [(15,), (12, 9), (9, 14), (8, 9, 6)]


def _field(grid, seed=0, batch=2, channel=3):
    shape = (grid[0], channel, batch, *grid[1:])
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def _one_channel(values):
    """The field of one example and one channel with these values on its grid."""
    return jnp.asarray(values)[:, None, None]


def _grid_first(field):
    """``[*grid, batch, channel]``, the order of a spectrum."""
    return np.moveaxis(np.asarray(field, np.float64), (2, 1), (-2, -1))


def _complex(spectrum, dimensions):
    parts = np.moveaxis(np.asarray(spectrum), dimensions, 0)
    return parts[0] + 1j * parts[1]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("method", ["matrix", "fft"])
def test_coefficients_are_those_of_the_dft(grid, method):
    field = _field(grid)
    modes = tuple(max(1, bands.largest_band(n) - 1) for n in grid)
    full = np.fft.fftn(_grid_first(field), axes=tuple(range(len(grid))), norm="forward")
    index = np.ix_(*bands.frequencies(modes))  # negative frequencies are negative indices
    ours = _complex(spectral.transform(field, modes, method=method), len(grid))
    np.testing.assert_allclose(ours, full[index], atol=1e-6)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("padding", [0, 3])
def test_matrix_and_fft_paths_agree(grid, padding):
    field = _field(grid)
    period = tuple(n + padding for n in grid)
    modes = bands.kept_modes(None, period)

    @functools.partial(jax.jit, static_argnums=1)
    def round_trip(field, method):
        spectrum = spectral.transform(field, modes, period=period, method=method)
        weights = jax.random.normal(jax.random.key(0), spectrum.shape)
        return spectral.inverse(spectrum * weights, grid, period=period, method=method)

    by_matrix, by_fft = round_trip(field, "matrix"), round_trip(field, "fft")
    np.testing.assert_allclose(by_matrix, by_fft, atol=1e-5)
    gradients = [
        jax.jit(jax.grad(lambda f, m=method: jnp.sum(round_trip(f, m) ** 3)))(field)
        for method in ("matrix", "fft")
    ]
    error = jnp.linalg.norm(gradients[0] - gradients[1]) / jnp.linalg.norm(gradients[1])
    assert error < 1e-5


@pytest.mark.parametrize("grid", [(15,), (9, 7), (7, 9, 5)])
def test_round_trip_on_odd_grids_is_the_identity(grid, x64):
    field = _field(grid).astype(jnp.float64)
    modes = bands.kept_modes(None, grid)
    restored = spectral.inverse(spectral.transform(field, modes), grid)
    np.testing.assert_allclose(restored, field, atol=1e-12)


@pytest.mark.parametrize("method", ["matrix", "fft"])
def test_nyquist_modes_are_dropped_and_zero_modes_kept(method):
    x, y = np.meshgrid(np.arange(8), np.arange(6), indexing="ij")
    smooth = 1.5 + np.cos(2 * np.pi * x / 8) + np.sin(2 * np.pi * (x / 8 - y / 6))
    nyquist = np.cos(np.pi * x) + np.cos(np.pi * y) + np.cos(np.pi * (x + y))
    field = _one_channel(jnp.asarray(smooth + nyquist, jnp.float32))
    spectrum = spectral.transform(field, bands.kept_modes(None, (8, 6)), method=method)
    restored = spectral.inverse(spectrum, (8, 6), method=method)
    np.testing.assert_allclose(restored, _one_channel(smooth), atol=1e-6)


def test_coefficients_do_not_depend_on_the_resolution(x64):
    def coefficients(n, m):
        x, y = np.meshgrid(np.arange(n) / n, np.arange(m) / m, indexing="ij")
        field = np.exp(np.sin(2 * np.pi * x) + np.cos(2 * np.pi * (x + y)))
        return spectral.transform(_one_channel(field), (5, 5))

    np.testing.assert_allclose(coefficients(40, 37), coefficients(64, 80), atol=1e-12)


@pytest.mark.parametrize("grid", GRIDS)
def test_fields_keep_the_values_of_arrays(grid):
    array = np.random.default_rng(0).normal(size=(2, *grid, 3)).astype(np.float32)
    field = spectral.to_field(jnp.asarray(array))
    assert spectral.grid_of(field) == grid
    np.testing.assert_array_equal(_grid_first(field), np.moveaxis(array, 0, -2))
    np.testing.assert_array_equal(spectral.from_field(field), array)


def test_energy_weights_are_parsevals(x64):
    field = _field((9, 7)).astype(jnp.float64)
    modes = bands.kept_modes(None, (9, 7))
    spectrum = spectral.transform(field, modes)
    weights = bands.energy_weights(modes)
    energy = np.einsum("xy,xyrbc->bc", weights, np.asarray(spectrum) ** 2)
    np.testing.assert_allclose(energy, jnp.mean(field**2, axis=(0, 3)).T, rtol=1e-12)


def test_inverse_resamples_band_limited_fields_exactly(x64):
    def field(n, m):
        x, y = np.meshgrid(np.arange(n) / n, np.arange(m) / m, indexing="ij")
        values = np.cos(2 * np.pi * (3 * x - 2 * y)) + np.sin(2 * np.pi * y)
        return _one_channel(values)

    for old, new in [((9, 8), (21, 16)), ((21, 16), (8, 9))]:
        resampled = spectral.inverse(spectral.transform(field(*old), (4, 4)), new)
        np.testing.assert_allclose(resampled, field(*new), atol=1e-12)


@pytest.mark.parametrize("method", ["matrix", "fft"])
def test_longer_period_gives_the_integral_over_the_domain_alone(method, x64):
    """K f(x) = Σ_y κ(x - y) f(y) / P over the grid, with κ of period P > n."""
    n, period, modes = 10, 14, (5,)
    generator = np.random.default_rng(0)
    symbol = generator.normal(size=5) + 1j * generator.normal(size=5)
    symbol[0] = symbol[0].real
    shifts = np.arange(n)[:, None] - np.arange(n)[None]
    kernel = sum(
        (1 if xi == 0 else 2) * (symbol[xi] * np.exp(2j * np.pi * xi * shifts / period)).real
        for xi in range(5)
    )
    field = generator.normal(size=(n, 1, 1))
    parts = (jnp.asarray(part).reshape(5, 1, 1) for part in (symbol.real, symbol.imag))
    weights = spectral.ModeWeights(*parts)
    spectrum = spectral.transform(jnp.asarray(field), modes, period=(period,), method=method)
    result = spectral.inverse(
        spectral.mix(spectrum, weights), (n,), period=(period,), method=method
    )
    np.testing.assert_allclose(result[:, 0, 0], kernel @ field[:, 0, 0] / period, atol=1e-12)


def test_mixing_is_the_complex_product(x64):
    spectrum = jax.random.normal(jax.random.key(0), (4, 5, 2, 3, 6), jnp.float64)
    parts = jax.random.normal(jax.random.key(1), (2, 4, 5, 6, 7), jnp.float64)
    weights, shared = spectral.ModeWeights(*parts), spectral.SharedWeights(*parts[:, 0, 0])
    bias = jax.random.normal(jax.random.key(2), (2, 7), jnp.float64)
    values, matrices = _complex(spectrum, 2), _complex(parts, 0)
    np.testing.assert_allclose(
        _complex(spectral.mix(spectrum, weights), 2),
        np.einsum("xybi,xyio->xybo", values, matrices),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        _complex(spectral.mix_shared(spectrum, shared, bias), 2),
        np.einsum("xybi,io->xybo", values, matrices[0, 0]) + _complex(bias, 0),
        rtol=1e-12,
    )


def test_smaller_spectra_use_the_weights_of_their_own_frequencies():
    weights = spectral.ModeWeights(*jax.random.normal(jax.random.key(1), (2, 6, 11, 2, 4)))
    spectrum = jax.random.normal(jax.random.key(0), (6, 11, 2, 3, 2))
    small = bands.truncate(spectrum, (4, 3))
    expected = bands.truncate(spectral.mix(spectrum, weights), (4, 3))
    np.testing.assert_allclose(spectral.mix(small, weights), expected, atol=1e-6)
    np.testing.assert_array_equal(bands.truncate(bands.embed(small, (6, 6)), (4, 3)), small)
    assert jnp.sum(bands.embed(small, (6, 6)) != 0) == small.size


def test_group_norm_gives_unit_mean_square_at_every_resolution(x64):
    def normalised(n):
        x, y = np.meshgrid(np.arange(n) / n, np.arange(n) / n, indexing="ij")
        waves = [np.exp(np.sin(2 * np.pi * (x - c * y))) for c in range(4)]
        field = jnp.asarray(np.stack(waves, axis=1))[:, :, None]
        spectrum = spectral.transform(field, bands.kept_modes(None, (n, n)))
        gain = jnp.asarray([1.0, 2.0, 1.0, 1.0])
        scaled = spectral.group_norm(spectrum, gain, groups=2, epsilon=0.0)
        return spectral.inverse(scaled, (n, n))[:: n // 16, :, 0, :: n // 16]

    unit = normalised(16) / jnp.asarray([1.0, 2.0, 1.0, 1.0]).reshape(1, 4, 1)
    mean_squares = jnp.mean(unit.reshape(16, 2, 2, 16) ** 2, axis=(0, 2, 3))
    np.testing.assert_allclose(mean_squares, 1.0, rtol=1e-6)
    np.testing.assert_allclose(normalised(48), normalised(64), rtol=1e-6)


def test_few_modes_choose_the_matrix_and_huge_grids_the_fft():
    assert dft.cheapest_method((128, 128), (20, 20), (128, 128)) == "matrix"
    assert dft.cheapest_method((16384,), (8192,), (16384,)) == "fft"


def test_bad_arguments_are_named():
    field = jnp.ones((8, 1, 1, 8))
    with pytest.raises(ValueError, match=r"modes must be between 1 and the \(4, 4\)"):
        spectral.transform(field, (5, 4))
    with pytest.raises(ValueError, match="period must be at least"):
        spectral.transform(field, (2, 2), period=(7, 8))
    with pytest.raises(ValueError, match="more modes than there are weights"):
        spectral.mix(jnp.ones((4, 7, 2, 1, 1)), spectral.ModeWeights(*jnp.ones((2, 3, 5, 1, 1))))
    with pytest.raises(ValueError, match="groups must divide"):
        spectral.group_norm(jnp.ones((4, 7, 2, 1, 3)), jnp.ones(3), groups=2)
