"""The incompressible Navier-Stokes equations on a periodic square, in vorticity form.

    ω_t + u·∇ω = ν Δω - μ ω + f,    ω = ∂_x v - ∂_y u,    u = ∂_y ψ,  v = -∂_x ψ,  -Δψ = ω

The square has side 1 (or `side`) and ν = 1/Re. The initial velocity of `sample_initial` has root
mean square 1 on it: the flow crosses the square in one unit of time, and Re is the Reynolds number
of the square. Rescaling a crop of side ratio λ to the extent of the whole gives a solution

    for Re λ²  if only space is rescaled, ω being kept (the vorticity problem),
    for Re λ   if time is cropped and rescaled, too, u being kept (the space-time velocity problem).

The nonlinear term is evaluated as N = -(∂_xx - ∂_yy)(uv) - ∂_xy(v² - u²), the curl of the
divergence of u⊗u: four real Fourier transforms instead of the five of u·∇ω.
"""

import functools
import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from solvers import checks, fourier, random_fields, time_stepping


def solve(
    vorticity: Float[Array, "x y"],
    reynolds: float | Float[Array, ""],
    times: time_stepping.Times,
    *,
    forcing: Float[Array, "_ _"] | None = None,
    drag: float = 0.0,
    side: float = 1.0,
    order: Literal[2, 4] = 4,
    cfl: float = 1.0,
) -> Float[Array, "time x y"]:
    """The vorticity at `times`, in the precision of the initial one.

    Args:
      vorticity: initial values at (x_i, y_j) = side (i / nx, j / ny), with mean zero: periodic
        velocities have no other. Modes above the 2/3 cut-off (`solvers.fourier`) are dropped.
      reynolds: 1/ν.
      times: increasing, the first at least 0 (0 returns the initial vorticity as frame 0). They
        must be concrete: close over them under `jit`.
      forcing: steady forcing f of the vorticity, such as `kolmogorov_forcing`; none by default.
      drag: the rate μ of a friction -μ ω, at least 0. Forced flow in two dimensions needs one to be
        statistically steady within a time that does not grow with Re: its energy goes to the
        largest scales, where viscosity takes a time of order Re to dissipate it.
      side: of the periodic square.
      order: of the time stepping, see `time_stepping.METHODS`.
      cfl: largest product of a step with max(|u| K_x + |v| K_y), K the largest kept wave numbers.

    Raises:
      ValueError: times that do not increase or cannot be reached under the CFL bound, a vorticity
        with NaN, with a mean, of integers, or with fewer than 4 points on an axis, a forcing of
        another shape, with NaN or with a mean, reynolds, side or cfl not positive and finite, a
        drag that is negative.
      BlowUpError: with the time at which the vorticity blew up.
      Traced values cannot be checked: under `jit` and `vmap` the frames are NaN from a failure on,
      and `simulate` says when that was.
    """
    vorticity = checks.array("vorticity", vorticity, ndim=2)
    time_stepping.check_initial("vorticity", vorticity)
    _check_mean("vorticity", vorticity)
    if forcing is not None:
        forcing = checks.array("forcing", forcing, ndim=2)
        checks.finite("forcing", forcing)
        _check_mean("forcing", forcing)
    checks.positive("reynolds", reynolds)
    checks.positive("side", side)
    if not drag >= 0:
        raise ValueError(f"drag must be at least 0, got {drag}")
    options = {"forcing": forcing, "drag": drag, "side": side, "order": order, "cfl": cfl}
    result = simulate(vorticity, reynolds, times, **options)
    time_stepping.raise_on_failure(result)
    return result.frames


def simulate(
    vorticity: Float[Array, "x y"],
    reynolds: float | Float[Array, ""],
    times: time_stepping.Times,
    *,
    forcing: Float[Array, "_ _"] | None = None,
    drag: float = 0.0,
    side: float = 1.0,
    order: Literal[2, 4] = 4,
    cfl: float = 1.0,
) -> time_stepping.Trajectory:
    """`solve` without errors: for `vmap`, with `time_stepping.raise_on_failure` on the result."""
    vorticity = checks.array("vorticity", vorticity, ndim=2)
    times = time_stepping.check_options(times, order, cfl)
    if forcing is not None:
        forcing = checks.array("forcing", forcing, ndim=2).astype(vorticity.dtype)
        checks.same_shape("forcing", forcing, vorticity.shape, "vorticity")
    scalars = (jnp.asarray(value, vorticity.dtype) for value in (reynolds, drag, side, cfl))
    return _simulate(vorticity, forcing, *scalars, times=times, order=order)


