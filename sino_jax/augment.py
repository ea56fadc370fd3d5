"""Rotations by quarter turns and reflections of whole problems, as data augmentation.

Fields are transformed, not model inputs, so that boundary traces follow the geometry by
themselves. Under an orthogonal map Q of space a scalar is carried along, u'(x) = u(Q⁻¹x); a
pseudo-scalar (the vorticity) also changes sign when Q reflects; a vector (the velocity, and also
Burgers' u) is turned, too: u'(x) = Q u(Q⁻¹x).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from sino_jax import equations
from sino_jax.equations import Equation
from sino_jax.equations.equation import FieldKind, Symmetry
from sino_jax.types import Instance, Key, Sample


def transform(
    field: Sample, *, turns: int, reflect: bool, axes: tuple[int, ...], kind: FieldKind
) -> Sample:
    """One sample, reflected in its first spatial axis if asked, then turned by `turns` · 90°.

    A positive turn carries the first spatial axis to the second one. Several channels of a scalar
    or pseudo-scalar (past frames) are transformed alike; a vector's channels are its components.
    """
    if turns % 2 and field.shape[axes[0]] != field.shape[axes[1]]:
        raise ValueError(
            f"a quarter turn needs a square grid, got {field.shape} with spatial axes {axes}"
        )
    if kind == "vector" and field.shape[-1] != len(axes):
        raise ValueError(f"a vector needs {len(axes)} channels, got {field.shape[-1]}")
    if reflect:
        field = jnp.flip(field, axes[0])
        if kind == "pseudoscalar":
            field = -field
        elif kind == "vector":
            field = field.at[..., 0].multiply(-1)
    for _ in range(turns % 4):
        field = jnp.rot90(field, axes=axes)
        if kind == "vector":
            field = jnp.stack([-field[..., 1], field[..., 0]], axis=-1)
    return field


def elements(symmetries: Sequence[Symmetry]) -> tuple[tuple[int, bool], ...]:
    """All (turns, reflect) that `symmetries` generate, the identity first."""
    turns = range(4) if "rotation" in symmetries else (0,)
    if "reflection" not in symmetries:
        return tuple((turn, False) for turn in turns)
    # Reflections in both axes compose to a half turn, so that reflections alone give four elements.
    turns = turns if "rotation" in symmetries else (0, 2)
    return tuple((turn, reflect) for reflect in (False, True) for turn in turns)


def apply_symmetry(
    instance: Instance, element: tuple[int, bool], *, equation: str | Equation
) -> Instance:
    """Transforms every example of a batch by one (turns, reflect)."""
    equation = equations.get(equation)
    _check_allowed(equation, element)
    turns, reflect = element

    def each(field: Array | None, kind: FieldKind) -> Array | None:
        if field is None:
            return None
        return jax.vmap(
            lambda f: transform(
                f, turns=turns, reflect=reflect, axes=equation.spatial_axes, kind=kind
            )
        )(field)

    return Instance(
        coefficient=each(instance.coefficient, equation.coefficient_kind),
        boundary=each(instance.boundary, equation.solution_kind),
        scale=instance.scale,
        solution=each(instance.solution, equation.solution_kind),
    )


def check_symmetries(equation: Equation, symmetries: Sequence[str]) -> None:
    """Raises a ValueError unless the equation has all of `symmetries`."""
    unknown = set(symmetries) - equation.symmetries
    if unknown:
        raise ValueError(
            f"symmetries of {equation.name} are {sorted(equation.symmetries)}, "
            f"got {sorted(unknown)}"
        )


def random_symmetry(
    key: Key,
    instance: Instance,
    *,
    equation: str | Equation,
    symmetries: Sequence[Symmetry] = ("rotation", "reflection"),
) -> Instance:
    """Transforms each example by its own random element of the group that `symmetries` generate."""
    equation = equations.get(equation)
    check_symmetries(equation, symmetries)
    group = elements(symmetries)
    _check_allowed(equation, group[0])
    if len(equation.spatial_axes) == 1:
        group = tuple(element for element in group if element[0] == 0)

    def one(choice: Int[Array, ""], example: Instance) -> Instance:
        batch_of_one = jax.tree.map(lambda leaf: leaf[None], example)
        branches = [
            lambda e, element=element: apply_symmetry(e, element, equation=equation)
            for element in group
        ]
        return jax.tree.map(lambda leaf: leaf[0], jax.lax.switch(choice, branches, batch_of_one))

    choices = jax.random.randint(key, instance.scale.shape, 0, len(group))
    return jax.vmap(one)(choices, instance)


def _check_allowed(equation: Equation, element: tuple[int, bool]) -> None:
    turns, reflect = element
    if len(equation.spatial_axes) > 2:
        raise ValueError(
            f"symmetries are those of the line and the plane, but {equation.name} has "
            f"{len(equation.spatial_axes)} axes in space: leave them out"
        )
    if reflect and "reflection" not in equation.symmetries:
        raise ValueError(f"{equation.name} has no reflection symmetry")
    if turns % 4 and ("rotation" not in equation.symmetries or len(equation.spatial_axes) < 2):
        raise ValueError(f"{equation.name} has no rotation symmetry, got {turns} quarter turns")
