"""Which node of a rectangular grid is eliminated when: the static side of `solvers.elimination`.

The rectangle is halved along both axes, again and again, down to *leaves* of a few cells. A block's
unknowns are the nodes of its perimeter; merging four blocks eliminates the cross between them. All
blocks of a level are treated alike, because each is seen in its own *frame*, mirrored so that the
corner (0, 0) is the block's corner on its parent's perimeter and (a, b) the centre of its parent:

    parent (2a x 2b)                     block (a x b), in its own frame
    +----------+----------+              (0,b) --- armx --- (a,b)      head: (a,0) → (0,0) → (0,b)
    | (0, 1)   |   (1, 1) |                |                  |        tail: armx, (a,b), army
    |          |          |              head               army
    +----------+----------+                |                  |
    | (0, 0)   |   (1, 0) |              (0,0) --- head --- (a,0)
    +----------+----------+

A perimeter is stored in cyclic order from (a, 0): first the *head*, which stays on the perimeter of
the parent, then the *tail*, which is eliminated. Siblings are stored next to each other, in the
order (0, 0), (0, 1), (1, 0), (1, 1) of their parent's frame.

All leaves have the same number of cells: in a strip with one cell fewer than the others, a *dummy*
takes the place of the second node, and carries a unit row.
"""

import dataclasses
import functools
import itertools

import numpy as np

# Cells a side of the smallest leaves, unless the grid is smaller: smaller leaves mean more levels,
# larger ones more arithmetic.
SMALLEST_LEAF = 4
ABSENT = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Axis:
    """How the nodes and cells of one axis are dealt out to the leaves, in the leaves' own frames.

    Attributes:
      leaf: cells of a leaf.
      nodes: ``[strip, leaf + 1]`` node at each position, or ABSENT for a dummy.
      cells: ``[strip, slot]`` cell in each slot, or ABSENT. Slot s < leaf joins the positions s and
        s + 1; a last slot, present if there are dummies, joins the positions 0 and 2.
    """

    leaf: int
    nodes: np.ndarray
    cells: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Union:
    """How the unknowns of `siblings` blocks become the unknowns of their union.

    Attributes:
      place: ``[sibling, unknown]`` number of each unknown in the union, the eliminated ones first;
        ABSENT for one that is given.
      eliminated, kept: numbers of unknowns of the union.
    """

    place: np.ndarray
    eliminated: int
    kept: int


@dataclasses.dataclass(frozen=True, eq=False)
class Dissection:
    """The dissection of a grid.

    Attributes:
      shape: nodes of the grid.
      axes: of both axes.
      strips: ``[leaf, 2]`` strip of every leaf along both axes.
      leaf_nodes: ``[node, 2]`` positions in a leaf: first the inner nodes, then the perimeter.
      inner: number of inner nodes.
      merges: from the leaves to the quadrants.
      ring: elimination of the quadrants' heads, but for the ends that two quadrants share; None if
        the outer ring is given.
      cross: union of the quadrants.
    """

    shape: tuple[int, int]
    axes: tuple[Axis, Axis]
    strips: np.ndarray
    leaf_nodes: np.ndarray
    inner: int
    merges: tuple[Union, ...]
    ring: Union | None
    cross: Union

    def leaf_table(self, axis: int) -> np.ndarray:
        """``[leaf, leaf_node]``: grid index along an axis of every leaf node, or ABSENT."""
        return self.axes[axis].nodes[self.strips[:, axis]][:, self.leaf_nodes[:, axis]]


@functools.cache
def dissect(shape: tuple[int, int], dirichlet: bool) -> Dissection:
    """The dissection of a grid of `shape` nodes whose outer ring is given (`dirichlet`) or not."""
    depth = 0
    while min(shape) - 1 > (SMALLEST_LEAF - 0.5) * (4 << depth):
        depth += 1
    strips = 2 << depth
    axes = (_deal(shape[0], strips), _deal(shape[1], strips))
    sides = [(axes[0].leaf << level, axes[1].leaf << level) for level in range(depth + 1)]
    perimeters = [_head(*side) + _tail(*side) for side in sides]
    # The heads of the quadrants are the outer ring of the grid.
    outer = _head(*sides[depth])
    if dirichlet:
        perimeters[depth] = _tail(*sides[depth])
    merges = [
        _union(_in_parent(below, side), above, given=outer if dirichlet else ())
        for below, above, side in zip(perimeters[:-1], perimeters[1:], sides[:-1], strict=True)
    ]
    ring, quadrant = None, perimeters[depth]
    if not dirichlet:
        kept = [node for node in quadrant if node not in set(outer[1:-1])]
        ring, quadrant = _union([quadrant], kept), kept
    inner = [(i, j) for i in range(1, axes[0].leaf) for j in range(1, axes[1].leaf)]
    return Dissection(
        shape,
        axes,
        _morton(strips),
        np.array(inner + perimeters[0]),
        len(inner),
        tuple(merges),
        ring,
        _union(_in_parent(quadrant, sides[depth]), []),
    )


