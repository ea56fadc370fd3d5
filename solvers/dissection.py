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
the parent, then the *tail*, which is eliminated. Along an axis, blocks are stored in the order of
their positions in the frames of their ancestors (a Gray code), so that siblings are neighbours.

All leaves have the same number of cells: in a strip with one cell fewer than the others, a *dummy*
takes the place of the second node, and carries a unit row.
"""

import dataclasses
import functools

import numpy as np

# A leaf has at least this many cells a side, unless the grid is smaller: smaller leaves mean more
# levels, larger ones more arithmetic.
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
class Dissection:
    """The dissection of a grid.

    Attributes:
      shape: nodes of the grid.
      dirichlet: whether the outer ring is given, so that it carries no unknowns.
      depth: number of merges from leaves to quadrants.
      axes: of both axes.
      leaf_nodes: ``[node, 2]`` positions in a leaf: first the inner nodes, then the perimeter.
      inner: number of inner nodes.
    """

    shape: tuple[int, int]
    dirichlet: bool
    depth: int
    axes: tuple[Axis, Axis]
    leaf_nodes: np.ndarray
    inner: int

    def sides(self, level: int) -> tuple[int, int]:
        """Cells a side of the blocks after `level` merges."""
        return self.axes[0].leaf << level, self.axes[1].leaf << level

    def given(self, level: int) -> int:
        """Leading perimeter nodes that are given in every block after `level` merges."""
        # The head of a quadrant is the outer ring of the grid.
        return sum(self.sides(level)) + 1 if self.dirichlet and level == self.depth else 0

    def leaf_table(self, axis: int) -> np.ndarray:
        """``[strip, leaf_node]``: grid index along an axis of every leaf node, or ABSENT."""
        return self.axes[axis].nodes[:, self.leaf_nodes[:, axis]]


@functools.cache
def dissect(shape: tuple[int, int], dirichlet: bool) -> Dissection:
    """The dissection of a grid of `shape` nodes."""
    strips = 2
    while min(shape) - 1 >= 2 * strips * SMALLEST_LEAF:
        strips *= 2
    axes = (_deal(shape[0], strips), _deal(shape[1], strips))
    depth = strips.bit_length() - 2
    a, b = (axis.leaf for axis in axes)
    inner = [(i, j) for i in range(1, a) for j in range(1, b)]
    head = [(i, 0) for i in range(a, 0, -1)] + [(0, j) for j in range(b + 1)]
    tail = [(i, b) for i in range(1, a + 1)] + [(a, j) for j in range(b - 1, 0, -1)]
    perimeter = tail if dirichlet and depth == 0 else head + tail
    return Dissection(shape, dirichlet, depth, axes, np.array(inner + perimeter), len(inner))


def boundary_segments(grid: Dissection, axis: int) -> np.ndarray:
    """Elements of the outer boundary along an axis: ``[count, 4]``.

    A row is the quadrant (two indices) and the positions in its head of the element's ends.
    """
    nodes = grid.axes[axis].nodes
    coordinate = _quadrant_coordinates(len(nodes) // 2, grid.axes[axis].leaf)
    along_x = grid.sides(grid.depth)[0]
    segments = []
    for quadrant in np.ndindex(2, 2):
        half = np.split(nodes, 2)[quadrant[axis]]
        steps = np.unique(coordinate[half != ABSENT])
        head = along_x - steps if axis == 0 else along_x + steps
        segments += [(*quadrant, *ends) for ends in zip(head[:-1], head[1:], strict=True)]
    return np.array(segments)


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
