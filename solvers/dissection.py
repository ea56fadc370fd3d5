"""Nested dissection of a rectangular grid: the elimination behind `solvers.elliptic`.

The grid of nodes is cut into four quadrants, mirrored so that the outer corner of each comes first,
and every quadrant into ``2^p x 2^q`` leaves of a few cells. Eliminating the inner nodes of a leaf
leaves a Schur complement on its perimeter; merging two neighbours eliminates the nodes of their
common side; and so on, up to the cross between the quadrants. All blocks of a level have the same
shape, so that a level is a handful of batched products:

    S = A_kk + A_ke Z,   Z = -G A_ek,   G = A_ee^{-1}      (e: eliminated, k: kept)
    up:    r_k += Z^T r_e
    down:  u_e = G r_e + Z u_k

Leaves are made equally large by *dummy* nodes: a leaf with one cell fewer than the others on an axis
leaves out its second node on that axis. Dummies and Dirichlet nodes are decoupled unit rows.

Everything here that depends on the grid's shape alone is a `Plan`, made of static integers.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

SMALLEST_LEAF = 4
ABSENT = -1


class AxisPlan(NamedTuple):
    """How the nodes and cells of one axis are dealt out to the leaves.

    Attributes:
      leaf: cells of a leaf.
      strips: leaves of one half of the axis, a power of two.
      nodes: ``[half, strip, leaf + 1]`` node at each position, or ABSENT for a dummy.
      cells: ``[half, strip, slot]`` cell in each slot, or ABSENT. Slot s < leaf joins the positions
        s and s + 1; a last slot, present if there are dummies, joins the positions 0 and 2.
    """

    leaf: int
    strips: int
    nodes: np.ndarray
    cells: np.ndarray


class Merge(NamedTuple):
    """Union of two neighbouring blocks: which positions of either are eliminated or kept.

    Attributes:
      axis: 0 or 1, along which the two are neighbours.
      eliminated: for the low and the high block, positions of the eliminated nodes.
      kept: for the low and the high block, its position of every kept node, or ABSENT.
      children: nodes of either block.
    """

    axis: int
    eliminated: tuple[np.ndarray, np.ndarray]
    kept: tuple[np.ndarray, np.ndarray]
    children: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """The symbolic elimination of a grid; see the module.

    Attributes:
      shape: nodes of the grid.
      axes: the two axis plans.
      leaf_nodes: ``[nodes, 2]`` positions of the nodes of a leaf along both axes: first the inner
        ones, which are eliminated first, then the perimeter in cyclic order. Perimeter nodes that
        are given in every leaf are left out.
      inner: number of inner nodes.
      merges: from the leaves up to whole quadrants.
      ring, cross: positions, among the nodes kept by the last merge, of those on the outer boundary
        of the quadrant alone, and of the others.
      cross_nodes: ``[4, len(cross)]`` number of each of the latter in the union of the quadrants.
      segments: for each axis, ``[count, 4]`` the elements of the outer boundary along that axis:
        half_x, half_y and the positions of both ends among the kept nodes.
    """

    shape: tuple[int, int]
    axes: tuple[AxisPlan, AxisPlan]
    leaf_nodes: np.ndarray
    inner: int
    merges: tuple[Merge, ...]
    ring: np.ndarray
    cross: np.ndarray
    cross_nodes: np.ndarray
    segments: tuple[np.ndarray, ...]


class Elimination(NamedTuple):
    """One level's factors: the inverse G ``[..., e, e]`` and the extension Z ``[..., e, k]``."""

    inverse: Inexact[Array, "..."]
    extension: Inexact[Array, "..."]


class Factors(NamedTuple):
    """A factorised system; leading axes of its arrays are ``[half_x, strip_x, half_y, strip_y]``."""

    levels: tuple[Elimination, ...]
    ring: Elimination | None
    cross: tuple[Array, Array]


