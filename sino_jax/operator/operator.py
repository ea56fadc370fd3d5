"""A trained operator for users: load it, solve with it, refine, and estimate the error.

    operator = sino_jax.operator.load("darcy")  # or the directory of a run
    solution = operator.solve(coefficient, boundary, scale=4.0)
    better = operator.refine(coefficient, boundary, scale=16.0)
    certain = operator.solve(coefficient, boundary, scale=16.0, tolerance=1e-4)

Arrays are NumPy's or JAX's, one problem ``[*grid, channel]`` or many ``[batch, *grid, channel]``,
on any rectangular grid; results have the same layout.
"""

import dataclasses
import functools
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from sino_jax import (
    base,
    decomposition,
    krylov,
    partition,
    problem,
    scale_range,
)
from sino_jax.decomposition import Refinement
from sino_jax.diagnostics import error_estimate
from sino_jax.diagnostics.error_estimate import Calibration, ErrorEstimate
from sino_jax.equations import Equation
from sino_jax.krylov import Solution
from sino_jax.loss.relative import relative_l2
from sino_jax.operator import export as exporting
from sino_jax.operator import portable
from sino_jax.operator import tolerance as to_tolerance
from sino_jax.problem import predict
from sino_jax.types import ApplyFn

# What users may give; `sino_jax.problem` checks it, and explains itself.
Fields = Array | np.ndarray | None
Scales = float | int | Array | np.ndarray | Sequence[float]
# Patches that are solved at once have so many grid points together: it bounds the memory.
POINTS_PER_CALL = 2**18


