"""How wrong predictions of Dirichlet problems may be: bounds, and estimates calibrated on data.

For a prediction p of -∇·(a∇u) - k²u = 0, u = g (k = 0 is Darcy flow), let w be the harmonic field
with the boundary values g - p, so that p + w has the right ones, and r the residual of p + w. With
the smallest eigenvalue λ₁ of the Laplacian, its stiffness matrix K, and the notation of
`sino_jax.diagnostics`, there is a bound and an indicator:

    bound        ‖p - u‖  ≤  ‖w‖ + ‖r‖₋₁ / (√λ₁ (a_min - k²/λ₁))        as long as k² < a_min λ₁
    indicator    ‖p - u‖  ≈  ‖w - K⁻¹r / ā‖                             ā the geometric mean of a

u being the bilinear finite element solution on the grid. The bound holds for the worst error with
that residual, an oscillation between the low values of a, and is pessimistic for others, by a
factor of ten to forty. A few iterations of conjugate gradients from p + w make it sharp: if they
lead to v, then ‖p - u‖ ≤ ‖p - v‖ + ‖v - u‖, and only the second, smaller part is overestimated. For
larger k the problem may be indefinite, and there is no bound. The indicator is the size of the
correction that the constant medium ā would make. It is off by a factor that varies less between
problems of one kind; `calibrate` measures that factor where solutions are known.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sino_jax import base, channels, diagnostics, krylov
from sino_jax.equations import Equation
from sino_jax.norms import bilinear_l2_norm, relative
from sino_jax.types import Instance, PerExample

COVERAGE = 0.95
# The equations of this form, and whether their scale is k.
ELLIPTIC = {"darcy": False, "helmholtz": True}
GUARANTEED = (
    "bound is guaranteed, up to round-off, against the bilinear finite element solution on this "
    "grid; relative and upper are estimates"
)
INDICATOR_ONLY = (
    "indicator only: at such wave numbers a problem may be indefinite, and an error near a "
    "resonance has almost no residual; nothing is guaranteed where bound is infinite"
)


class Calibration(NamedTuple):
    """True relative errors over indicators, on held-out data.

    Attributes:
      factor: their median.
      upper_factor: their quantile `COVERAGE`.
      rank_correlation: Spearman's, between indicators and errors.
      samples: number of problems.
    """

    factor: float
    upper_factor: float
    rank_correlation: float
    samples: int


class Indicator(NamedTuple):
    """See the module. Relative to the L2 norm of the prediction, `bound` to that of the solution.

    Attributes:
      relative: finite for every problem.
      bound: of the relative error; infinite where nothing is guaranteed.
      coercive: whether k² < a_min λ₁.
    """

    relative: PerExample
    bound: PerExample
    coercive: Bool[Array, "batch"]


class ErrorEstimate(NamedTuple):
    """Relative L2 errors that predictions may have.

    Attributes:
      relative: what the error typically is: the indicator times the calibrated factor.
      upper: what it exceeds for one problem in twenty of the kind that the calibration saw.
      bound: what it never exceeds; infinite where nothing is guaranteed.
      calibrated: False if there was no calibration; both factors are 1 then.
      guarantee: what is guaranteed for these problems, in words.
    """

    relative: Float[Array, "*batch"]
    upper: Float[Array, "*batch"]
    bound: Float[Array, "*batch"]
    calibrated: bool
    guarantee: str


def indicator(
    instance: Instance,
    *,
    equation: Equation,
    extent: Sequence[float] | None = None,
    iterations: int = 0,
) -> Indicator:
    """The indicator of a batch whose `solution` is the prediction.

    Args:
      instance: coefficient, boundary, scale and prediction.
      equation: one of `ELLIPTIC`.
      extent: side lengths; square cells and unit area by default.
      iterations: of conjugate gradients that sharpen the bound (static).
    """
    if equation.name not in ELLIPTIC:
        raise ValueError(
            f"errors can be estimated for {' and '.join(ELLIPTIC)}, not for {equation.name}"
        )
    shape = instance.solution.shape[1:-1]
    if min(shape) < 3:
        raise ValueError(f"the grid must have at least 3 points on each axis, got {shape}")
    extent = base.square_cells(shape) if extent is None else tuple(extent)
    lowest_eigenvalue = np.pi**2 * sum(1 / length**2 for length in extent)
    has_wave_number = ELLIPTIC[equation.name]

    def of_one(coefficient, field, scale, prediction):
        if equation.complex_valued:
            field, prediction = channels.as_complex(field), channels.as_complex(prediction)
        k = scale if has_wave_number else jnp.zeros_like(scale)
        lift = base.harmonic(field - prediction, extent=extent)
        load = diagnostics.residual_load(coefficient, prediction + lift, k=k, extent=extent)
        potential = base.poisson(load, extent=extent)
        mean = jnp.exp(jnp.mean(jnp.log(coefficient)))
        inner = ((1, 1), (1, 1), (0, 0))
        correction = lift - jnp.pad(potential / mean.astype(potential.dtype), inner)
        size = bilinear_l2_norm(prediction, extent)
        indicated = relative(bilinear_l2_norm(correction, extent), size)

        margin = jnp.min(coefficient) - k**2 / lowest_eigenvalue
        coercive = margin > 0
        better = prediction + lift
        if iterations:
            better = krylov.conjugate_steps(
                better, coefficient, k, iterations=iterations, extent=extent
            )
            load = diagnostics.residual_load(coefficient, better, k=k, extent=extent)
            potential = base.poisson(load, extent=extent)
        gradient = diagnostics.dual_norm(load, potential) / jnp.where(coercive, margin, 1)
        beyond = gradient / lowest_eigenvalue**0.5
        absolute = bilinear_l2_norm(better - prediction, extent) + beyond
        # ‖u‖ ≥ ‖v‖ - ‖v - u‖
        rest = jnp.where(coercive, bilinear_l2_norm(better, extent) - beyond, 0)
        bound = jnp.where(rest > 0, absolute / jnp.where(rest > 0, rest, 1), jnp.inf)
        return Indicator(indicated, jnp.where(jnp.isnan(indicated), jnp.nan, bound), coercive)

    return jax.vmap(of_one)(
        instance.coefficient, instance.boundary, instance.scale, instance.solution
    )


def estimate(given: Indicator, calibration: Calibration | None) -> ErrorEstimate:
    """Indicators of a batch as error estimates."""
    factor, upper_factor = (1.0, 1.0) if calibration is None else calibration[:2]
    return ErrorEstimate(
        relative=factor * given.relative,
        upper=upper_factor * given.relative,
        bound=given.bound,
        calibrated=calibration is not None,
        guarantee=GUARANTEED if bool(jnp.all(given.coercive)) else INDICATOR_ONLY,
    )


def calibrate(indicators: Array | np.ndarray, errors: Array | np.ndarray) -> Calibration:
    """The factors between indicators and true relative errors ``[sample]`` of held-out problems."""
    indicators, errors = np.asarray(indicators, float), np.asarray(errors, float)
    if indicators.shape != errors.shape or indicators.ndim != 1 or len(errors) < 2:
        raise ValueError(
            "indicators and errors must be two lists of one length, at least 2, "
            f"got shapes {indicators.shape} and {errors.shape}"
        )
    if not (np.isfinite(indicators).all() and np.isfinite(errors).all() and indicators.all()):
        raise ValueError("indicators and errors must be finite, and indicators not zero")
    ratios = errors / indicators
    return Calibration(
        factor=float(np.median(ratios)),
        upper_factor=float(np.quantile(ratios, COVERAGE)),
        rank_correlation=rank_correlation(indicators, errors),
        samples=len(errors),
    )


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's coefficient of two lists without ties; NaN has no rank and is refused."""
    for name, values in (("first", first), ("second", second)):
        if np.isnan(values).any():
            raise ValueError(f"{name} must not hold NaN, got {int(np.isnan(values).sum())} of them")
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])