@functools.cache
def plan(shape: tuple[int, int], dirichlet: bool) -> Plan:
    """The elimination of a grid of `shape` nodes whose outer ring is given (`dirichlet`) or not."""
    axes = (_axis_plan(shape[0]), _axis_plan(shape[1]))
    size = [axis.leaf for axis in axes]
    blocks = [axis.strips for axis in axes]
    inner = [(i, j) for i in range(1, size[0]) for j in range(1, size[1])]
    perimeter = _kept_perimeter(size, blocks, dirichlet)
    kept, merges = perimeter, []
    while blocks != [1, 1]:
        # The shorter side grows, as long as there is a neighbour.
        axis = int(size[1] < size[0]) if min(blocks) > 1 else int(blocks[1] > 1)
        merge, kept, size, blocks = _merge(axis, kept, size, blocks, dirichlet)
        merges.append(merge)
    far = [n for n, (i, j) in enumerate(kept) if i == size[0] or j == size[1]]
    near = [n for n in range(len(kept)) if n not in set(far)]
    number, cross_nodes = {}, []
    for half_x in (0, 1):
        for half_y in (0, 1):
            # A node on a centre line belongs to both halves that meet there.
            names = [
                (i if i == size[0] else (half_x, i), j if j == size[1] else (half_y, j))
                for i, j in (kept[n] for n in far)
            ]
            cross_nodes.append([number.setdefault(name, len(number)) for name in names])
    return Plan(
        shape,
        axes,
        np.array(inner + perimeter),
        len(inner),
        tuple(merges),
        np.array(near, int),
        np.array(far),
        np.array(cross_nodes),
        tuple(_boundary_segments(axes, kept, axis) for axis in (0, 1)) if not dirichlet else (),
    )


