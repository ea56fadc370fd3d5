"""A training config for your own data sets, with sizes that suit their grids.

    config = recipe.recipe(["data/mine/train-4"], ["data/mine/test-4"], model="fno", preset="small")
    train.fit(config, "runs/mine")

The result is an ordinary dictionary for `sino_jax.train.fit`: look at it, change it.
"""

import dataclasses
import os
import statistics
from collections.abc import Sequence
from typing import Any

from sino_jax import checks, data, equations, models
from sino_jax.data import Dataset
from sino_jax.equations import Equation
from sino_jax.train import verification

CONSISTENCY = ("none", "sub", "sub+stretch", "sub+super")
# Sides of sub-domains relative to the domain's, and the fewest points that they may have.
CROPS = (1 / 4, 3 / 8, 1 / 2, 3 / 4)
# In time and in space: Reynolds numbers from a quarter to 2.7 times that of the data.
STRETCHED_CROPS = ((1, 1 / 2), (1, 0.7), (3 / 4, 1 / 2), (3 / 4, 1), (1 / 2, 1), (3 / 8, 1))
SMALLEST_CROP = 9
SUPER_RATE = 1.5


@dataclasses.dataclass(frozen=True)
class Preset:
    """Sizes of a model and of its training; `modes` are at most, a grid may have fewer."""

    modes: int
    width: int
    layers: int
    levels: int
    epochs: int
    learning_rate: float


PRESETS = {
    "tiny": Preset(modes=4, width=8, layers=2, levels=2, epochs=2, learning_rate=2e-3),
    "small": Preset(modes=12, width=24, layers=4, levels=3, epochs=100, learning_rate=2e-3),
    "large": Preset(modes=20, width=64, layers=4, levels=4, epochs=200, learning_rate=1e-3),
}


def recipe(
    train: Sequence[str | os.PathLike | Dataset],
    test: Sequence[str | os.PathLike | Dataset] = (),
    *,
    val: Sequence[str | os.PathLike | Dataset] = (),
    equation: str | Equation | None = None,
    model: str = "fno",
    preset: str = "small",
    consistency: str = "sub",
    seed: int = 0,
) -> dict[str, Any]:
    """A config of `sino_jax.train.fit`.

    Args:
      train: training sets, or their directories. Several may have different scales and grids.
      test: sets to evaluate on at the end, of any scale and grid.

    Keyword args:
      val: sets to evaluate on during training, by which the best checkpoint is chosen.
      equation: of the data; by default the one that the data sets name, which must then be one of
        `sino_jax.equations`.
      model: a name of `sino_jax.models.MODELS`.
      preset: one of `PRESETS`: tiny (seconds, to see whether it runs), small, large.
      consistency: "sub" adds scale-consistency on sub-domains, "sub+stretch" also on those whose
        sides in time and space differ (Burgers, Navier-Stokes in space-time), "sub+super" also on
        larger domains (the data continued by reflection), "none" is supervised training alone.
      seed: of weights, batches and crops.

    Raises:
      ValueError: names the argument that does not fit.
    """
    if not train:
        raise ValueError("train must name at least one data set, got none")
    checks.one_of("model", model, models.MODELS)
    checks.one_of("preset", preset, PRESETS)
    checks.one_of("consistency", consistency, CONSISTENCY)
    train = [given if isinstance(given, Dataset) else data.load(given) for given in train]
    equation = equations.get(train[0].equation if equation is None else equation)
    grids = [dataset.grid for dataset in train]
    sizes = PRESETS[preset]
    loss = _loss(equation, consistency, grids)
    features = {}
    if model in ("sino", "sino_u") and consistency == "sub+stretch":
        # Features that can tell the scales of such crops apart.
        reference = statistics.geometric_mean(dataset.scale for dataset in train)
        features = {"scale_embedding": "octaves", "reference_scale": reference}
    verification.check_consistency(train, loss)
    return {
        "seed": seed,
        "equation": equation.name,
        "model": {"name": model, **_model_sizes(model, sizes, grids), **features},
        "loss": loss,
        "data": {
            "train": _paths(train),
            "val": _paths(val),
            "test": _paths(test),
            "batch_size": min(8, *(len(dataset) for dataset in train)),
            # Users' coefficients come in all units.
            "normalise": equation.coefficient_channels > 0,
        },
        "epochs": sizes.epochs,
        "optimizer": {"learning_rate": sizes.learning_rate},
    }


def _model_sizes(model: str, sizes: Preset, grids: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Fields of the model's class: widths and depths, and modes that the smallest grid resolves."""
    fewest = [min(grid[axis] for grid in grids) for axis in range(len(grids[0]))]
    modes = tuple(max(1, min(sizes.modes, points // 2)) for points in fewest)
    most = max(max(grid) for grid in grids)
    side = 2 ** max(3, min(7, (most - 1).bit_length()))  # of the grid that convolutions work on
    levels = min(sizes.levels, side.bit_length() - 2)
    spectral = {"n_modes": modes, "hidden_channels": sizes.width, "padding": 0.25}
    pyramid = {"hidden_channels": max(4, sizes.width // 2), "n_levels": levels, "size": side}
    return {
        "fno": {**spectral, "n_layers": sizes.layers},
        "sino": {**spectral, "n_layers": sizes.layers},
        "sino_u": {**spectral, "n_layers": sizes.layers, "n_levels": sizes.levels},
        "uno": {**spectral, "n_levels": sizes.levels},
        "unet": pyramid,
        "cno": pyramid,
        "fno_unet": {**pyramid, "n_modes": modes},
    }[model]


def _loss(equation: Equation, consistency: str, grids: Sequence[Sequence[int]]) -> dict[str, Any]:
    if consistency == "none":
        return {}
    sizes = {
        round(share * (grid[0] - 1)) + 1
        for grid in grids
        for share in CROPS
        if round(share * (min(grid[axis] for axis in equation.spatial_axes) - 1)) + 1
        >= SMALLEST_CROP
    }
    if not sizes:
        raise ValueError(
            f"consistency must be none for grids of {grids} points: no sub-domain would have "
            f"{SMALLEST_CROP} points a side"
        )
    boxes = _stretched(equation, grids) if consistency == "sub+stretch" else ()
    return {
        "sub_sizes": (*sorted(sizes), *boxes),
        "super_rates": (SUPER_RATE,) if consistency == "sub+super" else (),
    }


def _stretched(equation: Equation, grids: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Boxes of `STRETCHED_CROPS`, for equations whose law is exact on them."""
    if not equation.side_powers:
        raise ValueError(
            "consistency sub+stretch is for equations whose law is exact on boxes of unequal sides "
            f"(burgers, navier_stokes_spacetime), got {equation.name}"
        )
    boxes = {
        tuple(
            round((in_time if axis.name == "t" else in_space) * (points - 1)) + 1
            for axis, points in zip(equation.axes, grid, strict=True)
        )
        for grid in grids
        for in_time, in_space in STRETCHED_CROPS
    }
    return sorted(box for box in boxes if min(box) >= SMALLEST_CROP)


def _paths(sets: Sequence[str | os.PathLike | Dataset]) -> tuple[str, ...]:
    return tuple(str(given.path if isinstance(given, Dataset) else given) for given in sets)
