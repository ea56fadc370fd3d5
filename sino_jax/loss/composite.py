"""The loss that the paper trains with: a sum of terms, as a pure function that reports its parts.

    supervised  +  weight · Σ sub-domain losses  +  annealed weight · Σ super-domain losses

on a batch that is first transformed by random symmetries, if any are given.
"""

import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import augment, checks, equations, superdomain
from sino_jax.equations import Equation
from sino_jax.equations.equation import Symmetry
from sino_jax.loss import terms
from sino_jax.loss.crops import SUPER_START, grown
from sino_jax.loss.relative import central_half, relative_l2
from sino_jax.loss.scale_consistency import DETACHED, ErrorFn, compare, draw_starts, errors_at
from sino_jax.loss.terms import Term
from sino_jax.problem import predict, with_scales
from sino_jax.types import ApplyFn, Count, Instance, Key, PerExample

SUPER_METHODS = ("extend", "relabel")
CROP_REGIONS = ("whole", "central_half")


def training_loss(
    apply_fn: ApplyFn, params, instance: Instance, **options
) -> tuple[PerExample, dict[str, PerExample]]:
    """Supervised loss plus scale-consistency below and above the scale of the data.

    Args:
      apply_fn: as for `scale_consistency`.
      params: passed through to `apply_fn`.
      instance: problems with solutions.
      **options: keyword arguments of `training_terms`; `equation`, `key` and `progress` are needed.

    Returns:
      The loss ``[batch]`` and its parts before weighting, each ``[batch]``: "supervised", and where
      switched on "sub_domain" and "super_domain" (means over their counts).
    """
    summands = training_terms(apply_fn, instance, **options)
    return terms.add_up(summands, params, len(with_scales(instance).scale))


def training_terms(
    apply_fn: ApplyFn,
    instance: Instance,
    *,
    equation: str | Equation,
    key: Key,
    progress: float | Float[Array, ""],
    sub_sizes: Sequence[Count | Sequence[Count]] = (),
    sub_count: Count = 2,
    sub_weight: float = 1.0,
    super_prior: superdomain.Prior | None = None,
    super_rates: Sequence[float] = (),
    super_method: Literal["extend", "relabel"] = "extend",
    super_count: Count = 2,
    super_weight: float = 0.25,
    super_start: float = SUPER_START,
    super_growing: bool = False,
    super_crop: float = 0.0,
    super_positions: Count = 1,
    super_points: Count = 0,
    crop_region: Literal["whole", "central_half"] = "whole",
    detach: str = "input",
    symmetries: Sequence[Symmetry] = (),
    error_fn: ErrorFn = relative_l2,
) -> list[Term]:
    """The terms of `training_loss`: supervised, on sub-domains, and one for each super-domain loss.

    Args:
      apply_fn: as for `scale_consistency`.
      instance: problems with solutions.

    Keyword args:
      equation: a name of `sino_jax.equations`, or an `Equation`.
      key: everything random is drawn from it.
      progress: the fraction of the training run that is done; anneals the super-domain weight.
      sub_sizes: sizes of sub-domains, static; none switches that part off. Of several, a random
        one is taken in each step.
      sub_count: sub-domains of each example, all of one size, solved in one call of `apply_fn`.
      sub_weight: weight of each of them.
      super_prior: distribution of inputs of a larger scale, see `sino_jax.superdomain`; None
        continues the data by reflection.
      super_rates: how much larger super-domains are, static; none switches that part off.
      super_method: "extend" makes larger domains as `super_prior` says; "relabel" gives the data
        itself a larger scale, see `superdomain.relabelled`.
      super_count: super-domain losses per step.
      super_weight: weight of each of them at the end of training.
      super_start: the progress at which they start. Before that their weight is zero at full cost:
        leave them out, as `draw_crops` does.
      super_growing: whether rates set in one after the other, from the first on.
      super_crop: side of the sub-domains of a super-domain, as a part of its side; 0: that of the
        data. With 0.5 and growing rates 2, 4, 8 every scale is judged by the one below it.
      super_positions: sub-domains of each super-domain.
      super_points: grid points that the super-domains of a step have together, which bounds their
        number (at least one); 0: there are as many as examples.
      crop_region: where the errors on sub- and super-domains are measured. "central_half", in
        space, is for equations whose boundary values are unknown to the model: close to its rim a
        sub-domain does not determine its solution.
      detach: see `scale_consistency`.
      symmetries: symmetries of the equation to augment the batch with.
      error_fn: as for `scale_consistency`.
    """
    equation = equations.get(equation)
    if instance.solution is None:
        raise ValueError("instance.solution is needed by the supervised part, got None")
    instance = with_scales(instance)
    equation.validate(instance)
    _check_options(sub_count, sub_weight, super_count, super_weight, super_start, progress)
    checks.number("super_crop", super_crop, low=0, high=1)
    checks.integer("super_points", super_points, least=0)
    checks.one_of("detach", detach, DETACHED)
    checks.one_of("super_method", super_method, SUPER_METHODS)
    checks.one_of("crop_region", crop_region, CROP_REGIONS)
    for rate in super_rates:
        checks.number("super_rates", rate, low=1)
    for size in sub_sizes:
        equation.crop_size(size, instance.solution.shape[1:-1])
    key_symmetry, key_sub, key_super = jax.random.split(key, 3)
    if symmetries:
        instance = augment.random_symmetry(
            key_symmetry, instance, equation=equation, symmetries=symmetries
        )

    examples = len(instance.scale)
    summands = [_supervised(apply_fn, instance, equation=equation, error_fn=error_fn)]
    if crop_region == "central_half":
        error_fn = _on_central_half(error_fn, equation.spatial_axes)
    common = {"equation": equation, "error_fn": error_fn}
    if sub_sizes:
        key_size, key_position = jax.random.split(key_sub)
        at_sizes = [
            _sub_domain(
                apply_fn,
                instance,
                size=size,
                count=sub_count,
                weight=sub_weight * sub_count,
                key=key_position,
                **common,
            )
            for size in sub_sizes
        ]
        choice = jax.random.randint(key_size, (), 0, len(at_sizes))
        summands.append(terms.one_of(choice, at_sizes, examples))

    if super_rates:
        weight = superdomain.annealed_weight(
            jnp.asarray(progress, instance.solution.real.dtype),
            start=super_start,
            maximum=super_weight,
        )
        eligible = len(super_rates)
        if super_growing:
            eligible = grown(eligible, progress, start=super_start)
        for key in jax.random.split(key_super, super_count):
            key_rate, *keys = jax.random.split(key, 3)
            at_rates = [
                _super_domain(
                    apply_fn,
                    instance,
                    rate=rate,
                    keys=keys,
                    prior=super_prior,
                    method=super_method,
                    crop=super_crop,
                    points=super_points,
                    count=super_positions,
                    weight=weight,
                    share=1 / super_count,
                    detach=detach,
                    **common,
                )
                for rate in super_rates
            ]
            choice = jax.random.randint(key_rate, (), 0, eligible)
            summands.append(terms.one_of(choice, at_rates, examples))
    return summands