@functools.partial(jax.jit, static_argnames=("times", "order"))
def _simulate(vorticity, forcing, reynolds, drag, side, cfl, *, times, order):
    shape = vorticity.shape
    kx, ky = _wave_numbers(shape, side)
    forcing_hat = None if forcing is None else fourier.to_modes(forcing)

    def nonlinear_fn(w_hat):
        u, v = _velocity(w_hat, shape, side)
        advection_hat = fourier.scale(kx**2 - ky**2, fourier.to_modes(u * v))
        advection_hat += fourier.scale(kx * ky, fourier.to_modes(v**2 - u**2))
        return advection_hat if forcing_hat is None else advection_hat + forcing_hat

    def rate_fn(w_hat):
        u, v = _velocity(w_hat, shape, side)
        fastest = jnp.abs(u) * fourier.cutoff(shape[0]) + jnp.abs(v) * fourier.cutoff(shape[1])
        return 2 * jnp.pi / side * jnp.max(fastest)

    linear = -(kx**2 + ky**2) / reynolds - drag
    return time_stepping.trajectory(
        functools.partial(time_stepping.METHODS[order], linear, nonlinear_fn),
        fourier.to_modes(vorticity),
        times,
        rate_fn=rate_fn,
        observe_fn=lambda w_hat: fourier.to_grid(w_hat, shape),
        cfl=cfl,
    )


def velocity(vorticity: Float[Array, "x y"], *, side: float = 1.0) -> Float[Array, "x y 2"]:
    """The velocity (u, v) of zero mean that has this vorticity, below the 2/3 cut-off."""
    side = jnp.asarray(side, vorticity.dtype)
    return jnp.stack(_velocity(fourier.to_modes(vorticity), vorticity.shape, side), axis=-1)


def _wave_numbers(shape: Sequence[int], side: Float[Array, ""]) -> tuple[Array, Array]:
    kx, ky = fourier.wave_numbers(shape, side.dtype)
    return 2 * jnp.pi / side * kx, 2 * jnp.pi / side * ky


def _velocity(w_hat: Array, shape: Sequence[int], side: Float[Array, ""]) -> tuple[Array, Array]:
    kx, ky = _wave_numbers(shape, side)
    # The mode k = 0 is zero; any non-zero divisor keeps it so.
    laplacian = jnp.maximum(kx**2 + ky**2, (2 * jnp.pi / side) ** 2)
    u = fourier.to_grid(fourier.differentiate(ky / laplacian, w_hat), shape)
    v = fourier.to_grid(fourier.differentiate(-kx / laplacian, w_hat), shape)
    return u, v


def kolmogorov_forcing(
    shape: Sequence[int],
    *,
    wave_number: int = 4,
    side: float = 1.0,
    dtype: jax.typing.DTypeLike = float,
) -> Float[Array, "x y"]:
    """Curl of the force sin(k y) in the x direction: f = -k cos(k y), k = 2π wave_number / side."""
    k = 2 * jnp.pi * wave_number / side
    y = side / shape[1] * jnp.arange(shape[1], dtype=jax.dtypes.canonicalize_dtype(dtype))
    return jnp.broadcast_to(-k * jnp.cos(k * y)[None, :], shape)


def sample_initial(
    key: PRNGKeyArray, n: int, *, peak: float = 4.0, dtype: jax.typing.DTypeLike = float
) -> Float[Array, "n n"]:
    """A random vorticity on the unit square whose velocity has expected mean square 1, smooth.

    The modes have variance ∝ |j|² exp(-2 |j|² / peak²) at k = 2πj, so that most of the enstrophy is
    at j near `peak`. Turbulence develops within one unit of time: drop that. One key gives one
    function for every `n`.
    """

    def spectrum(frequencies):
        k2 = jnp.sum(frequencies**2, axis=-1)
        energy = jnp.where(k2 > 0, jnp.exp(-2 * k2 / peak**2), 0)
        return 2 * jnp.pi * jnp.sqrt(k2 * energy / energy.sum())

    # Left out are modes that would have 1e-11 of the largest amplitude, or less.
    modes = math.ceil(5 * peak)
    return random_fields.sample(key, (n, n), spectrum, basis="fourier", modes=modes, dtype=dtype)


def vorticity_window(frames: Float[Array, "*batch x y"]) -> Float[Array, "*batch half_x half_y"]:
    """What the autoregressive models see: a quarter of the square, cell-centred, not periodic."""
    return frames[..., : frames.shape[-2] // 2, : frames.shape[-1] // 2]


def velocity_window(
    frames: Float[Array, "time x y"], *, side: float = 1.0
) -> Float[Array, "half_x half_y time 2"]:
    """What the space-time models see: the velocity in a quarter of the square, node-centred."""
    _, nx, ny = frames.shape
    u = jax.vmap(lambda w: velocity(w, side=side))(frames)[:, : nx // 2, : ny // 2]
    return jnp.moveaxis(u, 0, 2)


def _check_mean(name: str, field: Float[Array, "x y"]) -> None:
    if isinstance(field, jax.core.Tracer):
        return
    mean, size = float(field.mean()), float(jnp.abs(field).max())
    if abs(mean) > 1e-6 * size:  # data that was ever stored in single precision passes
        raise ValueError(f"{name} must have mean zero on a periodic square, got mean {mean:.3g}")
