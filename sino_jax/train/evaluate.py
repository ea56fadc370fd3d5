"""Errors of an operator on whole data sets, of any grids and scales, in bounded memory."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from sino_jax import channels, loss, problem
from sino_jax.data import Dataset
from sino_jax.data.prefetch import prefetch
from sino_jax.equations import Equation
from sino_jax.rollout import rollout
from sino_jax.train import parallel
from sino_jax.types import ApplyFn, Instance, PerExample

# metrics_fn(params, instance) -> named errors of each example.
MetricsFn = Callable[[Any, Instance], dict[str, PerExample]]


def error_metrics(apply_fn: ApplyFn, equation: Equation) -> MetricsFn:
    """Relative L2 errors of single predictions: on the whole grid and on its central half."""

    def metrics_fn(params, instance):
        inputs = problem.inputs(equation, instance)
        prediction = apply_fn(params, inputs, instance.scale)
        target = channels.to_channels(instance.solution)
        return {
            "relative_l2": loss.relative_l2(prediction, target),
            "relative_l2_central_half": loss.relative_l2_central_half(
                prediction, target, axes=equation.spatial_axes
            ),
        }

    return metrics_fn


def rollout_metrics(apply_fn: ApplyFn, equation: Equation, steps: int) -> MetricsFn:
    """Relative L2 errors of the frames of an autoregressive prediction of `steps` steps.

    Each frame has an error of its own; ``relative_l2`` is their mean, ``relative_l2_last`` that of
    the last. Both are given on the whole grid and, ``..._central_half``, on its central half in
    space. For frames on an axis (space-time problems) a step is a block of frames.
    """

    def metrics_fn(params, instance):
        prediction = rollout(apply_fn, params, instance, equation=equation, steps=steps)
        frames = (jnp.stack(_steps(field, steps)) for field in (prediction, instance.solution))
        predicted, true = frames
        whole = jax.vmap(loss.relative_l2)(predicted, true)
        central = jax.vmap(
            lambda p, t: loss.relative_l2_central_half(p, t, axes=equation.spatial_axes)
        )(predicted, true)
        return {
            f"relative_l2{part}{region}": value
            for region, errors in {"": whole, "_central_half": central}.items()
            for part, value in {
                "": errors.mean(axis=0),
                "_last": errors[-1],
            }.items()
        }

    def _steps(field, steps):
        by_axis = any(axis.anchored for axis in equation.axes)
        return jnp.split(field, steps, axis=-2 if by_axis else -1)

    return metrics_fn


def of_first_step(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics of single predictions under the names that they have beside those of rollouts."""
    return {
        name.replace("relative_l2", "relative_l2_first"): value for name, value in metrics.items()
    }


class Evaluator:
    """Averages of per-example metrics over data sets, on all devices of a mesh.

    Args:
      metrics_fn: see `error_metrics`.
      mesh: see `sino_jax.train.parallel.data_mesh`.
      points_per_batch: grid points that a device holds at once: it bounds the memory.
    """

    def __init__(self, metrics_fn: MetricsFn, mesh: Mesh, *, points_per_batch: int):
        self._mesh = mesh
        self._points = points_per_batch

        def weighted_sums(params, weighted_batch):
            batch, weight = weighted_batch
            metrics = metrics_fn(params, batch)
            sums = {name: jnp.sum(weight * value) for name, value in metrics.items()}
            return jax.lax.psum(sums, parallel.AXIS)

        specs = (parallel.SAME, parallel.SPLIT)
        sharded = jax.shard_map(weighted_sums, mesh=mesh, in_specs=specs, out_specs=parallel.SAME)
        self._sums = jax.jit(sharded)

    def __call__(self, params: Any, dataset: Dataset) -> dict[str, float]:
        """Mean of every metric over all examples of `dataset`, each counted once."""
        size = self.batch_size(dataset)

        def load(start):
            ids = np.arange(start, min(start + size, len(dataset)))
            part = parallel.own_part(parallel.pad(ids, size, self._mesh.size))
            return parallel.split((dataset.examples(part.ids), part.weight), self._mesh)

        totals: dict[str, float] = {}
        for _, batch in prefetch(load, range(0, len(dataset), size)):
            for name, value in self._sums(params, batch).items():
                totals[name] = totals.get(name, 0.0) + float(value)
        return {name: total / len(dataset) for name, total in totals.items()}

    def batch_size(self, dataset: Dataset) -> int:
        """Examples evaluated at once on all devices: at least one each, at most the data set."""
        points = math.prod(dataset.grid)
        per_device = max(1, self._points // points)
        needed = -(-len(dataset) // self._mesh.size)
        return min(per_device, needed) * self._mesh.size


def names(datasets: Sequence[Dataset]) -> list[str]:
    """A name for each data set: that of its directory, with as many parents as it takes."""
    parts = [dataset.path.absolute().parts[1:] for dataset in datasets]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        chosen = ["/".join(part[-depth:]) for part in parts]
        if len(set(chosen)) == len(chosen):
            return chosen
    return [str(dataset.path) for dataset in datasets]
