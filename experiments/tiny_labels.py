"""Labels from tiny problems only: does self-consistency carry their accuracy to larger scales?

    python -m experiments.tiny_labels --config=small                       # one row
    python -m experiments.campaign experiments/campaigns/tiny_labels.txt   # all of them
    python -m experiments.tiny_labels_report --write

The paper's theorem bounds the error on large, varied problems by that on small, simple ones, the
error on the boundary (zero with a base solution) and the lack of self-consistency. Here labels are
of the smallest scale alone, and the larger ones have nothing but the third term. ``measures`` of a
result says what the judge knows, the model at the scale of its labels:

    patches    by scale, its error on sub-domains of true solutions that have the scale of the
               labels, relative to the variation of the solution there
    schwarz    by scale, the error of the Schwarz iteration on such sub-domains, at its end: a
               perfectly consistent solution
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from experiments import darcy, runner, training
from sino_jax import data, operator
from sino_jax.loss import relative_l2, scale_consistency
from sino_jax.operator import Operator
from sino_jax.types import Batch, Instance, PerExample
from solvers.configs import darcy as data_configs

# Problems of each scale, sub-domains of each, and accelerated iterations.
PROBLEMS, DRAWS, ITERATIONS, MEMORY = 16, 4, 30, 8
# Larger problems have too many patches.
LARGEST_RATE = 4


def measure(
    config: ConfigDict, workdir: pathlib.Path, sets: Mapping[str, pathlib.Path]
) -> dict[str, Any]:
    """What a trained row knows at the scale of its labels, see the module."""
    trained = operator.load(workdir)
    (home,) = trained.meta["grids"]
    measures: dict[str, Any] = {"patches": {}, "schwarz": {}}
    for name, path in sets.items():
        dataset = data.load(path)
        rate = (dataset.grid[0] - 1) / (home[0] - 1)
        if name.startswith(config.score) and 1 < rate <= LARGEST_RATE:
            given = dataset.examples(range(min(PROBLEMS, len(dataset))))
            given = jax.tree.map(jnp.asarray, given)
            scale = f"{dataset.scale:g}"
            measures["patches"][scale] = patch_error(trained, given, home[0])
            measures["schwarz"][scale] = schwarz_error(trained, given, home[0])
    return measures


def patch_error(trained: Operator, given: Instance, size: int) -> float:
    """Mean error on sub-domains of `size` points of true solutions."""
    errors = scale_consistency(
        jax.jit(trained.apply_fn),
        trained.params,
        given,
        equation=trained.equation,
        size=size,
        key=jax.random.key(0),
        count=DRAWS,
        error_fn=relative_to_variation,
    )
    return float(errors.mean())


def schwarz_error(trained: Operator, given: Instance, size: int) -> float:
    """Mean error of the iteration on overlapping patches of `size` points."""
    solution = trained.refine(
        given.coefficient,
        given.solution,
        given.scale,
        patch=size,
        iterations=ITERATIONS,
        memory=MEMORY,
    )
    return float(relative_l2(solution, given.solution).mean())


def relative_to_variation(prediction: Batch, target: Batch) -> PerExample:
    """Relative L2 error of which a constant added to both changes nothing."""
    mean = jnp.mean(target, axis=(1, 2), keepdims=True)
    return relative_l2(prediction - mean, target - mean)


EXPERIMENT = training.Experiment(
    name="tiny_labels",
    equation="darcy",
    data_config=data_configs.get_config,
    model_fields=darcy.model_fields,
    prior=darcy.prior,
    measure=measure,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
