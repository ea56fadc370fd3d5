"""Solver for -∇·(a∇u) - κ u = f on a rectangle with Dirichlet or Robin conditions.

The discretisation is `solvers.q1`. Systems are solved directly, by `solvers.elimination` along a
`solvers.dissection`, or, where that is faster, by `solvers.multigrid`. The matrix is symmetric,
also when it is complex, so that one factorisation serves the transposed system, too. Gradients use
that: they cost one more solve, not a differentiated elimination.

Everything acts on one problem. For a batch use `jax.vmap`, or on CPUs `jax.lax.map`, which is
faster on large grids because one problem at a time fits into the cache.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Inexact

from solvers import checks, dissection, elimination, multigrid, q1
from solvers.dissection import ABSENT
from solvers.q1 import Operator

# Corrections of a solution of an indefinite problem, at most.
MOST_CORRECTIONS = 8


class Instance(NamedTuple):
    """One boundary-value problem and its solution.

    Attributes:
      coefficient: a at the nodes.
      boundary: Dirichlet data on the outer ring, zero inside.
      scale: the equation's parameter.
      solution: u at the nodes.
    """

    coefficient: Float[Array, "x y"]
    boundary: Inexact[Array, "x y"]
    scale: Float[Array, ""]
    solution: Inexact[Array, "x y"]


@jax.jit
def factor(operator: Operator) -> elimination.Factors:
    """Factorises an operator, for `solve` with several right-hand sides."""
    grid = dissection.dissect(operator.coefficient.shape, operator.robin is None)
    operator = jax.lax.stop_gradient(operator)
    entries = None if operator.robin is None else _robin_entries(grid, operator)
    return elimination.factor(grid, _leaf_matrices(grid, operator), entries)


@jax.jit
def solve(
    operator: Operator,
    load: q1.Nodal,
    *,
    dirichlet: q1.Nodal | None = None,
    factors: elimination.Factors | None = None,
) -> q1.Nodal:
    """The nodal solution u of A u = load (a row for every node where u is unknown).

    Differentiable with respect to operator, load and boundary values, by the transposed solve.

    Args:
      operator: the operator; its conditions are Dirichlet's if `operator.robin` is None.
      load: see `q1.volume_load` and `q1.boundary_load`.
      dirichlet: a field whose outer ring holds the boundary values; needed for Dirichlet
        conditions, and only for them.
      factors: `factor(operator)`, if it is used more than once.
    """
    if (dirichlet is None) == (operator.robin is None):
        raise ValueError("dirichlet must be given for Dirichlet conditions (robin=None) only")
    given = [x for x in (load, dirichlet, operator.shift, operator.robin) if x is not None]
    dtype = np.result_type(*(x.dtype for x in given))
    unknown = jnp.ones(load.shape, dtype)
    if dirichlet is not None:
        unknown = jnp.pad(unknown[1:-1, 1:-1], 1)
        # Chosen, not multiplied: what stands inside is never read, be it NaN.
        values = jnp.where(unknown == 0, dirichlet.astype(dtype), jnp.zeros_like(unknown))
        load = load.astype(dtype) - q1.apply(operator, values)

    def matvec(u):
        return unknown * q1.apply(operator, unknown * u) + (1 - unknown) * u

    inverse = _inverse(operator, factors, dtype)

    def correction(defect):
        return unknown * inverse(unknown * defect).astype(dtype)

    def solve_unknown(matvec, b):
        start = (1 - unknown) * b
        u = start + correction(b - start)
        if operator.shift is None:
            return u
        size = _norm_bound(operator)
        return _refined(matvec, b, u, correction, lambda u: size * _norm(u) + _norm(b))

    u = jax.lax.custom_linear_solve(
        matvec, unknown * load.astype(dtype), solve_unknown, symmetric=True
    )
    return u if dirichlet is None else u + values


def _inverse(operator: Operator, factors: elimination.Factors | None, dtype: np.dtype):
    """The solution operator; the one place that chooses between elimination and iteration.

    Multigrid is faster from about 100 nodes a side on, but needs a coercive real problem. Cells
    much longer than wide would slow it down, so that it is kept to nearly square grids.
    """
    shape = operator.coefficient.shape
    coercive = operator.shift is None and operator.robin is None
    if (
        factors is None
        and coercive
        and not jnp.issubdtype(dtype, jnp.complexfloating)
        and min(shape) >= 100
        and max(shape) <= 2 * min(shape)
    ):
        operator = jax.lax.stop_gradient(operator)
        return lambda load: multigrid.solve(operator, load)
    factors = factor(operator) if factors is None else factors
    grid = dissection.dissect(shape, operator.robin is None)
    return lambda load: elimination.solve(grid, factors, load)


def _refined(matvec, b: Array, u: Array, correction, magnitude) -> Array:
    """Corrects u until its defect is round-off of `magnitude`, a few times if at all.

    Blocks of an indefinite matrix may be nearly singular, and are eliminated without exchanging
    unknowns with others. Then digits are lost, which corrections give back.
    """
    tolerance = 16 * jnp.finfo(u.dtype).eps

    def inexact(state):
        u, defect, count = state
        return (count < MOST_CORRECTIONS) & (_norm(defect) > tolerance * magnitude(u))

    def correct(state):
        u, defect, count = state
        u = u + correction(defect)
        return u, b - matvec(u), count + 1

    return jax.lax.while_loop(inexact, correct, (u, b - matvec(u), 0))[0]


@jax.jit
def residual(operator: Operator, u: q1.Nodal, load: q1.Nodal) -> Float[Array, ""]:
    """Relative backward error |load - A u| / (|A| |u| + |load|), over the nodes with unknowns."""
    defect = load.astype(u.dtype) - q1.apply(operator, u)
    if operator.robin is None:
        defect = defect[1:-1, 1:-1]
    return _norm(defect) / (_norm_bound(operator) * _norm(u) + _norm(load))


@jax.jit
def is_singular(operator: Operator, factors: elimination.Factors) -> Bool[Array, ""]:
    """Whether the operator, or a block of its elimination, is singular to working precision.

    A mode of the operator shows in the block where it is eliminated, with its eigenvalue magnified
    by at most the number of nodes a side: hence the tolerance. A NaN counts as singular.
    """
    precision = jnp.finfo(operator.coefficient.dtype).eps * max(operator.coefficient.shape)
    growth = elimination.inverse_norm(factors) * _norm_bound(operator)
    return ~(growth * precision < 1)


def check(operator: Operator) -> None:
    """Raises a ValueError for grids, extents and coefficients that cannot be solved.

    Values are only checked outside of `jit`, `vmap` and `grad`: traced values are not known.
    """
    coefficient = operator.coefficient
    if coefficient.ndim != 2 or min(coefficient.shape) < 3:
        raise ValueError(
            f"coefficient must have at least 3 x 3 nodes, got shape {coefficient.shape}"
        )
    if not jnp.issubdtype(coefficient.dtype, jnp.floating):
        raise ValueError(
            f"coefficient must be a real floating-point array, got {coefficient.dtype}"
        )
    checks.extent(operator.extent)
    if isinstance(coefficient, jax.core.Tracer):
        return
    values = np.asarray(coefficient)
    if not np.all(np.isfinite(values) & (values > 0)):
        bad = int((~(np.isfinite(values) & (values > 0))).sum())
        raise ValueError(
            f"coefficient must be positive and finite at every node, got {bad} of {values.size} "
            "values that are not"
        )


def _norm(field: Array) -> Float[Array, ""]:
    return jnp.linalg.norm(field.ravel())


def _norm_bound(operator: Operator) -> Float[Array, ""]:
    """Bound of the stiffness matrix's norm, which dominates the operator's on a resolved grid."""
    hx, hy = operator.spacing
    return jnp.max(operator.coefficient) * 4 * (hx / hy + hy / hx)


def _leaf_matrices(grid: dissection.Dissection, operator: Operator) -> tuple[Array, ...]:
    """The blocks A_ee, A_ek, A_ke, A_kk of the leaves: e inner nodes, k the perimeter."""
    hx, hy = operator.spacing
    cells = q1.cell_means(operator.coefficient)
    dtype = cells.dtype
    x, y = (axis.cells[grid.strips[:, n]] for n, axis in enumerate(grid.axes))
    present = (x != ABSENT)[:, :, None] & (y != ABSENT)[:, None, :]
    index = np.where(present, x[:, :, None] * cells.shape[1] + y[:, None, :], cells.size)
    cells = cells.ravel().at[index.reshape(len(x), -1)].get(mode="fill", fill_value=0)

    stiffness = [_slot_matrices(grid, axis, q1.STIFFNESS) for axis in (0, 1)]
    mass = [_slot_matrices(grid, axis, q1.MASS) for axis in (0, 1)]
    elements = sum(
        (ratio * np.einsum("sik,tik->stik", *pair)).astype(dtype)
        for ratio, pair in (
            (jnp.asarray(hy / hx), (stiffness[0], mass[1])),
            (jnp.asarray(hx / hy), (mass[0], stiffness[1])),
        )
    )
    if operator.shift is not None:
        weight = operator.shift * jnp.asarray(hx * hy).astype(operator.shift.dtype)
        lines = [
            jnp.asarray(np.einsum("ns,sik->nik", axis.cells != ABSENT, matrices), weight.dtype)
            for axis, matrices in zip(grid.axes, mass, strict=True)
        ]
    dummies = (grid.leaf_table(0) == ABSENT) | (grid.leaf_table(1) == ABSENT)
    e = grid.inner
    blocks = []
    for rows, columns in (np.s_[:e, :e], np.s_[:e, e:], np.s_[e:, :e], np.s_[e:, e:]):
        part = elements[:, :, rows, columns]
        block = cells @ part.reshape(cells.shape[1], -1)
        block = block.reshape(len(x), *part.shape[2:])
        if operator.shift is not None:
            line_x, line_y = (line[:, rows, columns] for line in lines)
            masses = line_x[grid.strips[:, 0]] * line_y[grid.strips[:, 1]]
            block = block.astype(weight.dtype) - weight * masses
        if rows == columns and dummies.any():
            unit = jnp.asarray(dummies[:, rows], block.dtype)
            block += unit[:, :, None] * jnp.eye(unit.shape[1], dtype=block.dtype)[None]
        blocks.append(block)
    return tuple(blocks)


def _slot_matrices(grid: dissection.Dissection, axis: int, element: np.ndarray) -> np.ndarray:
    """``[slot, leaf_node, leaf_node]``: the linear element's matrix at the nodes a slot joins."""
    leaf, slots = grid.axes[axis].leaf, grid.axes[axis].cells.shape[-1]
    matrices = np.zeros((slots, leaf + 1, leaf + 1))
    for slot, matrix in enumerate(matrices):
        ends = [slot, slot + 1] if slot < leaf else [0, 2]
        matrix[np.ix_(ends, ends)] = element
    position = grid.leaf_nodes[:, axis]
    return matrices[:, position[:, None], position[None, :]]


def _robin_entries(grid: dissection.Dissection, operator: Operator):
    """Index and values of -γ times the boundary mass matrix, quadrant by quadrant."""
    index, values = [], []
    for axis, step in enumerate(operator.spacing):
        quadrant, *ends = dissection.boundary_segments(grid, axis).T
        weight = operator.robin * jnp.asarray(step).astype(operator.robin.dtype)
        for p, q in np.ndindex(2, 2):
            index.append((quadrant, ends[p], ends[q]))
            values.append(jnp.full(len(quadrant), -weight * float(q1.MASS[p, q])))
    return tuple(map(np.concatenate, zip(*index, strict=True))), jnp.concatenate(values)
