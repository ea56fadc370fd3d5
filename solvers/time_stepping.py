"""Time stepping of stiff semi-linear equations, and trajectories at requested times.

    du/dt = L u + N(u),

where L is diagonal in Fourier space, real and non-positive (viscosity), and N is evaluated by the
caller. The methods are functions that return functions: ``method(linear, nonlinear_fn, dt)`` gives
the step ``state -> state``, so that whatever depends on the step size is computed once.

``python -m benchmarks time_stepping`` compares them with jax-cfd's and exponax's integrators.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float

from solvers import checks
from solvers.fourier import scale

State = Complex[Array, "*modes"]
StepFn = Callable[[State], State]
NonlinearFn = Callable[[State], State]
Times = Sequence[float] | np.ndarray | Float[Array, "time"]

# Steps between two looks at the state, for the CFL bound and for blow-up. A look costs about as
# much as one evaluation of N, a step of order 4 makes four.
STEPS_PER_LOOK = 8
# More steps than this between two requested times are taken for a mistake in the times or the data.
MAX_STEPS = 100_000


class BlowUpError(ArithmeticError):
    """The solution grew beyond all bounds at `time`."""

    def __init__(self, time: float):
        super().__init__(f"the solution blew up: at t = {time:.6g} it is not finite or too fast")
        self.time = time


class Trajectory(NamedTuple):
    """A solution at requested times, and how the integration went.

    Attributes:
      frames: the solution at each time; NaN from a failure on.
      failure_time: when the state was found not to be finite, or so fast that the CFL bound asks
        for more than `MAX_STEPS` steps to the next requested time; infinite if that never was.
      reachable: false if the initial state is that fast already; then nothing is integrated.
    """

    frames: Float[Array, "time *grid"]
    failure_time: Float[Array, ""]
    reachable: Bool[Array, ""]


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
        start = scale(explicit, u)
        n_u = nonlinear_fn(u)
        predicted = scale(implicit, start + scale(dt, n_u))
        return scale(implicit, start + scale(dt / 2, n_u + nonlinear_fn(predicted)))

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
        a = scale(half, u) + scale(half_weight, n_u)
        n_a = nonlinear_fn(a)
        b = scale(half, u) + scale(half_weight, n_a)
        n_b = nonlinear_fn(b)
        c = scale(half, a) + scale(half_weight, 2 * n_b - n_u)
        n_c = nonlinear_fn(c)
        return (
            scale(full, u)
            + scale(weight_start, n_u)
            + scale(weight_middle, n_a + n_b)
            + scale(weight_end, n_c)
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
    times: Times,
    *,
    rate_fn: Callable[[State], Float[Array, ""]],
    observe_fn: Callable[[State], Float[Array, "*grid"]],
    cfl: float | Float[Array, ""],
) -> Trajectory:
    """Integrates from t = 0 and keeps what `observe_fn` sees at the requested times.

    Between two requested times the steps are equal, up to the changes that the CFL bound
    ``dt * rate_fn(state) <= cfl`` asks for; it is looked at every few steps.

    Args:
      step_factory: the step for a step size, such as `exponential_rk4` without its last argument.
      initial: the state at t = 0.
      times: concrete (not traced), as `check_times` takes them.
      rate_fn: the fastest frequency of N at a state, such as max |u| times the largest wave number.
      observe_fn: what to keep of a state.
      cfl: largest allowed product of step size and rate.

    Returns:
      The frames and how it went; nothing raises here but bad times, so this works under `jit` and
      `vmap`. Outside of them, `raise_on_failure` turns a failure into an error.
    """
    times = check_times(times)
    real = jnp.finfo(initial.dtype).dtype
    ends = jnp.asarray(times, real)
    lengths = jnp.asarray(np.diff(times, prepend=0.0), real)

    def look(carry):
        state, remaining, _ = carry
        steps = jnp.maximum(jnp.ceil(remaining * rate_fn(state) / cfl), 1)
        now = jnp.where(steps <= MAX_STEPS, jnp.minimum(steps, STEPS_PER_LOOK), 0)
        dt = remaining / steps
        step_fn = step_factory(dt)
        state = jax.lax.fori_loop(0, now.astype(int), lambda _, u: step_fn(u), state)
        remaining = jnp.where(now < steps, remaining - now * dt, jnp.zeros_like(remaining))
        return state, remaining, (now > 0) & jnp.isfinite(state).all()

    def to_next_time(carry, interval):
        state, failure_time = carry
        end, length = interval
        state, remaining, healthy = jax.lax.while_loop(
            lambda c: (c[1] > 0) & c[2], look, (state, length, jnp.isinf(failure_time))
        )
        failure_time = jnp.where(healthy, failure_time, jnp.minimum(failure_time, end - remaining))
        frame = observe_fn(state)
        return (state, failure_time), jnp.where(healthy, frame, jnp.full_like(frame, jnp.nan))

    # Written so that a rate of NaN counts as reachable: that is a matter of the state.
    reachable = ~(lengths.max() * rate_fn(initial) / cfl > MAX_STEPS)
    healthy = jnp.isfinite(initial).all() & reachable
    failure_time = jnp.where(healthy, jnp.inf, 0.0).astype(real)
    (_, failure_time), frames = jax.lax.scan(to_next_time, (initial, failure_time), (ends, lengths))
    return Trajectory(frames, failure_time, reachable)


def raise_on_failure(result: Trajectory) -> None:
    """Raises if the integration failed; does nothing on traced values (`jit`, `vmap`).

    Raises:
      ValueError: the CFL bound makes the requested times unreachable.
      BlowUpError: with the time at which the blow-up was noticed.
    """
    if isinstance(result.failure_time, jax.core.Tracer):
        return
    if not bool(jnp.all(result.reachable)):
        raise ValueError(
            f"times must be closer to each other: the CFL bound takes more than {MAX_STEPS} steps "
            "between two of them"
        )
    time = float(jnp.min(result.failure_time))
    if time < np.inf:
        raise BlowUpError(time)


def check_times(times: Times) -> tuple[float, ...]:
    """The requested times as a hashable tuple, or a ValueError unless 0 <= t_0 < t_1 < ..."""
    try:
        array = np.asarray(times, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"times must be numbers, got {times!r:.60}") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"times must be a non-empty sequence of numbers, got shape {array.shape}")
    if not np.isfinite(array).all() or array[0] < 0 or (np.diff(array) <= 0).any():
        raise ValueError(f"times must be finite, start at 0 or later and increase, got {times}")
    return tuple(array.tolist())


def check_options(times: Times, order: int, cfl: float | Float[Array, ""]) -> tuple[float, ...]:
    """`check_times`, and that there is a method of this order and that cfl is positive."""
    checks.one_of("order", order, tuple(METHODS))
    checks.positive("cfl", cfl)
    return check_times(times)


def check_initial(name: str, state: Float[Array, "*grid"]) -> None:
    """Raises a ValueError for a state too coarse to hold a wave or, unless traced, not finite."""
    if min(state.shape) < 4:
        raise ValueError(f"{name} needs at least 4 points on each axis, got shape {state.shape}")
    checks.finite(name, state)