def _check_options(sub_count, sub_weight, super_count, super_weight, super_start, progress) -> None:
    checks.integer("sub_count", sub_count)
    checks.integer("super_count", super_count)
    checks.number("sub_weight", sub_weight, low=0)
    checks.number("super_weight", super_weight, low=0)
    checks.number("super_start", super_start, low=0, high=1)
    checks.number("progress", progress, low=0, high=1)


def _on_central_half(error_fn: ErrorFn, axes: Sequence[int]) -> ErrorFn:
    return lambda *fields: error_fn(*(central_half(field, axes=axes) for field in fields))


def _supervised(apply_fn, instance, *, equation, error_fn) -> Term:
    """The error of the model's solution of the data."""

    def errors(params, instance):
        prediction = predict(apply_fn, params, instance, equation)
        return compare(error_fn, prediction, instance.solution)

    points = math.prod(instance.grid)
    return Term("supervised", 1.0, 1.0, points, lambda: instance, errors)


def _sub_domain(apply_fn, instance, *, size, count, weight, key, equation, **options) -> Term:
    """Consistency with the data on `count` sub-domains of each example."""
    size = equation.crop_size(size, instance.grid)

    def draw():
        return instance, draw_starts(equation, key, instance, size=size, count=count)

    def errors(params, problems):
        return errors_at(apply_fn, params, *problems, equation=equation, size=size, **options)

    return Term("sub_domain", weight, 1.0, count * math.prod(size), draw, errors)


def _super_domain(
    apply_fn, instance, *, rate, keys, prior, method, crop, points, count, weight, share, equation,
    **options,
) -> Term:  # fmt: skip
    """Self-consistency on a super-domain of each example, cropped to the scale of the data."""
    key_inputs, key_position = keys
    shape = instance.grid
    larger_shape = superdomain.superdomain_shape(equation, shape, rate)
    few = instance
    if points:
        number = max(1, points // math.prod(larger_shape))
        few = jax.tree.map(lambda x: x[:number], instance)
    size = superdomain.original_shape(equation, larger_shape, 1 / crop) if crop else shape
    if method == "relabel":
        larger_shape = shape
        size = superdomain.original_shape(equation, shape, 1 / crop if crop else rate)

    def draw():
        if method == "relabel":
            larger = superdomain.relabelled(few, equation=equation, rate=rate)
        elif prior is None:
            larger = superdomain.reflected(few, equation=equation, rate=rate)
        else:
            larger = superdomain.sample(
                prior, key_inputs, few.scale, equation=equation, shape=shape, rate=rate
            )
        equation.validate(larger)
        return larger, draw_starts(equation, key_position, larger, size=size, count=count)

    def errors(params, problems):
        return errors_at(apply_fn, params, *problems, equation=equation, size=size, **options)

    computed = math.prod(larger_shape) + count * math.prod(size)
    return Term("super_domain", weight, share, computed, draw, errors)
