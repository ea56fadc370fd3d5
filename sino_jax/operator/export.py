"""A trained operator as one program (StableHLO) that runs with JAX alone, without this package.

    trained.export("darcy.bin", grid=(65, 65))

    import jax, jax.export, pathlib
    program = jax.export.deserialize(bytearray(pathlib.Path("darcy.bin").read_bytes()))
    solution = jax.jit(program.call)(coefficient, boundary, scale)

The weights are part of the program. Arguments are those of the fields that the equation has, in
this order: coefficient ``[batch, *grid, channel]``, boundary ``[batch, *grid, channel]`` (complex
if the solution is), scale ``[batch]``, all in single precision. The batch is symbolic: the program
takes any number of problems. The grid is not, since transforms and interpolations are matrices made
for it: export once for each grid. `jax.export` writes and reads with the package flatbuffers (the
extra ``export``).
"""

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp

from sino_jax import files
from sino_jax.equations import Equation
from sino_jax.problem import predict
from sino_jax.types import ApplyFn, Instance


def exported(
    equation: Equation,
    apply_fn: ApplyFn,
    params: Any,
    grid: Sequence[int],
    *,
    platforms: Sequence[str] = ("cpu", "cuda"),
) -> jax.export.Exported:
    """The program ``(coefficient, boundary, scale) -> solution``, lowered for all `platforms`.

    Args:
      equation: decides which arguments there are.
      apply_fn, params: the model, see `sino_jax.operator.Operator`.
      grid: points on each axis.

    Keyword args:
      platforms: of cpu, cuda, rocm and tpu; none of them need be there.
    """
    if len(grid) != len(equation.axes):
        axes = ", ".join(axis.name for axis in equation.axes)
        raise ValueError(f"grid must have a number of points for each of {axes}, got {grid}")
    fields = {}
    if equation.coefficient_channels:
        fields["coefficient"] = (equation.coefficient_channels, jnp.float32)
    if equation.sides:
        dtype = jnp.complex64 if equation.complex_valued else jnp.float32
        fields["boundary"] = (equation.solution_channels, dtype)

    # One problem at a time, mapped: the model then sees fixed shapes whatever the batch is.
    def solve_one(*arguments: jax.Array) -> jax.Array:
        *given, scale = (argument[None] for argument in arguments)
        known = dict(zip(fields, given, strict=True))
        instance = Instance(known.get("coefficient"), known.get("boundary"), scale)
        return predict(apply_fn, params, instance, equation)[0]

    solve: Callable[..., jax.Array] = jax.vmap(solve_one)
    solve.__name__ = f"solve_{equation.name}"
    (batch,) = jax.export.symbolic_shape("batch")
    arguments = [
        jax.ShapeDtypeStruct((batch, *grid, channels), dtype) for channels, dtype in fields.values()
    ]
    scale = jax.ShapeDtypeStruct((batch,), jnp.float32)
    return jax.export.export(jax.jit(solve), platforms=tuple(platforms))(*arguments, scale)


def write(path: str | os.PathLike, program: jax.export.Exported, *, vjp_order: int) -> pathlib.Path:
    """Writes the program to a file, which appears when it is complete."""
    try:
        content = program.serialize(vjp_order=vjp_order)
    except ImportError:
        raise ImportError(
            "jax.export writes programs with flatbuffers: pip install 'sino-jax[export]'"
        ) from None
    path = pathlib.Path(path)
    with files.appearing_file(path) as unfinished:
        unfinished.write_bytes(content)
    return path
