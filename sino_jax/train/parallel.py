"""Devices and processes: the mesh, the layout of a batch on it, and several processes.

All devices of all processes form one mesh with the single axis `AXIS`. A batch is split along it,
everything else is the same on every device.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import FrozenConfigDict

AXIS = "data"
SPLIT = PartitionSpec(AXIS)
SAME = PartitionSpec()


def initialize(config: FrozenConfigDict) -> None:
    """Connects the processes of a run; does nothing for a single process or a second time.

    Must run before anything asks JAX for its devices.

    Args:
      config: the section ``distributed`` of `sino_jax.train.config.defaults`. Mode "auto" connects
        when SLURM started several tasks (`srun`), or when a coordinator is given; "on" always does,
        with whatever cluster JAX detects; "off" never.
    """
    if config.mode == "off" or jax.distributed.is_initialized():
        return
    if config.mode == "auto" and not config.coordinator and not started_by_slurm(os.environ):
        return
    if jax.config.jax_platforms == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    given = {
        "coordinator_address": config.coordinator or None,
        "num_processes": config.processes or None,
        "process_id": config.process if config.process >= 0 else None,
    }
    jax.distributed.initialize(**given)


def started_by_slurm(environment: Mapping[str, str]) -> bool:
    """Whether these environment variables are those of one of several tasks of `srun`."""
    step = {"SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_LOCALID"}
    return step <= environment.keys() and int(environment.get("SLURM_NTASKS", 1)) > 1


def data_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """All devices (of all processes, by default) along one axis, in the order of processes.

    Raises:
      RuntimeError: the platform that was asked for has no device on this machine.
    """
    if devices is None:
        try:
            devices = jax.devices()
        # Without the plugin of the platform, JAX fails an assertion that says nothing.
        except (RuntimeError, AssertionError) as error:
            asked = jax.config.jax_platforms
            raise RuntimeError(
                f"JAX_PLATFORMS is {asked!r}, but JAX finds no such device here: unset it, or set "
                f"it to 'cpu' ({error!r})"
            ) from None
    return Mesh(np.array(devices), (AXIS,))


def compiler_options(mesh: Mesh) -> dict[str, Any]:
    """Options of `jax.jit` for programs that compute for long on the devices of a mesh.

    On CPU the compiler prefers vectors of 256 bits where there are longer ones, with which training
    steps are faster (``python -m benchmarks narrow_steps`` times them).
    """
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    return {"xla_cpu_prefer_vector_width": 512} if on_cpu else {}


def per_device(value: int, mesh: Mesh) -> np.ndarray:
    """`value` for each of this process's devices."""
    return np.full(mesh.size // jax.process_count(), value, np.int32)


class Padded(NamedTuple):
    """Positions of a batch that fills all devices; `weight` is 0 where an example repeats."""

    ids: np.ndarray
    weight: np.ndarray


def pad(ids: np.ndarray, size: int, parts: int) -> Padded:
    """Fills a batch up to `size` examples, and to a multiple of `parts`, by repeating examples.

    Repeated examples have weight zero. They are real ones, so that no loss is infinite on them, and
    all batches of a run have one shape, so that a short last batch compiles nothing.
    """
    if not 0 < len(ids) <= size:
        raise ValueError(f"ids must hold between 1 and size={size} examples, got {len(ids)}")
    full = -(-size // parts) * parts
    weight = np.zeros(full, np.float32)
    weight[: len(ids)] = 1
    return Padded(ids.take(np.arange(full), mode="wrap"), weight)


def own_part(padded: Padded) -> Padded:
    """What this process has to load of a padded batch: the part of its own devices."""
    share = len(padded.ids) // jax.process_count()
    rows = slice(jax.process_index() * share, (jax.process_index() + 1) * share)
    return Padded(padded.ids[rows], padded.weight[rows])


def split(tree: Any, mesh: Mesh) -> Any:
    """Arrays of this process's part of a batch, as global arrays split over the mesh, in place.

    A function that is called with arrays on their way, such as NumPy arrays, is not computed within
    its call even where `runtime.use_synchronous_dispatch` asks for that.
    """
    if jax.process_count() == 1:
        return jax.block_until_ready(_placing(mesh)(tree))

    def place(x):
        x = np.asarray(x, jax.dtypes.canonicalize_dtype(x.dtype))
        return jax.make_array_from_process_local_data(NamedSharding(mesh, SPLIT), x)

    return jax.block_until_ready(jax.tree.map(place, tree))


@functools.cache
def _placing(mesh: Mesh) -> Callable[[Any], Any]:
    # Compiled, the identity places a batch faster than `jax.device_put` does.
    return jax.jit(lambda tree: tree, out_shardings=NamedSharding(mesh, SPLIT))


def same(mesh: Mesh) -> NamedSharding:
    """The sharding of arrays that every device holds whole."""
    return NamedSharding(mesh, SAME)


def replicate(tree: Any, mesh: Mesh) -> Any:
    """Values that are equal on every process, as arrays that every device of the mesh holds."""
    sharding = same(mesh)

    def place(x):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(place(jax.random.key_data(x)))
        return jax.make_array_from_process_local_data(sharding, np.asarray(x))

    return jax.tree.map(place, tree)
