"""The viscous Burgers equation on the periodic unit interval.

    u_t + (u²/2)_x = ν u_xx,    x in [0, 1),    x_j = j / n

solved pseudo-spectrally without aliasing. The interval has length 1 and Re stands for 1/ν; the
velocity has the size that an `InitialLaw` gives it. Cropping x and t by the same λ, and rescaling
the crop to the extent of the whole, gives a solution for ν/λ: Re becomes λ Re.
"""

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from solvers import checks, fourier, random_fields, time_stepping


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
      ValueError: times that do not increase or cannot be reached under the CFL bound, u0 with NaN,
        of integers or of fewer than 4 points, ν or cfl that are not positive and finite.
      BlowUpError: with the time at which the solution blew up.
      Traced values cannot be checked: under `jit` and `vmap` the frames are NaN from a failure on,
      and `simulate` says when that was.
    """
    u0 = checks.array("u0", u0, ndim=1)
    time_stepping.check_initial("u0", u0)
    checks.positive("nu", nu)
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
    u0 = checks.array("u0", u0, ndim=1)
    times = time_stepping.check_options(times, order, cfl)
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


class InitialLaw(NamedTuple):
    """Fourier coefficients of standard deviation amplitude · ((2πj)² + τ²)^(-γ/2), no mean."""

    amplitude: float
    tau: float
    gamma: float

    def spectrum(self, frequencies: Float[Array, "*modes 1"]) -> Float[Array, "*modes"]:
        eigenvalue = (2 * jnp.pi) ** 2 * jnp.sum(frequencies**2, axis=-1)
        return self.amplitude * (eigenvalue + self.tau**2) ** (-self.gamma / 2)


# Of "mild", root mean square 0.27, the solutions at different Re are as far apart as the paper's
# errors of models that ignore Re tell (python -m experiments.distances burgers). "strong" is
# covariance 625 (-Δ + 25)^(-2), root mean square 0.6: shocks form at t = 0.2 or so.
INITIAL_LAWS = {"mild": InitialLaw(49.0, 7.0, 2.5), "strong": InitialLaw(25.0, 5.0, 2.0)}


def sample_initial(
    key: PRNGKeyArray,
    n: int,
    *,
    law: str = "mild",
    modes: int = 64,
    dtype: jax.typing.DTypeLike = float,
) -> Float[Array, "n"]:
    """A random initial condition of zero mean, periodic; one key gives one function for every `n`.

    Args:
      key: random key.
      n: points.
      law: one of `INITIAL_LAWS`.
      modes: wave numbers below this one are kept.
      dtype: real floating-point type.
    """
    if law not in INITIAL_LAWS:
        raise ValueError(f"law must be one of {sorted(INITIAL_LAWS)}, got {law!r}")
    spectrum = INITIAL_LAWS[law].spectrum
    return random_fields.sample(key, (n,), spectrum, basis="fourier", modes=modes, dtype=dtype)


def window(frames: Float[Array, "*batch time x"]) -> Float[Array, "*batch time half"]:
    """What the models see: the left half of the interval, every second point; not periodic.

    The field is ``[t, x]`` and node-centred in both: its first row is what the window starts from,
    its first and last columns are the time-dependent boundary values. ν keeps the value that it has
    on the whole interval.
    """
    return frames[..., : frames.shape[-1] // 2 : 2]