def boundary_segments(grid: Dissection, axis: int) -> np.ndarray:
    """Elements of the outer boundary along an axis: ``[count, 3]``.

    A row is the number of the quadrant and the positions in its head of the element's ends.
    """
    nodes = grid.axes[axis].nodes
    coordinate = _quadrant_coordinates(len(nodes) // 2, grid.axes[axis].leaf)
    corner = grid.axes[0].leaf * len(nodes) // 2
    segments = []
    for quadrant, half in enumerate(np.ndindex(2, 2)):
        present = np.split(nodes, 2)[half[axis]] != ABSENT
        steps = np.unique(coordinate[present])
        head = corner - steps if axis == 0 else corner + steps
        segments += [(quadrant, *ends) for ends in itertools.pairwise(head)]
    return np.array(segments)


def _head(a: int, b: int) -> list[tuple[int, int]]:
    return [(i, 0) for i in range(a, 0, -1)] + [(0, j) for j in range(b + 1)]


def _tail(a: int, b: int) -> list[tuple[int, int]]:
    return [(i, b) for i in range(1, a + 1)] + [(a, j) for j in range(b - 1, 0, -1)]


def _in_parent(nodes, side):
    """Nodes of each of four siblings, in the frame of their parent."""
    a, b = side
    return [
        [(2 * a - i if f else i, 2 * b - j if g else j) for i, j in nodes]
        for f, g in np.ndindex(2, 2)
    ]


def _union(siblings, kept, given=()) -> Union:
    others = {*kept, *given}
    eliminated = dict.fromkeys(n for nodes in siblings for n in nodes if n not in others)
    number = {node: n for n, node in enumerate([*eliminated, *kept])}
    return Union(
        np.array([[number.get(node, ABSENT) for node in nodes] for nodes in siblings]),
        len(eliminated),
        len(kept),
    )


def _morton(strips: int) -> np.ndarray:
    """``[block, 2]``: coordinates of blocks in the order in which siblings are neighbours."""
    order = np.zeros((1, 2), int)
    while len(order) < strips**2:
        children = np.array(list(np.ndindex(2, 2)))
        order = (2 * order[:, None] + children[None]).reshape(-1, 2)
    return order


def _deal(nodes: int, strips: int) -> Axis:
    """Deals the nodes of an axis out to strips of equal size."""
    cells = nodes - 1
    leaf = max(2, -(-cells // strips))
    node_table = np.full((strips, leaf + 1), ABSENT)
    cell_table = np.full((strips, leaf + 1), ABSENT)
    first = 0
    for strip in range(strips):
        whole = strip < cells - (leaf - 1) * strips
        count = leaf if whole else leaf - 1
        strip_nodes, strip_cells = first + np.arange(count + 1), first + np.arange(count)
        first += count
        if strip % 2:
            # The high block of a pair is mirrored.
            strip_nodes, strip_cells = strip_nodes[::-1], strip_cells[::-1]
        row = strip ^ (strip >> 1)
        node_table[row, [p for p in range(leaf + 1) if whole or p != 1]] = strip_nodes
        cell_table[row, list(range(leaf)) if whole else [leaf, *range(2, leaf)]] = strip_cells
    if (cell_table[:, leaf] == ABSENT).all():
        cell_table = cell_table[:, :leaf]
    return Axis(leaf, node_table, cell_table)


def _quadrant_coordinates(strips: int, leaf: int) -> np.ndarray:
    """``[strip, leaf + 1]``: coordinate in its quadrant's frame of each position of each leaf."""
    coordinate = np.broadcast_to(np.arange(leaf + 1), (strips, leaf + 1))
    side, row = leaf, np.arange(strips)[:, None]
    while side < leaf * strips:
        coordinate = np.where(row % 2 == 1, 2 * side - coordinate, coordinate)
        side, row = 2 * side, row // 2
    return coordinate
