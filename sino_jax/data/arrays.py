"""Data sets from arrays of your own.

    sino_jax.data.from_arrays(
        "data/mine",
        equation="helmholtz",
        coefficient=a,  # [sample, x, y]
        solution=u,
        scale=k,  # one number, or one for each sample
        split={"train": 0.8, "val": 0.1, "test": 0.1},
    )

makes ``data/mine/train-10``, ``data/mine/test-10`` and so on, one data set for each split and
scale, as `sino_jax.data.load`, training and evaluation take them.
"""

import contextlib
import math
import os
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sino_jax import checks, equations
from sino_jax.data.dataset import Dataset, load
from sino_jax.data.writing import write
from sino_jax.equations import Equation

SPLITS = ("train", "val", "test")
# A data set holds one scale: more of them than this are hardly meant, and make tiny data sets.
MOST_SCALES = 64
# One array for all samples, or a sequence of arrays, one a sample, whose grids may differ.
Samples = np.ndarray | Sequence[np.ndarray] | Any


def from_arrays(
    path: str | os.PathLike,
    *,
    equation: str | Equation,
    scale: float | int | Sequence[float | int] | np.ndarray,
    solution: Samples,
    coefficient: Samples | None = None,
    boundary: Samples | None = None,
    split: str | Mapping[str, float | int] = "train",
    extent: Sequence[float | int] | None = None,
    seed: int = 0,
    dtype: str = "float32",
    source: Mapping[str, Any] | None = None,
) -> dict[str, Dataset]:
    """Writes arrays as data sets below `path`, one for each split, scale and grid.

    Args:
      path: directory of the new data sets; made if needed. None of them may be there.

    Keyword args:
      equation: a name of `sino_jax.equations`, or an `Equation`.
      scale: the equation's parameter (wave number, Reynolds number, ...), one or one a sample.
      solution: ``[sample, *grid, channel]``; a single channel may be left out, as in
        ``[sample, x, y]``. A sequence of samples may have different grids. Nodes of an elliptic
        grid include the boundary, whose values are those of the solution.
      coefficient: likewise; needed if the equation has one.
      boundary: likewise: boundary values on its sides, if they are not those of the solution.
      split: "train", "val" or "test"; or the share of each, drawn at random from the samples of
        each scale and grid.
      extent: side lengths of the domain; 1 each by default. They belong to the residual, and are
        recorded.
      seed: of the random split.
      dtype: of real numbers on disk; complex ones have twice that.
      source: whatever should be recorded about where the data came from.

    Returns:
      The data sets by name, such as ``"train-4"``.

    Raises:
      ValueError: names the argument that does not fit, the value given and the one expected.
      FileExistsError: one of the data sets exists.
      Nothing is left behind, whatever fails.
    """
    equation = equations.get(equation)
    fields = _fields(equation, dtype, coefficient=coefficient, boundary=boundary, solution=solution)
    count = len(fields["solution"])
    scales = _scales(scale, count)
    shares = _shares(split)
    lengths = _extent(equation, extent)
    groups = _groups(fields, scales)
    chosen = {}
    for (value, shape), ids in groups.items():
        alone = sum(1 for other, _ in groups if other == value) == 1
        # All digits: rounded ones may be those of another scale.
        suffix = repr(value).removesuffix(".0") + ("" if alone else f"-{'x'.join(map(str, shape))}")
        for name, part in _divide(ids, shares, seed, f"scale {value:g}").items():
            chosen[f"{name}-{suffix}"] = (name, value, shape, part)
    root = pathlib.Path(path)
    if existing := [name for name in chosen if (root / name).exists()]:
        raise FileExistsError(f"{root} holds {existing} already: choose another directory")
    with contextlib.ExitStack() as undo:
        for directory, (name, value, shape, part) in chosen.items():
            write(
                root / directory,
                {field: np.stack([values[i] for i in part]) for field, values in fields.items()},
                equation=equation.name,
                split=name,
                scale=value,
                grid={
                    "axes": [axis.name for axis in equation.axes],
                    "shape": shape,
                    "centrings": equation.centrings,
                    "extent": lengths,
                },
                source={"made_by": "sino_jax.data.from_arrays", **(source or {})},
            )
            undo.callback(shutil.rmtree, root / directory)
        undo.pop_all()  # all are written: none is removed
    return {name: load(root / name) for name in chosen}


def _fields(equation: Equation, dtype: str, **given: Samples | None) -> dict[str, list[np.ndarray]]:
    """The samples of every given field, each ``[*grid, channel]`` in the stored precision."""
    checks.one_of("dtype", dtype, ("float32", "float64"))
    real = np.dtype(dtype)
    channels = {
        "coefficient": equation.coefficient_channels,
        "boundary": equation.solution_channels,
        "solution": equation.solution_channels,
    }
    if given["coefficient"] is not None and not equation.coefficient_channels:
        raise ValueError(f"coefficient must be None: {equation.name} has none")
    if given["coefficient"] is None and equation.coefficient_channels:
        raise ValueError(f"coefficient is needed by {equation.name}, got None")
    if given["solution"] is None:
        raise ValueError("solution is needed, got None")
    fields = {}
    for name, samples in given.items():
        if samples is not None:
            complex_ = equation.complex_valued and name != "coefficient"
            kind = np.result_type(real, np.complex64) if complex_ else real
            fields[name] = _samples(equation, name, samples, channels[name], kind)
    counts = {name: len(samples) for name, samples in fields.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"all fields must have the same number of samples, got {counts}")
    if counts["solution"] == 0:
        raise ValueError("solution must have at least one sample, got none")
    for name, samples in fields.items():
        if bad := [i for i, values in enumerate(samples) if not np.isfinite(values).all()]:
            raise ValueError(f"{name} must be finite, got NaN or infinity in samples {bad[:20]}")
    for values in fields.get("coefficient", ()):
        equation.check_coefficient("coefficient", values)
    return fields


