"""Batched elimination along a `solvers.dissection`: factors, and solutions from factors.

Eliminating the unknowns e of a block in favour of those kept, k, is two products:

    S = A_kk - A_ke Z,   Z = G A_ek,   G = A_ee^{-1}
    up:    r_k -= Z^T r_e
    down:  u_e = G r_e - Z u_k

The matrices are symmetric, not necessarily definite or real. A_ke is assembled all the same: of
small blocks, a product with a transposed matrix takes several times as long. Arrays of blocks have
one leading axis, in which siblings are neighbours. The outer ring and the last cross may be complex
while everything below is real.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from solvers.dissection import ABSENT, Dissection, Union

# [block, row, column]
Blocks = Inexact[Array, "_ _ _"]


class Level(NamedTuple):
    """Factors of one elimination: G and Z of every block."""

    inverse: Blocks
    extension: Blocks


class Factors(NamedTuple):
    """Factors of a system: of the leaves and merges, of the outer ring, and of the last cross."""

    levels: tuple[Level, ...]
    ring: Level | None
    cross: tuple[Array, Array]


def factor(
    grid: Dissection,
    leaves: tuple[Blocks, Blocks, Blocks, Blocks],
    ring_entries: tuple[tuple[np.ndarray, ...], Array] | None,
) -> Factors:
    """Eliminates all unknowns.

    Args:
      grid: the dissection.
      leaves: the blocks A_ee, A_ek, A_ke and A_kk of the leaves, with their inner nodes e.
      ring_entries: index into ``[quadrant, perimeter, perimeter]`` and values, added before the
        heads of the quadrants are eliminated; None if the outer ring is given.
    """
    level, schur = _eliminate(*leaves)
    levels = [level]
    for union in grid.merges:
        level, schur = _eliminate(*_assemble(union, schur))
        levels.append(level)
    ring = None
    if ring_entries is not None:
        index, values = ring_entries
        schur = schur.astype(values.dtype).at[index].add(values)
        ring, schur = _eliminate(*_assemble(grid.ring, schur))
    cross = _assemble(grid.cross, schur)[0]
    lu, _, permutation = jax.lax.linalg.lu(cross[0])
    return Factors(tuple(levels), ring, (lu, permutation))


def solve(grid: Dissection, factors: Factors, load: Inexact[Array, "x y"]) -> Array:
    """Solves for loads at the nodes; the result is zero on a given outer ring."""
    pairs = jnp.iscomplexobj(load) and not jnp.iscomplexobj(factors.levels[0].inverse)
    vectors = deal(grid, _to_pairs(load) if pairs else load[..., None])
    loads = [vectors[:, : grid.inner]]
    kept = vectors[:, grid.inner :] - _up(factors.levels[0], loads[0])
    for union, level in zip(grid.merges, factors.levels[1:], strict=True):
        eliminated, kept = _gather_loads(union, kept)
        loads.append(eliminated)
        kept -= _up(level, eliminated)

    complex_top = pairs and factors.ring is not None
    kept = _from_pairs(kept) if complex_top else kept
    if factors.ring is not None:
        ring_load, kept = _gather_loads(grid.ring, kept)
        kept -= _up(factors.ring, ring_load)
    cross, _ = _gather_loads(grid.cross, kept)
    known = _spread(grid.cross, _solve_cross(factors, cross[0])[None])
    if factors.ring is not None:
        found = _down(factors.ring, ring_load, known)
        known = _spread(grid.ring, jnp.concatenate([found, known], axis=1))
    known = _to_pairs(known[..., 0]) if complex_top else known

    for union, level, eliminated in zip(
        grid.merges[::-1], factors.levels[:0:-1], loads[:0:-1], strict=True
    ):
        found = _down(level, eliminated, known)
        known = _spread(union, jnp.concatenate([found, known], axis=1))
    found = _down(factors.levels[0], loads[0], known)
    solution = collect(grid, jnp.concatenate([found, known], axis=1))
    return (_from_pairs(solution) if pairs else solution)[..., 0]


def inverse_norm(factors: Factors) -> Float[Array, ""]:
    """Largest Frobenius norm of an inverse in the elimination, estimated for that of the cross."""
    levels = [*factors.levels, *([] if factors.ring is None else [factors.ring])]
    norms = [jnp.sqrt(jnp.max(jnp.sum(jnp.abs(g) ** 2, axis=(1, 2)))) for g, _ in levels]
    lu, _ = factors.cross
    probe = jax.random.normal(jax.random.key(0), (len(lu), 1), lu.dtype)
    norms.append(jnp.linalg.norm(_solve_cross(factors, probe)))
    return jnp.max(jnp.stack(norms))


def _solve_cross(factors: Factors, load: Array) -> Array:
    lu, permutation = factors.cross
    load = jax.lax.linalg.triangular_solve(
        lu, load[permutation], left_side=True, lower=True, unit_diagonal=True
    )
    return jax.lax.linalg.triangular_solve(lu, load, left_side=True, lower=False)


def deal(grid: Dissection, load: Inexact[Array, "x y rhs"]) -> Inexact[Array, "leaf node rhs"]:
    """Loads at the nodes to loads of the leaves: a node's is shared equally by its leaves."""
    shares = [np.bincount(axis.nodes[axis.nodes != ABSENT]) for axis in grid.axes]
    share = jnp.asarray(1 / np.multiply.outer(*shares)).astype(load.dtype)
    flat = (load * share[..., None]).reshape(-1, load.shape[-1])
    return flat.at[_leaf_index(grid)].get(mode="fill", fill_value=0)


