"""Does a scaling law fit a residual? The substitution test, for equations of your own.

On a sub-domain of side λ, rescaled to the nominal domain, û(x) = u(λx) must have the residual of u
there, up to one factor (the power of λ that an equation gains as a whole; of several equations,
channels of the residual, each has its own):

    N(û; â, k̂)  =  c · N(u; a, k)|Ω̂

For the discrete residual this holds exactly, since a crop keeps the grid: no refinement is
needed, and u need not even be a solution, as long as its residual has several terms to compare.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sino_jax import grid
from sino_jax.equations.equation import Equation, power_law
from sino_jax.equations.registry import get

# Powers of λ that are tried beside the equation's own law.
POWERS = (-3, -2, -1, 0, 1, 2, 3)
# Points at each end of an axis whose stencils may be one-sided.
EDGE = 2
TOLERANCE = 1e-6


class LawCheck(NamedTuple):
    """What `check` found.

    Attributes:
      defect: ‖N(û) - c N(u)‖, relative to the larger of both and to what the scale contributes;
        round-off for a law that fits, of order 1 for one that does not.
      ratio: λ of the sub-domain.
      depends_on_scale: whether the residual changes with the scale at all; if not, every law fits,
        and the scale is only a label.
      by_power: the defect of the law ``scale * ratio**p`` for each p of `POWERS`.
    """

    defect: float
    ratio: float
    depends_on_scale: bool
    by_power: dict[int, float]

    @property
    def holds(self) -> bool:
        return self.defect < TOLERANCE

    def __str__(self) -> str:
        if not self.depends_on_scale:
            label = "does not depend on the scale here, which then is a label: every law fits"
            wrong = f"; but its defect is {self.defect:.1e}: is the extent or a coefficient scaled?"
            return f"the residual {label}{'' if self.holds else wrong}"
        best = min(self.by_power, key=self.by_power.get)
        if self.holds:
            return f"the law fits the residual: defect {self.defect:.1e} at ratio {self.ratio:.3g}"
        fits = self.by_power[best] < TOLERANCE
        hint = f"; scale * ratio**{best} fits" if fits else "; no power of the ratio fits either"
        return f"the law does not fit the residual: defect {self.defect:.1e}{hint}"


def check(
    equation: str | Equation,
    *,
    solution: Any,
    scale: float | int,
    coefficient: Any = None,
    extent: Sequence[float] | None = None,
    size: int | Sequence[int] | None = None,
    **options,
) -> LawCheck:
    """Tests the scaling law of `equation` against its residual on one solution.

    Args:
      equation: an `Equation`, or a name of `sino_jax.equations`.

    Keyword args:
      solution: ``[*grid, channel]``: a solution, or any field that is not special.
      scale: its parameter.
      coefficient: ``[*grid, channel]``, if the equation has one.
      extent: side lengths of the domain; 1 each by default.
      size: points of the sub-domain, as in `sino_jax.loss.scale_consistency`; about half of the
        points a side by default.
      **options: further keyword arguments of the residual, numbers that do not scale.

    Returns:
      A `LawCheck`; print it. It is computed in double precision.

    Example:
      >>> from sino_jax import equations
      >>> x = np.linspace(0, 1, 33)
      >>> wave = np.sin(3 * x)[:, None, None] * np.cos(2 * x)[:, None]
      >>> found = check(
      ...     equations.get("helmholtz"), solution=wave, coefficient=1 + wave**2, scale=4.0
      ... )
      >>> found.holds, found.ratio
      (True, 0.5)
    """
    with jax.enable_x64(True):
        return _check(get(equation), solution, scale, coefficient, extent, size, options)


def _check(equation, solution, scale, coefficient, extent, size, options) -> LawCheck:
    solution = _double(solution)
    coefficient = None if coefficient is None else _double(coefficient)
    equation._check_field("solution", solution, equation.solution_channels)
    shape = solution.shape[:-1]
    if equation.coefficient_channels or coefficient is not None:
        equation._check_field("coefficient", coefficient, equation.coefficient_channels)
        if coefficient.shape[:-1] != shape:
            raise ValueError(
                f"coefficient must have the grid of the solution {shape}, got {coefficient.shape}"
            )
    extent = (1.0,) * len(shape) if extent is None else tuple(map(float, extent))
    size = (shape[0] + 1) // 2 if size is None else size
    size = equation.crop_size(size, shape)
    if min(size) < 2 * EDGE + 3:
        raise ValueError(f"size must be at least {2 * EDGE + 3} points on each axis, got {size}")
    ratio = equation.ratio(size, shape)
    centre = [(n - m) // 2 for n, m in zip(shape, size, strict=True)]
    start = [0 if a.anchored else s for a, s in zip(equation.axes, centre, strict=True)]
    # On an anchored axis the past ends where the field begins: its last frames stay.
    past = [
        n - m if a.anchored else s
        for a, s, n, m in zip(equation.axes, start, shape, size, strict=True)
    ]
    local_extent = grid.rescaled_extent(extent, size, shape, equation.centrings)
    local_solution = _box(solution, start, size)
    local_coefficient = None
    if coefficient is not None:
        local_coefficient = equation.rescale_coefficient(_box(coefficient, past, size), ratio)
    whole = equation.residual(
        coefficient, solution, jnp.asarray(scale, float), extent=extent, **options
    )

    def on_crop(local_scale: Any) -> np.ndarray:
        found = equation.residual(
            local_coefficient,
            local_solution,
            jnp.asarray(local_scale, float),
            extent=local_extent,
            **options,
        )
        return _inner(found, len(size))

    first = on_crop(equation.rescale(jnp.asarray(scale, float), ratio))
    points = [m - (n - r) for m, n, r in zip(size, shape, whole.shape, strict=False)]
    there = _inner(_box(whole, start, points), len(size))
    contribution = _norm(on_crop(1.1 * scale) - on_crop(scale))

    def defect(found: np.ndarray) -> float:
        space = tuple(range(len(size)))
        energy = np.sum(np.abs(there) ** 2, axis=space, keepdims=True)
        overlap = np.sum(np.conj(there) * found, axis=space, keepdims=True)
        factor = overlap / np.where(energy > 0, energy, 1)
        difference = _norm(found - factor * there)
        return difference / max(_norm(found), contribution, np.finfo(float).tiny)

    laws = {power: on_crop(power_law(power)(scale, ratio)) for power in POWERS}
    return LawCheck(
        defect=defect(first),
        ratio=ratio,
        depends_on_scale=contribution > TOLERANCE * max(_norm(first), np.finfo(float).tiny),
        by_power={power: defect(found) for power, found in laws.items()},
    )


def _double(field: Any) -> Array:
    values = np.asarray(field)
    return jnp.asarray(values, complex if np.iscomplexobj(values) else float)


def _box(field: Array, start: Sequence[int], size: Sequence[int]) -> Array:
    return field[tuple(slice(s, s + m) for s, m in zip(start, size, strict=True))]


def _inner(residual: Array, axes: int) -> np.ndarray:
    """Without the points at the edges, where one of the two residuals may be one-sided."""
    return np.asarray(residual)[(slice(EDGE, -EDGE),) * axes]


def _norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values))
