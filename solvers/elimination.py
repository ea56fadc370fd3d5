"""Batched elimination along a `solvers.dissection`: factors, and solutions from factors.

Eliminating the unknowns e of a block in favour of those kept, k, is two products:

    S = A_kk + A_ek^T Z,   Z = -G A_ek,   G = A_ee^{-1}
    up:    r_k += Z^T r_e
    down:  u_e = G r_e + Z u_k

The matrices are symmetric, not necessarily definite or real. Arrays of blocks have the leading axes
``[strip_x, strip_y]`` in the order of the dissection. The last two unions, of the quadrants and of
their outer ring, may be complex while everything below is real.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from solvers.dissection import ABSENT, Dissection

Matrices = Inexact[Array, "..."]


class Level(NamedTuple):
    """Factors of one elimination: G ``[..., e, e]`` and Z ``[..., e, k]``."""

    inverse: Matrices
    extension: Matrices


class Factors(NamedTuple):
    """Factors of a system: of the leaves and merges, of the outer ring, and of the last cross."""

    levels: tuple[Level, ...]
    ring: Level | None
    cross: tuple[Array, Array]


def factor(
    grid: Dissection, leaves: Matrices, ring_entries: tuple[tuple[np.ndarray, ...], Array] | None
) -> Factors:
    """Eliminates all unknowns.

    Args:
      grid: the dissection.
      leaves: ``[strip_x, strip_y, leaf_node, leaf_node]`` matrices of the leaves.
      ring_entries: index into ``[2, 2, perimeter, perimeter]`` and values, added to the matrices of
        the quadrants before their heads are eliminated; None if the outer ring is given.
    """
    p = grid.inner
    level, schur = _eliminate(leaves[..., :p, :p], leaves[..., :p, p:], leaves[..., p:, p:])
    levels = [level]
    for depth in range(grid.depth):
        a, b = grid.sides(depth)
        head = a + b + 1
        blocks = _siblings(schur)
        ee = _union_of_tails([block[..., head:, head:] for block in blocks], a - 1)
        ek = _tails_to_heads([block[..., head:, :head] for block in blocks], a, b)
        given = grid.given(depth + 1)
        ek = ek[..., given:]
        level = _level(ee, ek)
        schur = jnp.matrix_transpose(ek) @ level.extension
        schur = _add_heads(schur, [block[..., :head, :head] for block in blocks], a, b, given)
        levels.append(level)

    ring, arm = None, grid.sides(grid.depth)[0] - 1
    if ring_entries is not None:
        index, values = ring_entries
        schur = schur.astype(values.dtype).at[index].add(values)
        head = sum(grid.sides(grid.depth)) + 1
        # The ends of the head are common to two quadrants: they prolong the arms of the tail.
        schur = jnp.roll(schur, 1 - head, axis=(-2, -1))
        kept = schur.shape[-1] - head + 2
        ring, schur = _eliminate(
            schur[..., kept:, kept:], schur[..., kept:, :kept], schur[..., :kept, :kept]
        )
        arm += 1
    cross = _union_of_tails(_siblings(schur), arm)[0, 0]
    return Factors(tuple(levels), ring, jax.scipy.linalg.lu_factor(cross))


def solve(grid: Dissection, factors: Factors, load: Inexact[Array, "x y"]) -> Array:
    """Solves for loads at the nodes; the result is zero on a given outer ring."""
    pairs = jnp.iscomplexobj(load) and not jnp.iscomplexobj(factors.levels[0].inverse)
    vectors = deal(grid, _to_pairs(load) if pairs else load[..., None])
    loads = [vectors[..., : grid.inner, :]]
    kept = vectors[..., grid.inner :, :] + _up(factors.levels[0], loads[0])
    for depth, level in enumerate(factors.levels[1:]):
        a, b = grid.sides(depth)
        head = a + b + 1
        blocks = _siblings(kept)
        loads.append(_sum_of_tails([block[..., head:, :] for block in blocks], a - 1))
        heads = _sum_of_heads([block[..., :head, :] for block in blocks], a, b)
        kept = heads[..., grid.given(depth + 1) :, :] + _up(level, loads[-1])

    complex_top = pairs and factors.ring is not None
    known = _solve_top(grid, factors, _from_pairs(kept) if complex_top else kept)
    known = _to_pairs(known[..., 0]) if complex_top else known

    for depth in reversed(range(grid.depth)):
        a, b = grid.sides(depth)
        level, load_here = factors.levels[depth + 1], loads[depth + 1]
        found = _down(level, load_here, known)
        missing = [(0, 0)] * known.ndim
        missing[-2] = (grid.given(depth + 1), 0)
        heads, tails = _split_heads(jnp.pad(known, missing), a, b), _split_tails(found, a - 1)
        known = _blocks([jnp.concatenate(parts, -2) for parts in zip(heads, tails, strict=True)])
    found = _down(factors.levels[0], loads[0], known)
    solution = collect(grid, jnp.concatenate([found, known], axis=-2))
    return _from_pairs(solution)[..., 0] if pairs else solution[..., 0]


def _solve_top(grid: Dissection, factors: Factors, load: Array) -> Array:
    """Solves on the unknowns that the quadrants keep: ``[2, 2, kept, rhs]`` to the same."""
    head = sum(grid.sides(grid.depth)) + 1
    arm = grid.sides(grid.depth)[0] - 1
    if factors.ring is not None:
        arm += 1
        kept = factors.ring.extension.shape[-1]
        load = jnp.roll(load, 1 - head, axis=-2)
        load, ring_load = load[..., :kept, :], load[..., kept:, :]
        load = load + _up(factors.ring, ring_load)
    cross = _sum_of_tails(_siblings(load), arm)[0, 0]
    cross = jax.scipy.linalg.lu_solve(factors.cross, cross)[None, None]
    known = _blocks(_split_tails(cross, arm))
    if factors.ring is not None:
        known = jnp.concatenate([known, _down(factors.ring, ring_load, known)], axis=-2)
        known = jnp.roll(known, head - 1, axis=-2)
    return known


def deal(grid: Dissection, load: Inexact[Array, "x y rhs"]) -> Inexact[Array, "sx sy node rhs"]:
    """Loads at the nodes to loads of the leaves: a node's is shared equally by its leaves."""
    shares = [np.bincount(axis.nodes[axis.nodes != ABSENT]) for axis in grid.axes]
    share = jnp.asarray(1 / np.multiply.outer(*shares)).astype(load.dtype)
    x, y = _leaf_index(grid)
    return (load * share[..., None]).at[x, y].get(mode="fill", fill_value=0)