def collect(grid: Dissection, leaves: Inexact[Array, "leaf node rhs"]) -> Array:
    """Values at the nodes of the leaves to values at the nodes of the grid; zero where none."""
    index = _leaf_index(grid).ravel()
    slot = np.full(grid.shape[0] * grid.shape[1] + 1, index.size, np.int32)
    slot[index] = np.arange(index.size)
    values = leaves.reshape(index.size, leaves.shape[-1])
    return values.at[slot[:-1].reshape(grid.shape)].get(mode="fill", fill_value=0)


def _leaf_index(grid: Dissection) -> np.ndarray:
    """``[leaf, leaf_node]``: number of the node in the flattened grid, beyond it for dummies."""
    x, y = grid.leaf_table(0), grid.leaf_table(1)
    nx, ny = grid.shape
    return np.where((x == ABSENT) | (y == ABSENT), nx * ny, x * ny + y).astype(np.int32)


def _eliminate(ee: Blocks, ek: Blocks, ke: Blocks, kk: Blocks) -> tuple[Level, Blocks]:
    inverse = _inverse(ee)
    extension = _product(inverse, ek)
    return Level(inverse, extension), kk - _product(ke, extension)


def _product(a: Blocks, b: Blocks) -> Blocks:
    """a @ b; of complex blocks by three real products, which together take half the time."""
    if not jnp.iscomplexobj(a):
        return a @ b
    real, imaginary = a.real @ b.real, a.imag @ b.imag
    both = (a.real + a.imag) @ (b.real + b.imag)
    return jax.lax.complex(real - imaginary, both - real - imaginary)


def _up(level: Level, load: Array) -> Array:
    # As a sum, not a product with the transposed matrix: faster by a factor of two to six.
    return jnp.sum(level.extension[..., None] * load[:, :, None], axis=1)


def _down(level: Level, load: Array, known: Array) -> Array:
    return level.inverse @ load - level.extension @ known


def _assemble(union: Union, schur: Blocks) -> tuple[Blocks, Blocks, Blocks, Blocks]:
    """The blocks A_ee, A_ek, A_ke and A_kk of each union."""
    siblings, size = union.place.shape
    flat = schur.reshape(-1, siblings * size**2)
    e, total = union.eliminated, union.eliminated + union.kept
    sources = np.full((siblings, total, total), ABSENT)
    for n, place in enumerate(union.place):
        own = np.flatnonzero(place != ABSENT)
        entries = n * size**2 + own[:, None] * size + own[None, :]
        sources[n][np.ix_(place[own], place[own])] = entries
    # Where several siblings contribute, the first ones come first.
    sources = -np.sort(-sources, axis=0)
    parts = (np.s_[:e, :e], np.s_[:e, e:], np.s_[e:, :e], np.s_[e:, e:])
    return tuple(_gather_sum(flat, sources[:, rows, columns]) for rows, columns in parts)


def _gather_sum(flat: Array, sources: np.ndarray) -> Array:
    """Sum over the first axis of `sources` of the entries of ``flat [block, :]`` they name."""
    out = _gather(flat, sources[0])
    for source in sources[1:]:
        entries = np.nonzero(source != ABSENT)
        if len(entries[0]) > source.size / 16:
            out += _gather(flat, source)
        elif len(entries[0]):
            out = out.at[:, *entries].add(flat[:, source[entries]])
    return out


