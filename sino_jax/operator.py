"""A trained operator for users: load it, solve with it."""

import dataclasses
import functools
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact
from ml_collections import FrozenConfigDict

from sino_jax import boundary as boundaries
from sino_jax import checkpoint, equations, network, subdomain
from sino_jax.equations import Equation
from sino_jax.types import ApplyFn, Instance


@dataclasses.dataclass(frozen=True)
class Operator:
    """A solution operator ``(coefficient, boundary, scale) -> solution``.

    Attributes:
      equation: the equation that it was trained for.
      apply_fn: ``apply_fn(params, inputs, scale)``.
      params: its weights.
      meta: what its checkpoint records: config, scales, data sets, versions.
    """

    equation: Equation
    apply_fn: ApplyFn
    params: Any
    meta: dict[str, Any]

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales it was trained on."""
        return tuple(self.meta["scales"])

    def solve(
        self,
        coefficient: Inexact[Array | np.ndarray, "batch *grid channel"] | None,
        boundary: Inexact[Array | np.ndarray, "batch *grid solution_channel"] | None,
        scale: float | Float[Array | np.ndarray, "batch"],
    ) -> Inexact[Array, "batch *grid solution_channel"]:
        """Predicts the solutions of a batch of problems.

        Args:
          coefficient: interior data, NumPy or JAX, or None if the equation has none.
          boundary: a field of which only the values on the equation's sides are read, or None if
            the equation has no boundary data.
          scale: the equation's parameter, one for all or one for each problem.

        Returns:
          The solution on the same grid, complex if the equation is.
        """
        coefficient, boundary = (
            None if field is None else jnp.asarray(field) for field in (coefficient, boundary)
        )
        given = coefficient if coefficient is not None else boundary
        if given is None:
            raise ValueError("coefficient and boundary must not both be None")
        scale = jnp.broadcast_to(jnp.asarray(scale, jnp.float32), (len(given),))
        instance = Instance(coefficient, boundary, scale)
        self.equation.validate(instance)
        return self._solve(self.params, instance)

    @functools.cached_property
    def _solve(self):
        @jax.jit
        def solve(params, instance):
            inputs = subdomain.inputs(self.equation, instance)
            channels = self.apply_fn(params, inputs, instance.scale)
            return boundaries.from_channels(channels) if self.equation.complex_valued else channels

        return solve


def load(workdir: str | os.PathLike, *, step: int | None = None) -> Operator:
    """The operator that a run in `workdir` trained; nothing but the checkpoint is needed.

    Args:
      workdir: directory given to `sino_jax.train.fit`.
      step: of the checkpoint, the newest by default. Averaged weights are taken if there are any.
    """
    step = checkpoint.newest(workdir) if step is None else step
    items, meta = checkpoint.read(workdir, step)
    config = FrozenConfigDict(meta["config"])
    equation = equations.get(config.equation)
    _, apply_fn = network.build(config, equation, meta["statistics"])
    params = items.get("averages", items["params"])
    return Operator(equation, apply_fn, jax.tree.map(jnp.asarray, params), meta)
