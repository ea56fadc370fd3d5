"""The viscous Burgers equation on the periodic unit interval.

    u_t + (u²/2)_x = ν u_xx,    x in [0, 1),    x_j = j / n

solved pseudo-spectrally without aliasing. The interval has length 1 and the velocity is of order 1
(`sample_initial`), so Re = 1/ν. Cropping x and t by the same λ, and rescaling the crop to the
extent of the whole, gives a solution for ν/λ: Re becomes λ Re.
"""

import functools
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from solvers import fourier, random_fields, time_stepping


def solve(
    u0: Float[Array, "x"],
    nu: float | Float[Array, ""],
    times: time_stepping.Times,
    *,
    order: Literal[2, 4] = 4,
    cfl: float = 1.0,
) -> Float[Array, "time x"]:
    """The solution at `times`, in the precision of `u0`.

    Args:
      u0: initial values at x_j = j / n. Modes above the cut-off of `solvers.fourier` are dropped.
      nu: viscosity.
      times: increasing, the first at least 0 (0 returns `u0` as row 0). They must be concrete:
        close over them under `jit`.
      order: of the time stepping, see `time_stepping.METHODS`.
      cfl: largest product of a step with max |u| times the largest kept wave number.

    Raises:
      ValueError: times that do not increase or cannot be reached under the CFL bound, u0 with NaN
        or fewer than 4 points, ν that is not positive.
      BlowUpError: with the time at which the solution blew up.
      Traced values cannot be checked: under `jit` and `vmap` the frames are NaN from a failure on,
      and `simulate` says when that was.
    """
    time_stepping.check_initial("u0", u0)
    time_stepping.check_positive("nu", nu)
    result = simulate(u0, nu, times, order=order, cfl=cfl)
    time_stepping.raise_on_failure(result)
    return result.frames


def simulate(
    u0: Float[Array, "x"],
    nu: float | Float[Array, ""],
    times: time_stepping.Times,
    *,
    order: Literal[2, 4] = 4,
    cfl: float = 1.0,
) -> time_stepping.Trajectory:
    """`solve` without errors: for `vmap`, with `time_stepping.raise_on_failure` on the result."""
    times = time_stepping.check_times(times)
    nu, cfl = jnp.asarray(nu, u0.dtype), jnp.asarray(cfl, u0.dtype)
    return _simulate(u0, nu, cfl, times=times, order=order)


@functools.partial(jax.jit, static_argnames=("times", "order"))
def _simulate(u0, nu, cfl, *, times, order):
    (points,) = u0.shape
    (k,) = fourier.wave_numbers(u0.shape, u0.dtype)
    k = 2 * jnp.pi * k

    def nonlinear_fn(u_hat):
        u = fourier.to_grid(u_hat, u0.shape)
        return fourier.differentiate(-k / 2, fourier.to_modes(u**2))

    def rate_fn(u_hat):
        fastest = jnp.max(jnp.abs(fourier.to_grid(u_hat, u0.shape)))
        return 2 * jnp.pi * fourier.cutoff(points) * fastest

    return time_stepping.trajectory(
        functools.partial(time_stepping.METHODS[order], -nu * k**2, nonlinear_fn),
        fourier.to_modes(u0),
        times,
        rate_fn=rate_fn,
        observe_fn=lambda u_hat: fourier.to_grid(u_hat, u0.shape),
        cfl=cfl,
    )


def sample_initial(
    key: PRNGKeyArray, n: int, *, modes: int = 64, dtype: jax.typing.DTypeLike = float
) -> Float[Array, "n"]:
    """A random initial condition of zero mean: covariance 625 (-Δ + 25)^(-2), periodic.

    Root mean square 0.6; shocks form at t = 0.2 or so. One key gives one function for every `n`.
    """
    spectrum = random_fields.matern(2.0, 5.0, basis="fourier")
    # The Matérn spectrum has prefactor τ² = 25 in the covariance, a 25th of the one wanted here.
    return 5 * random_fields.sample(key, (n,), spectrum, basis="fourier", modes=modes, dtype=dtype)


def window(frames: Float[Array, "*batch time x"]) -> Float[Array, "*batch time half"]:
    """What the models see: the left half of the interval, every second point; not periodic.

    The field is ``[t, x]`` and node-centred in both: its first row is the initial condition if the
    first time is 0, its first and last columns are the time-dependent boundary values. ν keeps the
    value that it has on the whole interval.
    """
    return frames[..., : frames.shape[-1] // 2 : 2]
