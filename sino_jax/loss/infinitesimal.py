"""The λ-derivative of scale-consistency at λ = 1.

Zooming by λ about a centre c maps u to u(c + λ(x - c)), whose derivative at λ = 1 is
Du = (x - c)·∇u. Differentiating the consistency identity gives, with k̂ = rescale(k, λ),

    D Ψ(a, g, k) = ⟨δΨ/δa, D a⟩ + ⟨δΨ/δg, D Ψ⟩ + ∂Ψ/∂k · dk̂/dλ

(paper, "Infinitesimal scale-consistency"). The right-hand side is one forward-mode derivative of
the model. The identity presupposes that Ψ takes its boundary values, and asks for differentiable
coefficients: across a jump, D a is a spike of the grid's making.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import channels, equations, grid, problem
from sino_jax.equations import Equation
from sino_jax.norms import l2_norm, relative
from sino_jax.problem import predict
from sino_jax.types import ApplyFn, Instance, PerExample, Sample


def infinitesimal_scale_consistency(
    apply_fn: ApplyFn,
    params,
    instance: Instance,
    *,
    equation: str | Equation,
    centre: Float[Array, "axis"] | None = None,
) -> PerExample:
    """‖D u - dΨ/dλ‖ / ‖u‖: the limit of `scale_consistency` divided by 1 - λ as λ → 1.

    It is finite also where that limit is not: for a model that misses its boundary values.

    Args:
      apply_fn: as for `scale_consistency`; it need only support reverse-mode differentiation.
      params: passed through to `apply_fn`.
      instance: u is its solution (supervised) or, if that is None, the prediction.

    Keyword args:
      equation: a name of `sino_jax.equations`, or an `Equation`.
      centre: the fixed point of the zoom, in units of the domain; the domain's centre by default.
        An anchored axis is always zoomed about its junction.

    Returns:
      ``[batch]``.
    """
    equation = equations.get(equation)
    instance = problem.with_scales(instance)
    equation.validate(instance)
    if centre is None:
        centre = jnp.full(len(equation.axes), 0.5, instance.scale.dtype)
    given = instance.solution
    field = predict(apply_fn, params, instance, equation) if given is None else given

    def zoom(sample: Sample, junction: float) -> Sample:
        anchored = jnp.array([axis.anchored for axis in equation.axes])
        return _zoom_derivative(sample, jnp.where(anchored, junction, centre), equation)

    zoom_field = jax.vmap(lambda u: zoom(u, 0.0))(field)
    zoom_coefficient = None
    if instance.coefficient is not None:
        zoom_coefficient = jax.vmap(lambda a: zoom(a, 1.0))(instance.coefficient)
        if any(equation.coefficient_powers):  # the derivative of λᵖ a(c + λ(x - c)) has p a, too
            zoom_coefficient += equation.coefficient_growth(instance.coefficient)
    # Inputs are linear in coefficient and boundary field: their tangent is the inputs of tangents.
    tangent_inputs = problem.inputs(equation, Instance(zoom_coefficient, zoom_field, None))
    one = jnp.ones((), instance.scale.dtype)
    scale, tangent_scale = jax.jvp(
        lambda ratio: equation.rescale(instance.scale, ratio), (one,), (one,)
    )
    primals = (problem.inputs(equation, instance), scale)
    tangent = directional_derivative(
        lambda inputs, scale: problem.apply(apply_fn, params, inputs, scale, equation),
        primals,
        (tangent_inputs, tangent_scale),
    )
    difference = channels.to_channels(zoom_field) - channels.to_channels(tangent)
    return relative(l2_norm(difference), l2_norm(field))


def directional_derivative(
    function: Callable[..., Array], primals: Sequence[Array], tangents: Sequence[Array]
) -> Array:
    """What `jax.jvp` gives, also of functions that define reverse mode only, as our models do.

    The pullback is linear; its transpose is the derivative in forward direction.
    """
    value, pullback = jax.vjp(function, *primals)
    return jax.linear_transpose(pullback, value)(tuple(tangents))[0]


def _zoom_derivative(sample: Sample, centre: Float[Array, "axis"], equation: Equation) -> Sample:
    """(x - c)·∇ of one sample on the unit box; the stencils are one-sided at the boundary."""
    shape = sample.shape[:-1]
    unit = (1.0,) * len(shape)
    steps = grid.spacing(unit, shape, equation.centrings)
    points = grid.coordinates(shape, centrings=equation.centrings).astype(centre.dtype)
    offsets = points - centre.reshape((1,) * len(shape) + (-1,))
    result = jnp.zeros_like(sample)
    for axis, step in enumerate(steps):
        offset = offsets[..., axis : axis + 1].astype(sample.dtype)
        result = result + offset * grid.derivative(sample, axis, step)
    return result
