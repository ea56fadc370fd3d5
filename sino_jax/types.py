"""Names for the arrays that the package passes around.

Shapes: a *sample* is ``[*grid, channel]``, a *batch* is ``[batch, *grid, channel]``. The grid is
``x, y`` in two dimensions, ``t, x`` for Burgers, ``x, y, t`` for the space-time Navier-Stokes
problem; indexing is ``ij``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Inexact, PRNGKeyArray

Key = PRNGKeyArray
Sample = Inexact[Array, "*grid _"]
Batch = Inexact[Array, "batch *grid _"]
RealBatch = Float[Array, "batch *grid _"]
Scale = Float[Array, "batch"]
PerExample = Float[Array, "batch"]

# A number of points; NumPy's integers are as good as Python's.
Count = int | np.integer

# apply_fn(params, inputs, scale) -> prediction, with inputs and prediction real and channel-last.
ApplyFn = Callable[..., Batch]


class Instance(NamedTuple):
    """A batch of problems, and their solutions where those are known.

    Attributes:
      coefficient: what is given in the interior: a coefficient field or past frames. None if the
        equation has none (Burgers).
      boundary: a field that carries the boundary data in its outer ring; its interior is never
        read. None if the solution is given (its trace is taken) or the equation needs none.
      scale: the equation's parameter, see `sino_jax.equations`. Losses also take one number for
        all examples.
      solution: the solution, or None for unlabelled problems.
    """

    coefficient: Batch | None
    boundary: Batch | None
    scale: Scale
    solution: Batch | None = None

    @property
    def field(self) -> Batch | None:
        """The field whose trace is the boundary data: `boundary`, or else the solution."""
        return self.solution if self.boundary is None else self.boundary

    @property
    def grid(self) -> tuple[int, ...]:
        """Points on each axis."""
        first = self.coefficient if self.field is None else self.field
        return first.shape[1:-1]