def collect(grid: Dissection, leaves: Inexact[Array, "sx sy node rhs"]) -> Array:
    """Values at the nodes of the leaves to values at the nodes of the grid; zero where none."""
    x, y = np.broadcast_arrays(*_leaf_index(grid))
    slot = np.full(grid.shape, x.size)
    here = (x < grid.shape[0]) & (y < grid.shape[1])
    slot[x[here], y[here]] = np.flatnonzero(here)
    values = leaves.reshape(x.size, leaves.shape[-1])
    return values.at[slot].get(mode="fill", fill_value=0)


def _leaf_index(grid: Dissection) -> tuple[np.ndarray, np.ndarray]:
    """Grid indices of all leaf nodes, beyond the end for dummies."""
    tables = (grid.leaf_table(axis) for axis in (0, 1))
    x, y = (np.where(t == ABSENT, n, t) for t, n in zip(tables, grid.shape, strict=True))
    return x[:, None], y[None, :]


def _eliminate(ee: Array, ek: Array, kk: Array) -> tuple[Level, Array]:
    level = _level(ee, ek)
    return level, kk + jnp.matrix_transpose(ek) @ level.extension


def _level(ee: Array, ek: Array) -> Level:
    inverse = _inverse(ee)
    return Level(inverse, -(inverse @ ek))


def _inverse(matrix: Array) -> Array:
    lu, _, permutation = jax.lax.linalg.lu(matrix)
    columns = jnp.arange(matrix.shape[-1], dtype=permutation.dtype)
    columns = columns.reshape((1,) * permutation.ndim + (-1,))
    rhs = (permutation[..., None] == columns).astype(matrix.dtype)
    rhs = jax.lax.linalg.triangular_solve(lu, rhs, left_side=True, lower=True, unit_diagonal=True)
    return jax.lax.linalg.triangular_solve(lu, rhs, left_side=True, lower=False)


def _up(level: Level, load: Array) -> Array:
    return jnp.matrix_transpose(level.extension) @ load


def _down(level: Level, load: Array, known: Array) -> Array:
    return level.inverse @ load + level.extension @ known


# Four siblings are listed as (0, 0), (0, 1), (1, 0), (1, 1) of their parent's frame.
_SIBLINGS = ((0, 0), (0, 1), (1, 0), (1, 1))


def _siblings(blocks: Array) -> list[Array]:
    """``[2x, 2y, ...]`` to four times ``[x, y, ...]``."""
    return [blocks[f::2, g::2] for f, g in _SIBLINGS]


def _blocks(siblings: list[Array]) -> Array:
    """Inverse of `_siblings`."""
    x, y, *rest = siblings[0].shape
    stacked = jnp.stack(siblings).reshape(2, 2, x, y, *rest)
    return jnp.moveaxis(stacked, (0, 1), (1, 3)).reshape(2 * x, 2 * y, *rest)


def _tail_parts(size: int, arm: int) -> list[tuple[slice, list[int]]]:
    """The cross between four siblings: slices of a tail, and the siblings whose tails meet there."""
    along_x, centre, along_y = slice(0, arm), slice(arm, arm + 1), slice(arm + 1, size)
    of = lambda d, end: [n for n, s in enumerate(_SIBLINGS) if s[d] == end]  # noqa: E731
    return [
        (along_x, of(0, 0)), (along_x, of(0, 1)), (centre, [0, 1, 2, 3]),
        (along_y, of(1, 0)), (along_y, of(1, 1)),
    ]  # fmt: skip