@dataclasses.dataclass(frozen=True)
class Operator:
    """A solution operator ``(coefficient, boundary, scale) -> solution``.

    Attributes:
      equation: the equation that it was trained for.
      apply_fn: ``apply_fn(params, inputs, scale)``.
      params: its weights.
      meta: what its checkpoint records: config, scales, data sets, versions.
      calibration: of its error estimates, None if there is none.
      smallest_grid: points that every axis of a problem must have at least.
    """

    equation: Equation
    apply_fn: ApplyFn
    params: Any
    meta: dict[str, Any]
    calibration: Calibration | None = None
    smallest_grid: int = 2

    def __repr__(self) -> str:
        weights = sum(leaf.size for leaf in jax.tree.leaves(self.params))
        model = self.meta.get("config", {}).get("model", {})
        name = model.get("name", "model")
        if name == "fno" and model.get("scale_informed"):  # one family, two names
            name = "sino"
        if (base_name := model.get("base", "none")) != "none":
            name += f" on {base_name} base"
        low, high = self.meta.get("scale_range", ("?", "?"))
        known = f"{name}, {weights:,} weights, scales {low:.4g} to {high:.4g}"
        return f"Operator({self.equation.name}: {known})"

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales of its training data."""
        return tuple(self.meta["scales"])

    @property
    def scale_range(self) -> tuple[float, float]:
        """Smallest and largest scale that its training saw, sub- and super-domains included."""
        return tuple(self.meta["scale_range"])

    def solve(
        self,
        coefficient: Fields,
        boundary: Fields,
        scale: Scales,
        *,
        tolerance: float | None = None,
        iterations: int = 200,
        extent: Sequence[float] | None = None,
    ) -> Inexact[Array, "..."] | Solution:
        """Predicts the solution of one problem or of many, or solves them to a tolerance.

        With a tolerance (Darcy flow, Helmholtz) the prediction is the start of an iteration on the
        finite element problem, in double precision, see `sino_jax.krylov`. It ends when the
        guaranteed bound of the relative L2 error is at most the tolerance, or, for indefinite
        problems, which have no bound, an estimate of the error. The reference is the bilinear
        finite element solution on the grid, whose own error is another matter.

        Args:
          coefficient: interior data, or None if the equation has none.
          boundary: a field of which only the values on the equation's sides are read; ignored if
            the equation has no boundary data.
          scale: the equation's parameter, one for all or one for each problem. Outside of
            `scale_range` a `sino_jax.scale_range.ScaleWarning` is given.
          tolerance: relative error to solve to; None for the prediction itself.
          iterations: at most this many to reach it. If that fails a
            `sino_jax.operator.tolerance.ToleranceWarning` is given, and `reached` is False.
          extent: side lengths of the domain; square cells and unit area by default.

        Returns:
          The solution on the same grid, complex if the equation is. With a tolerance a
          `sino_jax.krylov.Solution`: solution, iterations, history, bound and more.

        Raises:
          ValueError: names the argument that cannot be used, what it is, and what is expected. With
            a tolerance also for an equation that is not linear, a tolerance below round-off, and a
            resonance.
        """
        if tolerance is not None:
            krylov.check_equation(self.equation)
        instance, single = self._problems(coefficient, boundary, scale)
        scale_range.warn_outside(instance.scale, self.scale_range)
        solution = self._solve(self.params, instance)
        if tolerance is None:
            return solution[0] if single else solution
        given = (coefficient, boundary, scale)
        if single:
            given = (np.asarray(coefficient)[None], np.asarray(boundary)[None], scale)
        solved = to_tolerance.solve(
            self.equation,
            given,
            solution,
            tolerance=tolerance,
            iterations=iterations,
            extent=extent,
        )
        if not single:
            return solved
        return jax.tree.map(lambda array: array[0], solved._replace(history=solved.history.T))

    def refine(
        self, coefficient: Fields, boundary: Fields, scale: Scales, **options
    ) -> Inexact[Array, "..."]:
        """The refined solution alone; arguments and options are those of `refine_history`."""
        return self.refine_history(coefficient, boundary, scale, **options).solution

    def refine_history(
        self,
        coefficient: Fields,
        boundary: Fields,
        scale: Scales,
        *,
        iterations: int = 5,
        patch: int | Sequence[int] | None = None,
        overlap: int | Sequence[int] | None = None,
        start: str | Fields = "coarse",
        **options,
    ) -> Refinement:
        """Solves repeatedly on overlapping patches, see `sino_jax.decomposition`.

        Args:
          coefficient, boundary, scale: as in `solve`. A warning is given if the scale of the
            patches, not that of the whole domain, is outside of `scale_range`.
          iterations: at most this many; 0 is the start itself.
          patch: points that a patch has at most, on each axis or on all; by default the training
            grid's. Axes of fewer points are not cut.
          overlap: points that neighbours share at least; half of `patch` by default.
          start: "coarse" (the prediction on the whole domain), "zeros" or an estimate.
          **options: blend, ramp, tolerance, criterion, extent, memory and patches_per_call of
            `sino_jax.decomposition.refine_history`.

        Raises:
          ValueError: as in `solve`, and if the grid is no larger than a patch.
        """
        instance, single = self._problems(coefficient, boundary, scale)
        if instance.boundary is None:
            raise ValueError(
                f"{self.equation.name} has no boundary data to exchange between patches"
            )
        shape = instance.boundary.shape[1:-1]
        size = self._patch_size(patch, shape)
        shared = _per_axis("overlap", overlap, size, default=[max(2, n // 2) for n in size])
        counts = partition.counts(shape, size, shared)
        layout = partition.cover(shape, counts, shared)
        local = self.equation.rescale(instance.scale, self.equation.ratio(layout.size, shape))
        scale_range.warn_outside(local, self.scale_range, what="scale of the patches")
        options.setdefault("patches_per_call", max(1, POINTS_PER_CALL // math.prod(layout.size)))
        if self.equation.name in error_estimate.ELLIPTIC:
            options.setdefault("extent", base.square_cells(shape))
        if not isinstance(start, str):
            start = jnp.asarray(start)[None] if single else jnp.asarray(start)
        refined = decomposition.refine_history(
            self._apply,
            self.params,
            instance.coefficient,
            instance.boundary,
            instance.scale,
            equation=self.equation,
            patches=counts,
            overlap=shared,
            iterations=iterations,
            start=start,
            **options,
        )
        if not single:
            return refined
        return Refinement(refined.solution[0], refined.change[:, 0], refined.residual[:, 0])

    def estimate_error(
        self,
        coefficient: Fields,
        boundary: Fields,
        scale: Scales,
        *,
        solution: Fields = None,
        extent: Sequence[float] | None = None,
        iterations: int = 0,
    ) -> ErrorEstimate:
        """Relative L2 errors that predictions may have, from their residuals: no solution needed.

        For Darcy flow, and for Helmholtz problems of small wave number, `bound` is guaranteed; for
        others the estimate is an indicator only: see `sino_jax.diagnostics.error_estimate`.

        Args:
          coefficient, boundary, scale: as in `solve`.
          solution: the prediction to judge, by default that of `solve`.
          extent: side lengths of the domain; square cells and unit area by default.
          iterations: of conjugate gradients that sharpen the bound, with 4 from tens of times the
            error to less than three times (Darcy test problems, see `benchmarks.certificates`).
        """
        if solution is None:
            solution = self.solve(coefficient, boundary, scale)
        instance, single = self._problems(coefficient, boundary, scale, solution=solution)
        extent = None if extent is None else tuple(extent)
        given = self._indicator(instance, extent=extent, iterations=iterations)
        result = error_estimate.estimate(given, self.calibration)
        if not single:
            return result
        return result._replace(
            relative=result.relative[0], upper=result.upper[0], bound=result.bound[0]
        )

    def calibrate(
        self, coefficient: Fields, boundary: Fields, scale: Scales, solution: Fields
    ) -> "Operator":
        """The operator with error estimates calibrated on held-out problems with known solutions.

        The more alike these problems are to those that will be asked for, the better.
        """
        prediction = self.solve(coefficient, boundary, scale)
        instance, _ = self._problems(coefficient, boundary, scale, solution=prediction)
        truth, _ = self._problems(coefficient, boundary, scale, solution=solution)
        errors = relative_l2(instance.solution, truth.solution.astype(instance.solution.dtype))
        indicators = self._indicator(instance).relative
        return dataclasses.replace(self, calibration=error_estimate.calibrate(indicators, errors))

    def save(
        self, directory: str | os.PathLike, *, storage: Literal["float32", "float16"] = "float32"
    ) -> pathlib.Path:
        """Writes the operator to a new directory for `load`: see `sino_jax.operator.portable`.

        Args:
          directory: must not exist.
          storage: "float16" halves the file: entries of large arrays are rounded by up to 0.05
            percent. Loaded weights are float32 again.
        """
        return portable.write(directory, self.params, self.meta, self.calibration, storage=storage)

    def export(
        self,
        path: str | os.PathLike,
        *,
        grid: Sequence[int] | None = None,
        platforms: Sequence[str] = ("cpu", "cuda"),
        vjp_order: int = 0,
    ) -> pathlib.Path:
        """Writes `solve` on one grid as a program that JAX alone can run: see `operator.export`.

        Args:
          path: of the file; what is there is replaced.
          grid: points on each axis; by default the largest grid of the training data.
          platforms: of cpu, cuda, rocm and tpu, where the program shall run.
          vjp_order: how often the program can be differentiated.
        """
        if grid is None:
            if not self.meta["grids"]:
                raise ValueError("grid must be given: the training grid is not recorded")
            grid = max(self.meta["grids"], key=math.prod)
        program = exporting.exported(
            self.equation, self.apply_fn, self.params, tuple(grid), platforms=platforms
        )
        return exporting.write(path, program, vjp_order=vjp_order)

    def _problems(self, coefficient, boundary, scale, *, solution=None):
        return problem.as_batch(
            self.equation,
            coefficient,
            boundary,
            scale,
            solution=solution,
            smallest_grid=self.smallest_grid,
        )

    def _patch_size(
        self, patch: int | Sequence[int] | None, shape: tuple[int, ...]
    ) -> tuple[int, ...]:
        grids = self.meta["grids"]
        if patch is None and not grids:
            raise ValueError(
                "patch must be given: this operator's directory does not record its training grid"
            )
        size = _per_axis("patch", patch, shape, default=max(grids, key=math.prod, default=()))
        anchored = [axis.anchored for axis in self.equation.axes]
        size = tuple(
            points if fixed else min(n, points)
            for n, points, fixed in zip(size, shape, anchored, strict=True)
        )
        if size == shape:
            raise ValueError(
                f"patch must be smaller than the grid on some axis to refine, got patches of "
                f"{size} points on a grid of {shape}"
            )
        if min(size) < self.smallest_grid:
            raise ValueError(f"patch must be at least {self.smallest_grid} points, got {size}")
        return size

    @functools.cached_property
    def _apply(self) -> ApplyFn:
        return jax.jit(self.apply_fn)

    @functools.cached_property
    def _solve(self):
        return jax.jit(
            lambda params, instance: predict(self.apply_fn, params, instance, self.equation)
        )

    @functools.cached_property
    def _indicator(self):
        estimate = functools.partial(error_estimate.indicator, equation=self.equation)
        return jax.jit(estimate, static_argnames=("extent", "iterations"))


def _per_axis(
    name: str, value: int | Sequence[int] | None, shape: Sequence[int], *, default: Sequence[int]
) -> tuple[int, ...]:
    chosen = default if value is None else value
    chosen = (chosen,) * len(shape) if isinstance(chosen, int) else tuple(chosen)
    if len(chosen) != len(shape):
        raise ValueError(
            f"{name} must be one number or one for each of {len(shape)} axes, got {chosen}"
        )
    return chosen
