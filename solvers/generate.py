"""Makes data sets from a seed, on one core or on a cluster.

    python -m solvers.generate --config=darcy:small --out=data

makes one data set for each split and scale of the config, as ``data/darcy-small/train-4``; a file,
``--config=solvers/configs/darcy.py:small``, does as well. Run the same command again after an
interruption: it goes on where it stopped. Several processes share the work by ``--shard=i/n``, for
instance in a SLURM array:

    python -m solvers.generate --config=... --shard=$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT

Sample i depends on the seed, the data set and i alone. Samples are solved in blocks whose
composition does not depend on the number of processes, so that the files are the same to the byte.
"""

import functools
import importlib.metadata
import json
import pathlib
import platform
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from solvers import configs, fill, parts, recipes, storage
from solvers.configs import argument

SPLITS = ("train", "val", "test")
PACKAGES = ("sino-jax", "jax", "jaxlib", "numpy")


def data_sets(config: ConfigDict) -> dict[str, dict[str, Any]]:
    """The settings of every data set of a config, by name: ``{"train-4": {...}, ...}``."""
    shared = config.to_dict()
    del shared["name"]
    points, block_points = dict(shared.pop("points")), shared.pop("block_points")
    scales = {split: shared.pop(f"{split}_scales") for split in SPLITS}
    samples = {split: shared.pop(f"{split}_samples") for split in SPLITS}
    if unknown := sorted({s for split in SPLITS for s in scales[split]} - set(points)):
        raise ValueError(f"scales must be among those with a grid, {sorted(points)}, got {unknown}")
    result = {}
    for split in SPLITS:
        for scale in scales[split]:
            settings = {**shared, "split": split, "scale": scale, "points": points[scale]}
            # The same for all splits, which then share a compiled program.
            fewest = min(samples[split] for split in SPLITS if scales[split])
            block = max(1, min(block_points // recipes.get(settings).work, fewest))
            result[f"{split}-{scale}"] = {**settings, "samples": samples[split], "block": block}
    return result


def generate(
    settings: Mapping[str, Any],
    directory: pathlib.Path,
    *,
    shard: tuple[int, int] = (0, 1),
) -> bool:
    """Makes a data set, or the part of it that falls to one of several processes.

    Args:
      settings: one of `data_sets`.
      directory: where; made if needed. What is there of the same data set is not made again.
      shard: ``(i, n)``: this is process i of n.

    Returns:
      whether the data set is finished; if not, other shards are still to be made.

    Raises:
      StorageError: the directory holds another data set, another process makes the same samples, or
        the disk is full.
      RefusedSamples: samples are not good enough, even when solved again; see `solvers.fill`.
    """
    return fill.fill(
        parts.Parts(directory, description(settings), settings["block"]),
        block_solver(settings),
        settings["limits"],
        shard=shard,
        title=f"{settings['equation']} {settings['split']}-{settings['scale']}",
    )


def description(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `solvers.storage` records of a data set before it has samples."""
    recipe = recipes.get(settings)
    return storage.describe(
        equation=settings["equation"],
        split=settings["split"],
        scale=float(settings["scale"]),
        samples=settings["samples"],
        seed=settings["seed"],
        grid=recipe.grid,
        window=recipe.window,
        units=recipe.units,
        limits=settings["limits"],
        config=dict(settings),
        versions={
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
    )


def stream(settings: Mapping[str, Any]) -> int:
    """Equation, split and scale select independent streams of random keys under one seed."""
    return zlib.crc32("{equation} {split} {scale:g}".format(**settings).encode())


def sample_keys(settings: Mapping[str, Any], ids: Sequence[int] | np.ndarray) -> jax.Array:
    """The random keys of samples of a data set; each makes one sample, see `recipes.Recipe`."""
    root = jax.random.fold_in(jax.random.key(settings["seed"]), stream(settings))
    return jax.vmap(lambda i: jax.random.fold_in(root, i))(np.asarray(ids, np.uint32))


def block_solver(settings: Mapping[str, Any]) -> Callable[[Sequence[int]], fill.Solved]:
    """The function from sample numbers to solved samples, a block at a time."""
    run = _program(json.dumps({k: v for k, v in settings.items() if k not in _NOT_COMPILED}))
    real = np.dtype(settings["dtype"])
    complex_ = np.result_type(real, np.complex64)

    def solve(ids: Sequence[int]) -> fill.Solved:
        # A last, smaller block is solved at full size: one compiled program, and a sample does not
        # change when more are asked for.
        numbers = np.arange(ids[0], ids[0] + settings["block"], dtype=np.uint32)
        with jax.enable_x64(True):
            root = jax.random.fold_in(jax.random.key(settings["seed"]), stream(settings))
            fields, measures = jax.device_get(run(root, numbers))
        return fill.Solved(
            {
                name: values[: len(ids)].astype(complex_ if np.iscomplexobj(values) else real)
                for name, values in fields.items()
            },
            {name: values[: len(ids)] for name, values in measures.items()},
        )

    return solve


_NOT_COMPILED = ("split", "samples", "seed", "dtype", "limits")


@functools.lru_cache(maxsize=16)
def _program(settings: str) -> Callable[[jax.Array, jax.Array], recipes.Sampled]:
    """The compiled solver of a block, from the settings (as JSON) that it depends on."""
    sample = recipes.get(json.loads(settings)).sample
    return jax.jit(jax.vmap(lambda root, i: sample(jax.random.fold_in(root, i)), (None, 0)))


def generate_all(
    config: ConfigDict,
    out: pathlib.Path,
    *,
    only: Sequence[str] = (),
    shard: tuple[int, int] = (0, 1),
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, pathlib.Path]:
    """Makes the data sets of a config below ``out / config.name``; their directories by name.

    Args:
      config: from one of `solvers.configs`.
      out: directory of all data.
      only: names of the data sets to make; all by default.
      shard: as in `generate`.
      log: takes one line for each data set.
    """
    settings = data_sets(config)
    if unknown := sorted(set(only) - set(settings)):
        raise ValueError(f"only must name some of {sorted(settings)}, got {unknown}")
    directories = {}
    for name in only or settings:
        directories[name] = out / config.name / name
        start = time.monotonic()
        finished = generate(settings[name], directories[name], shard=shard)
        state = _summary(directories[name]) if finished else "waits for other shards"
        log(f"{directories[name]}: {state} ({time.monotonic() - start:.1f} s)")
    return directories


def _summary(directory: pathlib.Path) -> str:
    meta, fields = storage.read(directory)
    shapes = ", ".join(f"{name} {list(field.shape)}" for name, field in fields.items())
    worst = ", ".join(f"{name} <= {max(m):.2g}" for name, m in meta["measures"].items())
    size = sum(field.nbytes for field in fields.values())
    return f"{shapes}, {size / 1e6:.1f} MB, {worst}"


def parse_shard(text: str) -> tuple[int, int]:
    """``"3/7"`` as (3, 7)."""
    try:
        index, count = map(int, text.split("/"))
    except ValueError:
        raise ValueError(f"shard must be written as i/n, like 3/7, got {text!r}") from None
    return index, count


def main(argv: Sequence[str]) -> None:
    del argv
    logging.set_verbosity(logging.WARNING)
    try:
        generate_all(
            flags.FLAGS.config,
            pathlib.Path(flags.FLAGS.out),
            only=flags.FLAGS.only,
            shard=parse_shard(flags.FLAGS.shard),
            log=lambda line: sys.stdout.write(f"{line}\n"),
        )
    except (storage.StorageError, fill.RefusedSamples, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    # Not at import: flags are global, and programs that import this module have their own.
    config_flags.DEFINE_config_file("config", None, f"name:{argument.HELP}")
    flags.DEFINE_string("out", "data", "directory of all data sets")
    flags.DEFINE_list("only", [], "data sets to make, as train-4,test-8; all by default")
    flags.DEFINE_string("shard", "0/1", "i/n: this is process i of n")
    flags.mark_flag_as_required("config")
    app.run(main, argument.expand(sys.argv, pathlib.Path(configs.__file__).parent))