def _union_of_tails(tails: list[Array], arm: int) -> Array:
    """Matrices between tails to the matrix of the cross."""
    parts = _tail_parts(tails[0].shape[-1], arm)
    rows = []
    for row, row_members in parts:
        entries = []
        for column, column_members in parts:
            common = sorted(set(row_members) & set(column_members))
            shared = [tails[n][..., row, column] for n in common or [0]]
            entries.append(sum(shared) if common else jnp.zeros_like(shared[0]))
        rows.append(jnp.concatenate(entries, axis=-1))
    return jnp.concatenate(rows, axis=-2)


def _sum_of_tails(tails: list[Array], arm: int) -> Array:
    """Vectors on tails to the vector on the cross."""
    parts = _tail_parts(tails[0].shape[-2], arm)
    return jnp.concatenate([sum(tails[n][..., row, :] for n in m) for row, m in parts], axis=-2)


def _split_tails(cross: Array, arm: int) -> list[Array]:
    """Values on the cross to values on the four tails."""
    along_y = (cross.shape[-2] - 1 - 2 * arm) // 2
    cuts = np.cumsum([arm, arm, 1, along_y])
    low_x, high_x, centre, low_y, high_y = jnp.split(cross, cuts, axis=-2)
    x, y = (low_x, high_x), (low_y, high_y)
    return [jnp.concatenate([x[f], centre, y[g]], axis=-2) for f, g in _SIBLINGS]


def _tails_to_heads(blocks: list[Array], a: int, b: int) -> Array:
    """Matrices from heads to tails, to the matrix from the parent's perimeter to the cross."""
    parts = _tail_parts(blocks[0].shape[-2], a - 1)
    wide = [
        jnp.concatenate(
            [
                block[..., row, :] if n in members else jnp.zeros_like(block[..., row, :])
                for row, members in parts
            ],
            axis=-2,
        )
        for n, block in enumerate(blocks)
    ]
    return _sum_of_heads(wide, a, b, axis=-1)


def _sum_of_heads(heads: list[Array], a: int, b: int, axis: int = -2) -> Array:
    """Vectors on heads to the vector on the parent's perimeter: ends of heads meet there."""
    axis %= heads[0].ndim
    cut = lambda x, first, last: jax.lax.slice_in_dim(x, first, last, axis=axis)  # noqa: E731
    end = a + b
    h00, h01, h10, h11 = heads
    h01, h10 = jnp.flip(h01, axis), jnp.flip(h10, axis)
    around = [h10, h00, h01, h11, h10]
    pieces = [cut(h10, b, end)]
    for low, high in zip(around[:-1], around[1:], strict=True):
        pieces += [cut(low, end, end + 1) + cut(high, 0, 1), cut(high, 1, end)]
    pieces[-1] = cut(h10, 1, b)
    return jnp.concatenate(pieces, axis=axis)


def _split_heads(perimeter: Array, a: int, b: int) -> list[Array]:
    """Values on the parent's perimeter to values on the four heads."""
    cut = lambda first, last: perimeter[..., first:last, :]  # noqa: E731
    side = a + b
    starts = [a, a + side, a + 2 * side]
    h00, h01, h11 = (cut(start, start + side + 1) for start in starts)
    h10 = jnp.concatenate([cut(a + 3 * side, 4 * side), cut(0, a + 1)], axis=-2)
    return [h00, jnp.flip(h01, -2), jnp.flip(h10, -2), h11]


def _add_heads(schur: Array, heads: list[Array], a: int, b: int, given: int) -> Array:
    """Adds the matrices on the four heads to that on the parent's perimeter, from `given` on."""
    h00, h01, h10, h11 = heads
    h01, h10 = (jnp.flip(h, (-2, -1)) for h in (h01, h10))
    side = a + b
    # Runs (start, stop, place) of a head on the perimeter; that of h10 passes the first node.
    runs = {
        0: (h00, [(0, side + 1, a)]),
        1: (h01, [(0, side + 1, a + side)]),
        2: (h11, [(0, side + 1, a + 2 * side)]),
        3: (h10, [(0, b, a + 3 * side), (b, side + 1, 0)]),
    }
    for head, places in runs.values():
        shown = []
        for start, stop, place in places:
            hidden = min(max(given - place, 0), stop - start)
            if start + hidden < stop:
                shown.append((start + hidden, stop, place + hidden - given))
        for r0, r1, r in shown:
            for c0, c1, c in shown:
                rows, columns = slice(r, r + r1 - r0), slice(c, c + c1 - c0)
                total = schur[..., rows, columns] + head[..., r0:r1, c0:c1]
                schur = schur.at[..., rows, columns].set(total)
    return schur


def _to_pairs(field: Array) -> Array:
    """Complex ``[...]`` to real ``[..., 2]``."""
    return jnp.stack([field.real, field.imag], axis=-1)


def _from_pairs(field: Array) -> Array:
    """Real ``[..., 2]`` to complex ``[..., 1]``."""
    return jax.lax.complex(field[..., :1], field[..., 1:])
