"""`load`: from a name, or the directory of a run or of a portable operator, to an `Operator`."""

import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
from ml_collections import FrozenConfigDict

from sino_jax import checkpoint, data, equations
from sino_jax.equations import Equation
from sino_jax.loss import crops
from sino_jax.models import network
from sino_jax.operator import portable, pretrained
from sino_jax.operator.calibration import read_calibration
from sino_jax.operator.operator import Operator


def load(
    directory: str | os.PathLike,
    *,
    step: int | str | None = None,
    equation: str | Equation | None = None,
) -> Operator:
    """Loads an operator: one that comes with the package, a run's, or one that was saved.

    Args:
      directory: a name of `sino_jax.operator.available`, such as "darcy"; or the directory that was
        given to `sino_jax.train.fit` or to `Operator.save`.
      step: of a run's checkpoint, the newest by default; "best" takes the one of least error on
        validation data (``config.data.val``). Averaged weights are taken if there are any.
      equation: if given, an operator of another equation is refused; needed for equations that are
        not in `sino_jax.equations`.

    Raises:
      FileNotFoundError: there is no such directory, and no operator of that name.
      ValueError: an operator of another equation; a step of a portable directory; a config that
        this release does not know; a name that is also a directory with an operator.
      sino_jax.checkpoint.CheckpointError: no checkpoint of the run is readable.
      sino_jax.operator.portable.PortableError: the portable directory is not readable.
    """
    directory = pretrained.resolve(directory)
    if portable.is_portable(directory):
        if step is not None:
            raise ValueError(f"step must be None for {directory}, which holds one operator")
        params, meta = portable.read(directory)
    else:
        params, meta = checkpoint.read_weights(directory, _step(directory, step))
    config = FrozenConfigDict(meta["config"])
    checkpoint.check_precision(config)
    found = equations.get(config.equation if equation is None else equation)
    if found.name != config.equation:
        raise ValueError(
            f"equation must be {config.equation!r}, which the operator in {directory} was trained "
            f"for, got {found.name!r}"
        )
    model, apply_fn = network.build(config.model, found, meta["statistics"])
    return Operator(
        equation=found,
        apply_fn=apply_fn,
        params=jax.tree.map(jnp.asarray, params),
        meta=_with_ranges(meta, found),
        calibration=read_calibration(directory),
        smallest_grid=model.smallest_grid(),
    )


def _step(directory: pathlib.Path, step: int | str | None) -> int:
    match step:
        case None:
            return checkpoint.newest(directory)
        case "best":
            return checkpoint.best(directory)
        case int():
            return step
        case other:
            raise ValueError(f"step must be a number, 'best' or None, got {other!r}")


def _with_ranges(meta: dict[str, Any], equation: Equation) -> dict[str, Any]:
    """`meta` with grids and scale_range, which early checkpoints leave to the data sets to tell."""
    if "grids" in meta and "scale_range" in meta:
        return meta
    try:
        train = [data.load(path) for path in meta["config"]["data"]["train"]]
    except data.DatasetError:
        return {**meta, "grids": [], "scale_range": [min(meta["scales"]), max(meta["scales"])]}
    known = [(dataset.scale, dataset.grid) for dataset in train]
    trained = crops.trained_range(equation, known, meta["config"]["loss"])
    return {**meta, "grids": [grid for _, grid in known], "scale_range": list(trained)}
