"""Sub- and super-domains of a training run: what fits, which one at which step, what scales result.

Sizes and rates come from small static sets, so that the number of compiled programs is bounded.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from sino_jax import checks, superdomain
from sino_jax.equations import Equation

# The progress at which super-domains set in, unless an option says otherwise.
SUPER_START = 0.25


class CropDraw(NamedTuple):
    """What one training step crops: options of `training_loss` with at most one entry each.

    Attributes:
      sub_sizes: points a side of its sub-domains; empty without sub-domains.
      super_rates: how much larger its super-domains are; empty before they set in.
    """

    sub_sizes: tuple[int | tuple[int, ...], ...]
    super_rates: tuple[float, ...]


def draw_crops(options: Mapping[str, Any], *, seed: int, step: int, total_steps: int) -> CropDraw:
    """Draws the sub-domain size and the super-domain rate of one training step, on the host.

    With these, `training_loss` compiles to a program without branches, at most one for each pair of
    size and rate. On CPU that program is twice as fast as one that chooses by `jax.lax.switch`,
    whose branches XLA does not spread over threads (``python -m benchmarks consistency_loss``), and
    no device waits for another that drew a larger size.

    Args:
      options: of `training_loss`; `sub_sizes`, `super_rates`, `super_growing` and `super_start` are
        read.
      seed: of the run. The draw is a pure function of it and of `step`.
      step: number of the step, counted from 0.
      total_steps: length of the run; super-domains are left out before `super_start` of it.
    """
    sizes = [n if checks.is_single(n) else tuple(n) for n in options.get("sub_sizes", ())]
    rates = list(options.get("super_rates", ()))
    start, progress = options.get("super_start", SUPER_START), step / total_steps
    if options.get("super_growing"):
        rates = rates[: grown(len(rates), progress, start=start)]
    # Size and rate share one draw, which keeps programs few; sums of losses do not mind.
    pairs = math.lcm(max(1, len(sizes)), max(1, len(rates)))
    # Raw Philox output, as in `sino_jax.data.batches`: NumPy guarantees this stream, but not that
    # of `Generator.integers`.
    raw = np.random.Philox(np.random.SeedSequence((seed, step))).random_raw() if pairs > 1 else 0
    draw = int(raw) % pairs
    return CropDraw(
        sub_sizes=(sizes[draw % len(sizes)],) if sizes else (),
        super_rates=(rates[draw % len(rates)],) if rates and progress >= start else (),
    )


def grown(rates: int, progress: float | Float[Array, ""], *, start: float) -> int | Int[Array, ""]:
    """How many of so many super-domain rates are in use: one at `start`, all in the last part."""
    later = (start + (1 - start) * number / rates for number in range(1, rates))
    return 1 + sum((progress >= begin) * 1 for begin in later)


def fitting_sizes(
    sizes: int | str | Sequence[int | Sequence[int]], shape: Sequence[int]
) -> tuple[int | tuple[int, ...], ...]:
    """Those sizes that are proper parts of a grid; one that suits one data set may exceed another.

    Raises:
      ValueError: none of several is, or they are no numbers.
    """
    if isinstance(sizes, str):
        raise ValueError(f"sub_sizes must be whole numbers, as in 9+17, got {sizes!r}")
    sizes = sizes if isinstance(sizes, Sequence) else (sizes,)
    sizes = [size if checks.is_single(size) else tuple(size) for size in sizes]
    kept = tuple(size for size in sizes if _is_proper_part(size, shape))
    if sizes and not kept:
        raise ValueError(f"no sub-domain of {sizes} points fits into the training grid {shape}")
    return kept


def _is_proper_part(size: int | tuple[int, ...], shape: Sequence[int]) -> bool:
    if checks.is_single(size):
        return size < shape[0]
    return tuple(size) != tuple(shape) and all(map(int.__le__, size, shape))


def trained_range(
    equation: Equation,
    problems: Iterable[tuple[float, Sequence[int]]],
    loss_options: Mapping[str, Any],
) -> tuple[float, float]:
    """Smallest and largest scale that training saw: of the data, its sub- and its super-domains.

    Args:
      equation: gives the scaling law.
      problems: scale and grid of every training set.
      loss_options: of `sino_jax.loss.training_loss`; `sub_sizes` and `super_rates` are read.
    """
    scales = []
    for scale, grid in problems:
        sizes = fitting_sizes(loss_options.get("sub_sizes", ()), grid)
        boxes = [equation.crop_size(size, grid) for size in sizes]
        scales += [scale, *(float(equation.rescale_box(scale, box, grid)[0]) for box in boxes)]
        for rate in loss_options.get("super_rates", ()):
            larger = superdomain.superdomain_shape(equation, grid, rate)
            scales.append(float(equation.rescale(scale, 1 / equation.ratio(grid, larger))))
    return min(scales), max(scales)