def _gather(flat: Array, source: np.ndarray) -> Array:
    index = np.where(source == ABSENT, flat.shape[1], source).astype(np.int32)
    return flat.at[:, index].get(mode="fill", fill_value=0)


def _gather_loads(union: Union, vectors: Array) -> tuple[Array, Array]:
    """Loads of siblings to loads of their union, eliminated and kept."""
    siblings, size = union.place.shape
    total = union.eliminated + union.kept
    sources = np.full((siblings, total), ABSENT)
    for n, place in enumerate(union.place):
        own = np.flatnonzero(place != ABSENT)
        sources[n][place[own]] = n * size + own
    sources = -np.sort(-sources, axis=0)
    flat = vectors.reshape(-1, siblings * size, vectors.shape[-1])
    out = sum(_gather(flat, source) for source in sources if (source != ABSENT).any())
    return out[:, : union.eliminated], out[:, union.eliminated :]


def _spread(union: Union, vectors: Array) -> Array:
    """Values on the unknowns of a union to values on those of its siblings."""
    values = _gather(vectors, union.place.ravel())
    return values.reshape(-1, union.place.shape[1], vectors.shape[-1])


def _inverse(matrix: Blocks) -> Blocks:
    """Inverses of symmetric matrices.

    A library factorisation of each of the many small matrices would be all overhead: these are
    reduced in batches, the middle ones by panels of columns, without pivoting. Large matrices
    belong to blocks that hold whole wave lengths, and may be nearly singular in part: these need
    pivots.
    """
    size = matrix.shape[-1]
    if size <= 16:
        return jnp.moveaxis(_inverse_of_small(jnp.moveaxis(matrix, 0, -1)), -1, 0)
    if size <= 64:
        return _inverse_by_panels(matrix, 8)
    return jnp.linalg.inv(matrix)


def _inverse_by_panels(matrix: Blocks, width: int) -> Blocks:
    """Gauss-Jordan elimination of `width` columns at a time."""
    size = matrix.shape[-1]
    steps = -(-size // width)
    padding = steps * width - size
    a = jnp.pad(matrix, ((0, 0), (0, padding), (0, padding)))
    if padding:
        a += jnp.diag(jnp.asarray(np.arange(steps * width) >= size, matrix.dtype))[None]
    minus = -jnp.eye(width, dtype=matrix.dtype)[None]

    def step(n, a):
        k = n * width
        row = jax.lax.dynamic_slice_in_dim(a, k, width, axis=1)
        column = jax.lax.dynamic_slice_in_dim(a, k, width, axis=2)
        pivot = _inverse(jax.lax.dynamic_slice_in_dim(row, k, width, axis=2))
        row = jax.lax.dynamic_update_slice_in_dim(pivot @ row, pivot, k, axis=2)
        unit = jnp.broadcast_to(minus, pivot.shape)
        column = jax.lax.dynamic_update_slice_in_dim(column, unit, k, axis=1)
        a = jax.lax.dynamic_update_slice_in_dim(a, jnp.zeros_like(row), k, axis=1)
        a = jax.lax.dynamic_update_slice_in_dim(a, jnp.zeros_like(column), k, axis=2)
        return a - column @ row

    return jax.lax.fori_loop(0, steps, step, a)[:, :size, :size]


def _inverse_of_small(a: Inexact[Array, "row column block"]) -> Inexact[Array, "row column block"]:
    """Gauss-Jordan elimination with the batch as the last axis: vectorised over the blocks."""
    unit = jnp.eye(len(a), dtype=a.dtype)

    def step(k, a):
        here = unit[k]
        row, column = a[k], a[:, k]
        scale = 1 / row[k]
        row = row * scale[None] * (1 - here)[:, None] + here[:, None] * scale[None]
        column = column * (1 - here)[:, None] - here[:, None]
        others = (1 - here)[:, None, None] * (1 - here)[None, :, None]
        return others * a - column[:, None] * row[None]

    return jax.lax.fori_loop(0, len(a), step, a)


def _to_pairs(field: Array) -> Array:
    """Complex ``[...]`` to real ``[..., 2]``."""
    return jnp.stack([field.real, field.imag], axis=-1)


def _from_pairs(field: Array) -> Array:
    """Real ``[..., 2]`` to complex ``[..., 1]``."""
    return jax.lax.complex(field[..., :1], field[..., 1:])