def _samples(
    equation: Equation, name: str, samples: Samples, channels: int, dtype: np.dtype
) -> list[np.ndarray]:
    axes = len(equation.axes)
    layout = ", ".join(axis.name for axis in equation.axes)
    short = f" or [sample, {layout}]" if channels == 1 else ""
    expected = f"{name} of {equation.name} must be [sample, {layout}, {channels}]{short}"
    if getattr(samples, "ndim", None) == 0 or not hasattr(samples, "__len__"):
        raise ValueError(f"{expected}, got {samples!r}")
    result = []
    for sample in samples:
        values = np.asarray(sample)
        if values.dtype.kind not in "fiuc" or (values.dtype.kind == "c" and dtype.kind != "c"):
            kind = "complex" if dtype.kind == "c" else "real"
            raise ValueError(f"{expected} and {kind} numbers, got {values.dtype}")
        if values.ndim == axes and channels == 1:
            values = values[..., None]
        if values.ndim != axes + 1 or values.shape[-1] != channels:
            raise ValueError(f"{expected}, got samples of shape {np.shape(sample)}")
        result.append(values.astype(dtype))
    return result


def _scales(scale: Any, count: int) -> list[float]:
    expected = f"scale must be one positive number, or one for each of {count} samples"
    try:
        values = np.asarray(scale, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}, got {scale!r}") from None
    if values.shape not in [(), (count,)]:
        raise ValueError(f"{expected}, got shape {values.shape}")
    if (bad := values[~(np.isfinite(values) & (values > 0))]).size:
        raise ValueError(f"{expected}, got {np.unique(bad)[:5].tolist()}")
    if (different := len(np.unique(values))) > MOST_SCALES:
        raise ValueError(
            f"scale has {different} different values in {count} samples; a data set has one scale, "
            f"and at most {MOST_SCALES} are written: group the samples by rounded scales first"
        )
    return np.broadcast_to(values, (count,)).tolist()


def _shares(split: str | Mapping[str, float | int]) -> dict[str, float]:
    shares = {split: 1.0} if isinstance(split, str) else split
    if not (isinstance(shares, Mapping) and shares and set(shares) <= set(SPLITS)):
        raise ValueError(f"split must be one of {SPLITS} or the share of each, got {split!r}")
    for name, share in shares.items():
        checks.number(f"split[{name!r}]", share, low=0, high=1)
    if not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-6):
        raise ValueError(f"the shares of split must add up to 1, got {split}")
    return {name: share for name, share in shares.items() if share > 0}


def _extent(equation: Equation, extent: Sequence[float | int] | None) -> list[float]:
    if extent is None:
        return [1.0] * len(equation.axes)
    axes = ", ".join(axis.name for axis in equation.axes)
    try:
        lengths = [float(side) for side in extent]
    except (TypeError, ValueError):
        lengths = []
    if len(lengths) != len(equation.axes) or not all(0 < side < math.inf for side in lengths):
        raise ValueError(f"extent must be a positive length for each of {axes}, got {extent}")
    return lengths


def _groups(
    fields: Mapping[str, Sequence[np.ndarray]], scales: Sequence[float]
) -> dict[tuple[float, tuple[int, ...]], list[int]]:
    """Numbers of the samples of each scale and grid."""
    groups: dict[tuple[float, tuple[int, ...]], list[int]] = {}
    for i, scale in enumerate(scales):
        shapes = {name: samples[i].shape[:-1] for name, samples in fields.items()}
        if len(set(shapes.values())) > 1:
            raise ValueError(f"the fields of sample {i} must have one grid, got {shapes}")
        groups.setdefault((scale, shapes["solution"]), []).append(i)
    return groups


def _divide(
    ids: Sequence[int], shares: Mapping[str, float], seed: int, what: str
) -> dict[str, list[int]]:
    """Samples of each split, at random; counts are the shares, rounded by largest remainders."""
    wanted = {name: share * len(ids) for name, share in shares.items()}
    counts = {name: math.floor(share + 1e-9) for name, share in wanted.items()}
    by_remainder = sorted(shares, key=lambda name: counts[name] - wanted[name])
    for name in by_remainder[: len(ids) - sum(counts.values())]:
        counts[name] += 1
    if empty := [name for name, count in counts.items() if count == 0]:
        raise ValueError(
            f"split leaves nothing for {empty} of the {len(ids)} samples of {what}: give larger "
            "shares, or more samples"
        )
    # Sorting raw Philox output: NumPy guarantees its bit stream for all releases.
    raw = np.random.Philox(np.random.SeedSequence(seed)).random_raw(len(ids))
    order = np.argsort(raw, kind="stable") if len(shares) > 1 else np.arange(len(ids))
    ends = np.cumsum(list(counts.values()))[:-1]
    parts = zip(counts, np.split(np.asarray(ids)[order], ends), strict=True)
    return {name: sorted(part.tolist()) for name, part in parts}