def _axis_plan(nodes: int) -> AxisPlan:
    cells = nodes - 1
    largest_half = -(-cells // 2)
    strips = 1
    while largest_half >= 2 * strips * SMALLEST_LEAF:
        strips *= 2
    leaf = max(2, -(-largest_half // strips))
    node_table = np.full((2, strips, leaf + 1), ABSENT)
    cell_table = np.full((2, strips, leaf + 1), ABSENT)
    for half, count in enumerate((largest_half, cells - largest_half)):
        at_node = lambda n: n if half == 0 else nodes - 1 - n  # noqa: B023, E731
        at_cell = lambda n: n if half == 0 else cells - 1 - n  # noqa: B023, E731
        first = 0
        for strip in range(strips):
            whole = strip < count - (leaf - 1) * strips
            positions = [p for p in range(leaf + 1) if whole or p != 1]
            slots = list(range(leaf)) if whole else [leaf, *range(2, leaf)]
            for n, position in enumerate(positions):
                node_table[half, strip, position] = at_node(first + n)
            for n, slot in enumerate(slots):
                cell_table[half, strip, slot] = at_cell(first + n)
            first += len(slots)
    if (cell_table[..., leaf] == ABSENT).all():
        cell_table = cell_table[..., :leaf]
    return AxisPlan(leaf, strips, node_table, cell_table)


def _perimeter(a: int, b: int) -> list[tuple[int, int]]:
    """Nodes around a block of a x b cells in cyclic order, from the corner (0, 0)."""
    south = [(i, 0) for i in range(a)]
    east = [(a, j) for j in range(b)]
    north = [(i, b) for i in range(a, 0, -1)]
    west = [(0, j) for j in range(b, 0, -1)]
    return south + east + north + west


def _boundary_segments(axes, kept, axis):
    """Elements of the outer boundary along an axis, quadrant by quadrant."""
    position = {node: n for n, node in enumerate(kept)}
    segments = []
    for half_x in (0, 1):
        for half_y in (0, 1):
            table = axes[axis].nodes[(half_x, half_y)[axis]]
            steps = [
                strip * axes[axis].leaf + p
                for strip, row in enumerate(table)
                for p in range(len(row) - 1)
                if row[p] != ABSENT
            ] + [axes[axis].leaf * axes[axis].strips]
            ends = [position[(s, 0) if axis == 0 else (0, s)] for s in steps]
            segments += [(half_x, half_y, *pair) for pair in itertools.pairwise(ends)]
    return np.array(segments)


def _kept_perimeter(size, blocks, dirichlet):
    """The perimeter without sides that lie on a given boundary in every block of the level."""
    outer = [axis for axis in (0, 1) if dirichlet and blocks[axis] == 1]
    return [node for node in _perimeter(*size) if all(node[axis] > 0 for axis in outer)]


def _merge(axis, nodes, size, blocks, dirichlet):
    offset = [0, 0]
    offset[axis] = size[axis]
    position = [
        {node: n for n, node in enumerate(nodes)},
        {(i + offset[0], j + offset[1]): n for n, (i, j) in enumerate(nodes)},
    ]
    size = [size[0] + offset[0], size[1] + offset[1]]
    blocks = [count // 2 if d == axis else count for d, count in enumerate(blocks)]
    around = set(_perimeter(*size))
    shared = [node for node in position[0] if node in position[1] and node not in around]
    kept = _kept_perimeter(size, blocks, dirichlet)
    merge = Merge(
        axis,
        tuple(np.array([table[node] for node in shared], int) for table in position),
        tuple(np.array([table.get(node, ABSENT) for node in kept]) for table in position),
        len(nodes),
    )
    return merge, kept, size, blocks


def factor(plan: Plan, leaves: Inexact[Array, "..."], ring_entries: tuple | None) -> Factors:
    """Eliminates all nodes.

    Args:
      plan: the symbolic elimination.
      leaves: ``[2, strip_x, 2, strip_y, leaf_nodes, leaf_nodes]`` matrices of the leaves.
      ring_entries: index into ``[2, 2, kept, kept]`` and values, added to the matrices of the
        quadrants before their outer boundary is eliminated; None if the outer boundary is given.
    """
    p = plan.inner
    elimination, schur = _eliminate(leaves[..., :p, :p], leaves[..., :p, p:], leaves[..., p:, p:])
    levels = [elimination]
    for merge in plan.merges:
        children = _children(schur, merge.axis)
        parts = [
            sum(map(_block, children, rows, columns))
            for rows, columns in (
                (merge.eliminated, merge.eliminated),
                (merge.eliminated, merge.kept),
                (merge.kept, merge.kept),
            )
        ]
        elimination, schur = _eliminate(*parts)
        levels.append(elimination)
    schur = schur[:, 0, :, 0]
    ring = None
    if ring_entries is not None:
        index, values = ring_entries
        schur = schur.astype(values.dtype).at[index].add(values)
        ring, schur = _eliminate(
            _block(schur, plan.ring, plan.ring),
            _block(schur, plan.ring, plan.cross),
            _block(schur, plan.cross, plan.cross),
        )
    quadrants = schur.reshape(4, *schur.shape[2:])
    size = plan.cross_nodes.max() + 1
    matrix = jnp.zeros((size, size), schur.dtype)
    for nodes, quadrant in zip(plan.cross_nodes, quadrants, strict=True):
        matrix = matrix.at[np.ix_(nodes, nodes)].add(quadrant)
    return Factors(tuple(levels), ring, jax.scipy.linalg.lu_factor(matrix))


def solve(plan: Plan, factors: Factors, load: Inexact[Array, "x y rhs"]) -> Array:
    """Solves for loads at the nodes; the result is zero on a given outer boundary."""
    pairs = jnp.iscomplexobj(load) and not jnp.iscomplexobj(factors.levels[0].inverse)
    leaf_load = deal(plan, _to_pairs(load) if pairs else load)
    loads = [leaf_load[..., : plan.inner, :]]
    kept = leaf_load[..., plan.inner :, :] + _up(factors.levels[0], loads[0])
    for merge, level in zip(plan.merges, factors.levels[1:], strict=True):
        children = _children(kept, merge.axis)
        loads.append(sum(map(_rows, children, merge.eliminated)))
        kept = sum(map(_rows, children, merge.kept)) + _up(level, loads[-1])

    kept = kept[:, 0, :, 0]
    top_pairs = pairs and factors.ring is not None
    known = _solve_top(plan, factors, _from_pairs(kept) if top_pairs else kept)
    known = (_to_pairs(known) if top_pairs else known)[:, None, :, None]

    for merge, level, eliminated in zip(
        plan.merges[::-1], factors.levels[:0:-1], loads[:0:-1], strict=True
    ):
        both = jnp.concatenate([_down(level, eliminated, known), known], axis=-2)
        known = _parents(
            [
                _rows(both, _inverse_index(np.concatenate(positions), merge.children))
                for positions in zip(merge.eliminated, merge.kept, strict=True)
            ],
            merge.axis,
        )
    both = jnp.concatenate([_down(factors.levels[0], loads[0], known), known], axis=-2)
    solution = collect(plan, both)
    return _from_pairs(solution) if pairs else solution


def _solve_top(plan: Plan, factors: Factors, load: Array) -> Array:
    """Solves on the nodes that the quadrants keep: ``[2, 2, kept, rhs]`` to the same."""
    if factors.ring is not None:
        ring_load = _rows(load, plan.ring)
        load = _rows(load, plan.cross) + _up(factors.ring, ring_load)
    quadrants = load.reshape(4, *load.shape[2:])
    cross = jnp.zeros((plan.cross_nodes.max() + 1, load.shape[-1]), load.dtype)
    for nodes, quadrant in zip(plan.cross_nodes, quadrants, strict=True):
        cross = cross.at[nodes].add(quadrant)
    cross = jax.scipy.linalg.lu_solve(factors.cross, cross)
    known = cross[plan.cross_nodes].reshape(load.shape)
    if factors.ring is not None:
        both = jnp.concatenate([_down(factors.ring, ring_load, known), known], axis=-2)
        order = np.concatenate([plan.ring, plan.cross])
        known = _rows(both, _inverse_index(order, len(order)))
    return known


def deal(plan: Plan, load: Inexact[Array, "x y rhs"]) -> Array:
    """Loads at the nodes to loads of the leaves ``[2, strip_x, 2, strip_y, leaf_node, rhs]``.

    A node's load is shared out equally to the leaves that contain it.
    """
    x, y = (_leaf_table(plan, axis) for axis in (0, 1))
    shares = [np.bincount(axis.nodes[axis.nodes != ABSENT]) for axis in plan.axes]
    share = jnp.asarray(1 / np.multiply.outer(*shares)).astype(load.dtype)
    # An index beyond the end gives zero: dummies carry no load.
    x, y = (jnp.where(t == ABSENT, n, t) for t, n in zip((x, y), plan.shape, strict=True))
    return (load * share[..., None]).at[x, y].get(mode="fill", fill_value=0)


def collect(plan: Plan, leaves: Array) -> Inexact[Array, "x y rhs"]:
    """Values at the nodes of the leaves to values at the nodes of the grid; zero where left out."""
    x, y = (_leaf_table(plan, axis) for axis in (0, 1))
    x, y = np.broadcast_arrays(x, y)
    slot = np.full(plan.shape, x.size)
    here = (x != ABSENT) & (y != ABSENT)
    slot[x[here], y[here]] = np.flatnonzero(here)
    values = leaves.reshape(x.size, leaves.shape[-1])
    return values.at[slot].get(mode="fill", fill_value=0)


def _leaf_table(plan: Plan, axis: int) -> np.ndarray:
    """Node along an axis, or ABSENT, of every node of every leaf: ``[2, strip_x, 2, strip_y, node]``."""
    table = plan.axes[axis].nodes[:, :, plan.leaf_nodes[:, axis]]
    return table[:, :, None, None] if axis == 0 else table[None, None]


def _eliminate(ee: Array, ek: Array, kk: Array) -> tuple[Elimination, Array]:
    inverse = _inverse(ee)
    extension = -(inverse @ ek)
    return Elimination(inverse, extension), kk + jnp.matrix_transpose(ek) @ extension


def _inverse(matrix: Array) -> Array:
    lu, _, permutation = jax.lax.linalg.lu(matrix)
    columns = jnp.arange(matrix.shape[-1], dtype=permutation.dtype)
    columns = columns.reshape((1,) * permutation.ndim + (-1,))
    rhs = (permutation[..., None] == columns).astype(matrix.dtype)
    rhs = jax.lax.linalg.triangular_solve(lu, rhs, left_side=True, lower=True, unit_diagonal=True)
    return jax.lax.linalg.triangular_solve(lu, rhs, left_side=True, lower=False)


def _up(level: Elimination, load: Array) -> Array:
    return jnp.matrix_transpose(level.extension) @ load


def _down(level: Elimination, load: Array, known: Array) -> Array:
    return level.inverse @ load + level.extension @ known


def _children(blocks: Array, axis: int) -> tuple[Array, Array]:
    """Low and high blocks of every pair of neighbours along an axis of the block grid."""
    dimension = 1 + 2 * axis
    pairs = blocks.reshape(
        *blocks.shape[:dimension], blocks.shape[dimension] // 2, 2, *blocks.shape[dimension + 1 :]
    )
    return jnp.take(pairs, 0, axis=dimension + 1), jnp.take(pairs, 1, axis=dimension + 1)


def _parents(children: list[Array], axis: int) -> Array:
    """Inverse of `_children`."""
    dimension = 1 + 2 * axis
    pairs = jnp.stack(children, axis=dimension + 1)
    shape = list(children[0].shape)
    shape[dimension] *= 2
    return pairs.reshape(shape)


def _block(matrix: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    return _take(_take(matrix, rows, -2), columns, -1)


def _rows(vectors: Array, index: np.ndarray) -> Array:
    return _take(vectors, index, -2)


def _take(array: Array, index: np.ndarray, axis: int) -> Array:
    """``jnp.take`` for a static index of few runs, as slices; ABSENT entries give zero."""
    axis %= array.ndim
    zeros = lambda n: jnp.zeros(  # noqa: E731
        [n if d == axis else length for d, length in enumerate(array.shape)], array.dtype
    )
    parts = []
    for first, last, step in _runs(index):
        if step == 0:
            parts.append(zeros(last - first))
        elif step == 1:
            parts.append(jax.lax.slice_in_dim(array, first, last, axis=axis))
        else:
            run = jax.lax.slice_in_dim(array, last + 1, first + 1, axis=axis)
            parts.append(jnp.flip(run, axis))
    return jnp.concatenate(parts, axis=axis) if parts else zeros(0)


def _runs(index: np.ndarray):
    """Splits an index into maximal runs ``range(first, last, step)``; step 0 for ABSENT ones."""
    start = 0
    while start < len(index):
        stop = start + 1
        if index[start] == ABSENT:
            while stop < len(index) and index[stop] == ABSENT:
                stop += 1
            yield 0, stop - start, 0
        else:
            step = 1
            if stop < len(index) and index[stop] == index[start] - 1 and index[stop] != ABSENT:
                step = -1
            while stop < len(index) and index[stop] == index[stop - 1] + step != ABSENT:
                stop += 1
            yield int(index[start]), int(index[stop - 1]) + step, step
        start = stop


def _inverse_index(index: np.ndarray, size: int) -> np.ndarray:
    """Where each of ``range(size)`` stands in `index`; ABSENT if it does not."""
    inverse = np.full(size, ABSENT)
    inverse[index[index != ABSENT]] = np.flatnonzero(index != ABSENT)
    return inverse


def _to_pairs(field: Array) -> Array:
    return jnp.concatenate([field.real, field.imag], axis=-1)


def _from_pairs(field: Array) -> Array:
    return jax.lax.complex(*jnp.split(field, 2, axis=-1))
