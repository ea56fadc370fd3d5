"""Helmholtz equation: -∇·(a∇u) - k² u = f on a rectangle, with impedance or Dirichlet data.

Instances are solved with the impedance condition a ∂ₙu = ikβ u + g, well posed for every k; the
Dirichlet problem that has the trace of u as data has the same solution.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, PRNGKeyArray

from solvers import checks, elliptic, q1, random_fields

# Covariance τ^(2α-2) (-Δ + τ²)^(-α) of log a (times 5) and of g.
COEFFICIENT_ALPHA, BOUNDARY_ALPHA, TAU = 1.5, 3.5, 2.0
MODES = 128
WAVES = 64


def solve(
    coefficient: Inexact[Array, "x y"],
    k: float | Float[Array, ""],
    *,
    dirichlet: Inexact[Array, "_ _"] | None = None,
    impedance: Inexact[Array, "_ _"] | None = None,
    forcing: Inexact[Array, "_ _"] | None = None,
    beta: float = 1.0,
    extent: tuple[float, float] = (1.0, 1.0),
) -> Inexact[Array, "x y"]:
    """Complex solution of -∇·(a∇u) - k² u = f at the nodes.

    Args:
      coefficient: a at the nodes of a grid that contains both end points; real and positive.
      k: wave number; positive, or zero with Dirichlet data.
      dirichlet: complex field whose outer ring holds u on the boundary, or
      impedance: field whose outer ring holds g of a ∂ₙu = ikβ u + g (real or complex); exactly one
        of both must be given.
      forcing: f at the nodes (real or complex); zero if None.
      beta: β of the impedance condition.
      extent: side lengths of the rectangle.

    Raises:
      ValueError: for grids below 3 x 3 nodes, unequal shapes, integers, real Dirichlet data, and,
        outside of `jit` and `vmap`, for values that are not finite, a coefficient, k or extent that
        is not positive, and for a problem that is resonant, that is singular to working precision:
        one with Dirichlet data, or with impedance data and β = 0. Inside of `jit` the solution of a
        resonant problem is NaN.
    """
    if (dirichlet is None) == (impedance is None):
        raise ValueError("exactly one of dirichlet and impedance must be given")
    coefficient = checks.array("coefficient", coefficient, ndim=2)
    # Without waves the impedance condition becomes Neumann's, and u is known up to a constant only.
    checks.positive("k", k, or_zero=impedance is None)
    checks.finite_number("beta", beta)
    k = jnp.asarray(k, coefficient.dtype)
    robin = None if impedance is None else jax.lax.complex(jnp.zeros_like(k), k * beta)
    operator = q1.Operator(coefficient, extent, k**2, robin)
    elliptic.check(operator)
    fields = {"dirichlet": dirichlet, "impedance": impedance, "forcing": forcing}
    for name, field in fields.items():
        if field is not None:
            field = checks.array(name, field, ndim=2, real=False)
            checks.same_shape(name, field, coefficient.shape, "coefficient")
            (checks.finite if name == "forcing" else checks.finite_ring)(name, field)
            fields[name] = field
    dirichlet = fields["dirichlet"]
    if dirichlet is not None and not jnp.iscomplexobj(dirichlet):
        raise ValueError(
            f"dirichlet must be complex, since u is, got {dirichlet.dtype}; "
            "was the imaginary part of the boundary values lost?"
        )
    reflecting = dirichlet is not None or (not isinstance(beta, jax.core.Tracer) and beta == 0)
    u, singular = _solve(operator, *fields.values(), reflecting=reflecting)
    if not isinstance(singular, jax.core.Tracer) and bool(singular):
        kind = "Neumann" if dirichlet is None else "Dirichlet"
        raise ValueError(f"the {kind} problem is resonant (singular) at k = {float(k)!r}")
    return u


@functools.partial(jax.jit, static_argnames="reflecting")
def _solve(operator, dirichlet, impedance, forcing, *, reflecting):
    """The solution, and whether the problem is singular; only one that loses no waves can be."""
    dtype = np.result_type(operator.coefficient.dtype, np.complex64)
    load = jnp.zeros(operator.coefficient.shape, dtype)
    if forcing is not None:
        load += q1.volume_load(forcing.astype(dtype), operator.extent)
    if impedance is not None:
        load += q1.boundary_load(impedance.astype(dtype), operator.extent)
    factors = elliptic.factor(operator)
    u = elliptic.solve(operator, load, dirichlet=dirichlet, factors=factors)
    if not reflecting:
        return u, jnp.asarray(False)
    singular = elliptic.is_singular(operator, factors)
    return jnp.where(singular, jnp.full_like(u, jnp.nan), u), singular


def sample(key: PRNGKeyArray, n: int, scale: float) -> elliptic.Instance:
    """A random instance at wave number ``k = scale`` on n x n nodes, given by its Dirichlet data.

    The same key gives the same coefficient and impedance data for every n.
    """
    coefficient_key, boundary_key = jax.random.split(key)
    coefficient = sample_coefficient(coefficient_key, (n, n))
    flux = random_fields.sample(
        boundary_key, (n, n), random_fields.matern(BOUNDARY_ALPHA, TAU), modes=MODES
    )
    u = solve(coefficient, scale, impedance=flux)
    boundary = u.at[1:-1, 1:-1].set(0)
    return elliptic.Instance(coefficient, boundary, jnp.asarray(scale, coefficient.dtype), u)


def sample_coefficient(key: PRNGKeyArray, shape: tuple[int, int]) -> Array:
    """a = exp(GRF / 5), alike at every wave number."""
    spectrum = random_fields.matern(COEFFICIENT_ALPHA, TAU)
    return jnp.exp(random_fields.sample(key, shape, spectrum, modes=MODES) / 5)


def sample_boundary(
    key: PRNGKeyArray, shape: tuple[int, int], k: float | Float[Array, ""]
) -> Inexact[Array, "x y"]:
    """A random wave: plane waves of wave number k from all directions, on the unit square.

    It solves the equation for a = 1, about which the coefficients vary, so that its trace has the
    wave lengths that solutions have. Solutions' own traces take a solve; these do not.
    """
    angle_key, amplitude_key = jax.random.split(key)
    angle = jax.random.uniform(angle_key, (WAVES,), maxval=2 * jnp.pi)
    parts = jax.random.normal(amplitude_key, (2, WAVES)) / WAVES**0.5
    amplitude = jax.lax.complex(parts[0], parts[1])
    k = jnp.asarray(k, angle.dtype)

    def phases(direction, points):
        x = jnp.linspace(0.0, 1.0, points)
        phase = k * x[:, None] * direction[None, :]
        return jax.lax.complex(jnp.cos(phase), jnp.sin(phase))

    first, second = phases(jnp.cos(angle), shape[0]), phases(jnp.sin(angle), shape[1])
    return (first * amplitude[None, :]) @ second.T
