"""Problems of a larger scale, without solutions, for self-supervised training (Algorithm 2).

A super-domain of rate r > 1 is r times as wide as the training domain at the same grid spacing; its
parameter follows from the same law as that of a sub-domain, with λ = r. Its inputs are drawn from a
*prior*: any callable ``prior(key, shape, scale) -> (coefficient, boundary)`` for one sample, where
`shape` is the grid, `scale` the parameter, coefficient ``[*grid, channel]`` or None, and boundary
``[*grid, channel]`` a field of which only the sides are read. Gaussian random fields are the known
priors of Darcy and Helmholtz. Where no prior is known, `reflected` continues given data.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax import checks
from sino_jax.equations import Equation
from sino_jax.types import Instance, Key, Scale

Prior = Callable[[Key, tuple[int, ...], Array], tuple[Array | None, Array]]


def superdomain_shape(equation: Equation, shape: Sequence[int], rate: float) -> tuple[int, ...]:
    """Points of the super-domain; its sub-domain of `shape` points has λ = 1/rate."""
    checks.number("rate", rate, low=1)
    return _scaled(equation, shape, rate)


def original_shape(equation: Equation, shape: Sequence[int], rate: float) -> tuple[int, ...]:
    """Points of the part of a super-domain that has the scale of the data: λ = 1/rate."""
    return _scaled(equation, shape, 1 / rate)


def _scaled(equation: Equation, shape: Sequence[int], factor: float) -> tuple[int, ...]:
    nodes = [int(axis.centring == "node") for axis in equation.axes]
    return tuple(round((n - e) * factor) + e for n, e in zip(shape, nodes, strict=True))


def sample(
    prior: Prior, key: Key, scale: Scale, *, equation: Equation, shape: Sequence[int], rate: float
) -> Instance:
    """A batch of unlabelled problems, `rate` times larger than those of `shape` and `scale`."""
    larger = superdomain_shape(equation, shape, rate)
    # Rounded to whole points, the rate is what the grids say.
    larger_scale = equation.rescale(scale, 1 / equation.ratio(shape, larger))
    keys = jax.random.split(key, scale.shape[0])
    coefficient, boundary = jax.vmap(lambda k, s: prior(k, larger, s))(keys, larger_scale)
    return Instance(coefficient, boundary, larger_scale)


def reflected(instance: Instance, *, equation: Equation, rate: float) -> Instance:
    """Unlabelled problems on a super-domain, continued from data by even reflection.

    Initial and boundary values of the larger problem are those of the data and their mirror
    images: continuous, of the amplitude and local structure of the data, and compatible at the
    corners. This is the choice for Burgers, whose boundary values in time have no known prior.
    """
    if instance.solution is None:
        raise ValueError(
            "instance.solution is needed: the interior of instance.boundary, which a reflection "
            "would make part of the larger boundary, is not known; got None"
        )
    field = instance.solution
    shape = field.shape[1:-1]
    larger = superdomain_shape(equation, shape, rate)

    def extend(values: Array | None) -> Array | None:
        if values is None:
            return None
        widths = [(0, 0), *((0, m - n) for m, n in zip(larger, shape, strict=True)), (0, 0)]
        return jnp.pad(values, widths, mode="reflect")

    rate = 1 / equation.ratio(shape, larger)  # rounded to whole points
    coefficient = extend(instance.coefficient)
    if coefficient is not None:
        coefficient = equation.rescale_coefficient(coefficient, rate)
    return Instance(coefficient, extend(field), equation.rescale(instance.scale, rate))


def relabelled(instance: Instance, *, equation: Equation, rate: float) -> Instance:
    """The inputs of given data as those of a problem of a `rate` times larger scale.

    Its grid is the data's, so that a sub-domain of 1/rate of the side has the scale of the data.
    Any boundary values pose a problem; these are smoother than those of the larger scale.
    """
    field = instance.boundary if instance.solution is None else instance.solution
    return Instance(instance.coefficient, field, equation.rescale(instance.scale, rate))


def annealed_weight(
    progress: Float[Array, ""], *, start: float, maximum: float
) -> Float[Array, ""]:
    """Zero until `start`, then `maximum` · progress, where progress = epoch / epochs."""
    # NaN is not before anything: it goes through.
    return jnp.where(progress < start, jnp.zeros_like(progress), maximum * progress)
