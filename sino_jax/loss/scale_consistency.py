"""Scale-consistency: the model must give the same solution on a sub-domain.

    supervised (eq. 'aug')        ‖ T_λ u - Ψ(T_λ a, T_λ u|∂Ω, k̂) ‖
    self-supervised (eq. 'sc')    ‖ T_λ Ψ(a, g, k) - Ψ(T_λ a, T_λ Ψ(a, g, k)|∂Ω, k̂) ‖

with k̂ the parameter rescaled for the sub-domain. Reference: "Scale-Consistent Learning for Partial
Differential Equations", section "Scale Consistency" and Algorithms 1 and 2.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from sino_jax import checks, equations, subdomain
from sino_jax.equations import Equation
from sino_jax.loss.relative import relative_l2
from sino_jax.problem import predict, with_scales
from sino_jax.types import ApplyFn, Batch, Count, Instance, Key, PerExample

DETACHED = ("input", "target", "both", "none", "prediction")
ErrorFn = Callable[[Batch, Batch], PerExample]


def scale_consistency(
    apply_fn: ApplyFn,
    params,
    instance: Instance,
    *,
    equation: str | Equation,
    size: Count | Sequence[Count],
    key: Key,
    count: Count = 1,
    detach: str = "input",
    error_fn: ErrorFn = relative_l2,
) -> PerExample:
    """Disagreement of a model with itself, or with data, on a random sub-domain of each example.

    Args:
      apply_fn: ``apply_fn(params, inputs, scale) -> prediction`` with inputs as made by
        `Equation.inputs`, ``[batch, *grid, channel]``, scale ``[batch]``, and a prediction of the
        same layout, real with (re, im) channels or complex. Any callable: a Flax model's apply, an
        Equinox module, a numerical solver.
      params: passed through to `apply_fn`.
      instance: problems with their solutions, for the supervised loss; without solutions
        (``solution=None``), for the self-supervised one. Its scale may be one number for all.

    Keyword args:
      equation: a name of `sino_jax.equations`, or an `Equation`.
      size: points of the sub-domain, static: one number for the first axis, to which the equation
        ties the others, or one for each axis.
      key: the position of every example's sub-domain is drawn from it.
      count: sub-domains of every example, over which its value is the mean.
      detach: what is held constant in the self-supervised loss: the sub-domain's "input" (its
        boundary values; the paper's choice), the "target" (the restricted global prediction),
        "both" or "none"; or the "prediction" on the sub-domain as a whole, which makes the model
        at the smaller scale the judge of itself at the larger one. The supervised loss has nothing
        to detach.
      error_fn: compares prediction and target, ``[batch, *grid, channel]`` to ``[batch]``.

    Returns:
      ``[batch]``, one value per example.

    Example:
      >>> from sino_jax.types import Instance
      >>> field = jnp.ones((2, 17, 17, 1))
      >>> instance = Instance(coefficient=field, boundary=None, scale=jnp.ones(2), solution=field)
      >>> first_trace = lambda params, inputs, scale: inputs[..., 1:2]
      >>> scale_consistency(first_trace, None, instance, equation="darcy", size=9,
      ...                   key=jax.random.key(0)).tolist()
      [0.0, 0.0]
    """
    equation = equations.get(equation)
    checks.one_of("detach", detach, DETACHED)
    instance = with_scales(instance)
    equation.validate(instance)
    crop_size = equation.crop_size(size, instance.grid)
    starts = draw_starts(equation, key, instance, size=crop_size, count=count)
    return errors_at(
        apply_fn,
        params,
        instance,
        starts,
        equation=equation,
        size=crop_size,
        detach=detach,
        error_fn=error_fn,
    )


def draw_starts(
    equation: Equation, key: Key, instance: Instance, *, size: Sequence[int], count: Count
) -> Int[Array, "batch count axis"]:
    """Random positions of `count` sub-domains of every example."""
    drawn = checks.integer("count", count) * len(instance.scale)
    starts = subdomain.random_starts(equation, key, drawn, size, instance.grid)
    return starts.reshape(-1, count, len(size))


def errors_at(
    apply_fn: ApplyFn,
    params,
    instance: Instance,
    starts: Int[Array, "batch count axis"],
    *,
    equation: Equation,
    size: Sequence[int],
    error_fn: ErrorFn,
    detach: str = "input",
) -> PerExample:
    """`scale_consistency` on sub-domains of `size` points on each axis at given positions.

    The value of an example depends on no other example.
    """
    supervised = instance.solution is not None
    field = instance.solution if supervised else predict(apply_fn, params, instance, equation)
    problems = (instance.coefficient, field, instance.scale)
    count = starts.shape[1]
    if count > 1:
        problems = jax.tree.map(lambda x: jnp.repeat(x, count, axis=0), problems)

    def restrict(start, coefficient, field, scale):
        return subdomain.restrict(equation, coefficient, field, scale, start=start, size=size)

    local = jax.vmap(restrict)(starts.reshape(-1, starts.shape[2]), *problems)
    given, target = local.boundary, local.solution
    if not supervised:
        given = jax.lax.stop_gradient(given) if detach in ("input", "both") else given
        target = jax.lax.stop_gradient(target) if detach in ("target", "both") else target
    prediction = predict(apply_fn, params, local._replace(boundary=given), equation)
    if not supervised and detach == "prediction":  # it is what the other is compared with
        prediction, target = target, jax.lax.stop_gradient(prediction)
    return compare(error_fn, prediction, target).reshape(-1, count).mean(axis=1)


def compare(error_fn: ErrorFn, prediction: Batch, target: Batch) -> PerExample:
    """The errors of a batch; a ValueError if `error_fn` gives other than one value an example."""
    errors = error_fn(prediction, target)
    if jnp.shape(errors) != prediction.shape[:1]:
        raise ValueError(
            f"error_fn must return one value for each of {len(prediction)} examples, "
            f"got shape {jnp.shape(errors)}"
        )
    return errors
