"""Time stepping of stiff semi-linear equations, and trajectories at requested times.

    du/dt = L u + N(u),

where L is diagonal in Fourier space, real and non-positive (viscosity), and N is evaluated by the
caller. The methods are functions that return functions: ``method(linear, nonlinear_fn, dt)`` gives
the step ``state -> state``, so that whatever depends on the step size is computed once.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

State = Complex[Array, "*modes"]
StepFn = Callable[[State], State]
NonlinearFn = Callable[[State], State]

# Steps between two looks at the state, for the CFL bound and for blow-up. A look costs about as
# much as one evaluation of N, a step of order 4 makes four.
STEPS_PER_LOOK = 8


class BlowUpError(ArithmeticError):
    """The solution stopped being finite, or moved too fast to be followed, at `time`."""

    def __init__(self, time: float):
        super().__init__(
            f"the solution blew up: it is not finite, or needs more than max_steps steps to the "
            f"next requested time, at t = {time:.6g}"
        )
        self.time = time


class Trajectory(NamedTuple):
    """States at requested times.

    Attributes:
      frames: what was observed at each time; NaN from the blow-up on, if there was one.
      failure_time: time at which a blow-up was noticed, infinite if there was none.
    """

    frames: Float[Array, "time *grid"]
    failure_time: Float[Array, ""]


def crank_nicolson_rk2(
    linear: Float[Array, "*modes"], nonlinear_fn: NonlinearFn, dt: Float[Array, ""]
) -> StepFn:
    """Second order: Crank-Nicolson on L, Heun's method on N (two evaluations a step).

    Reference: Chandler & Kerswell, J. Fluid Mech. 722 (2013), section 3,
    https://doi.org/10.1017/jfm.2013.122
    """
    explicit = 1 + dt / 2 * linear
    implicit = 1 / (1 - dt / 2 * linear)

    def step_fn(u: State) -> State:
        start = explicit * u
        n_u = nonlinear_fn(u)
        predicted = implicit * (start + dt * n_u)
        return implicit * (start + dt / 2 * (n_u + nonlinear_fn(predicted)))

    return step_fn


def exponential_rk4(
    linear: Float[Array, "*modes"], nonlinear_fn: NonlinearFn, dt: Float[Array, ""]
) -> StepFn:
    """Fourth order: L is integrated exactly, N by four exponential Runge-Kutta stages.

    Reference: Cox & Matthews, J. Comput. Phys. 176 (2002), equations 26-29 (ETDRK4),
    https://doi.org/10.1006/jcph.2002.6995
    """
    half = jnp.exp(dt / 2 * linear)
    full = jnp.exp(dt * linear)
    half_weight = dt / 2 * phi_functions(dt / 2 * linear)[0]
    phi1, phi2, phi3 = phi_functions(dt * linear)
    weight_start = dt * (phi1 - 3 * phi2 + 4 * phi3)
    weight_middle = dt * (2 * phi2 - 4 * phi3)
    weight_end = dt * (4 * phi3 - phi2)

    def step_fn(u: State) -> State:
        n_u = nonlinear_fn(u)
        a = half * u + half_weight * n_u
        n_a = nonlinear_fn(a)
        b = half * u + half_weight * n_a
        n_b = nonlinear_fn(b)
        c = half * a + half_weight * (2 * n_b - n_u)
        return (
            full * u
            + weight_start * n_u
            + weight_middle * (n_a + n_b)
            + weight_end * nonlinear_fn(c)
        )

    return step_fn


METHODS = {2: crank_nicolson_rk2, 4: exponential_rk4}  # by order


def phi_functions(z: Float[Array, "*modes"]) -> tuple[Float[Array, "*modes"], ...]:
    """φ₁, φ₂, φ₃ for z <= 0, where φ₁ = (eᶻ - 1) / z and φₙ₊₁ = (φₙ - 1/n!) / z.

    The recurrence cancels near zero; there φ₃ is summed as a series and the recurrence is run
    backwards.
    """
    near = jnp.abs(z) < 1
    far_z = jnp.where(near, -jnp.ones_like(z), z)
    far1 = jnp.expm1(far_z) / far_z
    far2 = (far1 - 1) / far_z
    far3 = (far2 - 0.5) / far_z

    near_z = jnp.where(near, z, jnp.zeros_like(z))
    near3 = jnp.zeros_like(z)
    # Term n of the series is zⁿ / (n + 3)!; fourteen of them reach double precision at |z| = 1.
    for n in reversed(range(14)):
        near3 = near_z * near3 / (n + 4) + 1
    near3 = near3 / 6
    near2 = near_z * near3 + 0.5
    near1 = near_z * near2 + 1
    return tuple(
        jnp.where(near, series, recurrence)
        for series, recurrence in ((near1, far1), (near2, far2), (near3, far3))
    )


def trajectory(
    step_factory: Callable[[Float[Array, ""]], StepFn],
    initial: State,
    times: Sequence[float] | np.ndarray,
    *,
    rate_fn: Callable[[State], Float[Array, ""]],
    observe_fn: Callable[[State], Float[Array, "*grid"]],
    cfl: float,
    max_steps: int = 100_000,
) -> Trajectory:
    """Integrates from t = 0 and keeps what `observe_fn` sees at the requested times.

    Between two requested times the steps are equal, up to the changes that the CFL bound
    ``dt * rate_fn(state) <= cfl`` asks for; it is looked at every few steps.

    Args:
      step_factory: the step for a step size, such as `exponential_rk4` without its last argument.
      initial: the state at t = 0.
      times: increasing and concrete (not traced), the first at least 0; see `check_times`.
      rate_fn: the fastest frequency of N at a state, such as max |u| times the largest wave number.
      observe_fn: what to keep of a state.
      cfl: largest allowed product of step size and rate.
      max_steps: steps allowed between two requested times; more count as a blow-up.

    Returns:
      The frames and the time of a blow-up; nothing raises here, so this works under `jit` and
      `vmap`. Use `raise_on_blow_up` on the result outside of them.
    """
    real = jnp.finfo(initial.dtype).dtype
    ends = jnp.asarray(check_times(times), real)
    lengths = jnp.asarray(np.diff(times, prepend=0.0), real)

    def look(carry):
        state, remaining, _ = carry
        steps = jnp.clip(jnp.ceil(remaining * rate_fn(state) / cfl), 1, max_steps + 1)
        dt = remaining / steps
        now = jnp.minimum(steps, STEPS_PER_LOOK)
        step_fn = step_factory(dt)
        state = jax.lax.fori_loop(0, now.astype(int), lambda _, u: step_fn(u), state)
        remaining = jnp.where(steps > now, remaining - now * dt, jnp.zeros_like(remaining))
        return state, remaining, jnp.isfinite(state).all() & (steps <= max_steps)

    def to_next_time(carry, interval):
        state, failure_time = carry
        end, length = interval
        healthy = jnp.isinf(failure_time)
        state, remaining, healthy = jax.lax.while_loop(
            lambda c: (c[1] > 0) & c[2], look, (state, length, healthy)
        )
        failure_time = jnp.where(healthy, failure_time, jnp.minimum(failure_time, end - remaining))
        frame = observe_fn(state)
        return (state, failure_time), jnp.where(healthy, frame, jnp.full_like(frame, jnp.nan))

    finite = jnp.isfinite(initial).all()
    failure_time = jnp.where(finite, jnp.asarray(jnp.inf, real), jnp.zeros((), real))
    (_, failure_time), frames = jax.lax.scan(to_next_time, (initial, failure_time), (ends, lengths))
    return Trajectory(frames, failure_time)


def raise_on_blow_up(failure_time: Float[Array, "*batch"]) -> None:
    """Raises a `BlowUpError` with the earliest failure; does nothing inside `jit` and `vmap`."""
    if isinstance(failure_time, jax.core.Tracer):
        return
    earliest = float(jnp.min(failure_time))
    if earliest < np.inf:
        raise BlowUpError(earliest)


def check_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """The requested times as an array, or a ValueError unless 0 <= t_0 < t_1 < ..."""
    array = np.asarray(times, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"times must be a non-empty sequence of numbers, got shape {array.shape}")
    if not np.isfinite(array).all() or array[0] < 0 or (np.diff(array) <= 0).any():
        raise ValueError(f"times must be finite, start at 0 or later and increase, got {times}")
    return array


def check_initial(name: str, state: Float[Array, "*grid"]) -> None:
    """Raises a ValueError if a concrete initial state is not finite; impossible under `jit`."""
    if not isinstance(state, jax.core.Tracer) and not bool(jnp.isfinite(state).all()):
        bad = int((~jnp.isfinite(state)).sum())
        raise ValueError(f"{name} must be finite, got {bad} of {state.size} values that are not")
