"""One-step maps of vorticity on a periodic square, with a force and a friction or without.

    ω_t + u·∇ω = Δω / Re - μ ω + f

One frame is given, the next one is the solution: the problem is autonomous and the periodic
vorticity determines the velocity, so that no further past and no boundary data is needed. A model
of it is periodic: no padding, convolutions that wrap around.

The law is that of the vorticity form (`sino_jax.equations.navier_stokes`): ω̂(x, t) = ω(λx, t)
solves the equation with Re̅ = λ² Re, the same μ and f̂ = f(λx). But the flow on a sub-domain is not
periodic, and what enters through its boundary is not given: there is no scale-consistency to train
with. A force breaks the symmetries of the square, so that none is claimed.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import grid
from sino_jax.equations.equation import Axis, Equation, power_law

X, Y = 0, 1


def residual(
    coefficient: Float[Array, "x y 1"],
    solution: Float[Array, "x y 1"],
    scale: float | Float[Array, ""],
    *,
    velocity: Float[Array, "x y 2 2"],
    time_step: float,
    forcing: Float[Array, "x y"] | None = None,
    drag: float = 0.0,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Float[Array, "x y"]:
    """The trapezoidal rule between both frames, second order in time and space.

    Args:
      coefficient: the given frame.
      solution: the next one.
      scale: Re.
      velocity: of both frames, ``[x, y, frame, component]``.
      time_step: between them.
      forcing: f; none by default.
      drag: μ.
      extent: side lengths of the square, or of a part of it.
    """
    frames = jnp.concatenate([coefficient, solution], axis=-1)
    dx, dy = grid.spacing(extent, frames.shape[:2], KOLMOGOROV.centrings)
    rate = velocity[..., 0] * grid.derivative(frames, X, dx)
    rate += velocity[..., 1] * grid.derivative(frames, Y, dy)
    laplacian = grid.second_derivative(frames, X, dx) + grid.second_derivative(frames, Y, dy)
    rate += drag * frames - laplacian / scale
    change = (frames[..., 1] - frames[..., 0]) / time_step
    balance = change + rate.mean(axis=-1)
    return balance if forcing is None else balance - forcing


KOLMOGOROV = Equation(
    name="kolmogorov",
    axes=(Axis("x", "cell"), Axis("y", "cell")),
    sides=(),
    rescale=power_law(2),
    residual=residual,
    coefficient_channels=1,
    coefficient_kind="pseudoscalar",
    solution_kind="pseudoscalar",
    symmetries=frozenset(),
)
