"""The discrete elliptic system assembled element by element as a SciPy matrix.

Written from the weak form with Gauss quadrature, without the tensor-product shortcuts of `solvers`.
"""

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

GAUSS = (np.array([-1, 1]) / np.sqrt(3) + 1) / 2


def assemble(coefficient, *, shift=0.0, robin=None, extent=(1.0, 1.0)):
    """Matrix of ∫ a ∇u·∇v - κ ∫ u v - γ ∮ u v over all nodes, in row-major order."""
    nx, ny = coefficient.shape
    hx, hy = extent[0] / (nx - 1), extent[1] / (ny - 1)
    stiffness, mass = np.zeros((4, 4)), np.zeros((4, 4))
    for s in GAUSS:
        for t in GAUSS:
            shape = np.array([(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t])
            by_x = np.array([-(1 - t), -t, 1 - t, t]) / hx
            by_y = np.array([-(1 - s), 1 - s, -s, s]) / hy
            weight = hx * hy / 4
            stiffness += weight * (np.outer(by_x, by_x) + np.outer(by_y, by_y))
            mass += weight * np.outer(shape, shape)
    number = np.arange(nx * ny).reshape(nx, ny)
    corners = [number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]]
    elements = np.stack([corner.ravel() for corner in corners], axis=-1)
    mean = coefficient.ravel()[elements].mean(axis=-1)
    parts = [(elements, mean[:, None, None] * stiffness - shift * mass)]
    if robin is not None:
        line = np.array([[2, 1], [1, 2]]) / 6
        sides = [(number[0], hy), (number[-1], hy), (number[:, 0], hx), (number[:, -1], hx)]
        for side, step in sides:
            segments = np.stack([side[:-1], side[1:]], axis=-1)
            blocks = np.broadcast_to(-robin * step * line, (len(segments), 2, 2))
            parts.append((segments, blocks))
    rows = np.concatenate([np.repeat(e, e.shape[1], axis=1).ravel() for e, _ in parts])
    columns = np.concatenate([np.tile(e, (1, e.shape[1])).ravel() for e, _ in parts])
    values = np.concatenate([blocks.ravel() for _, blocks in parts])
    return scipy.sparse.csr_matrix((values, (rows, columns)), shape=(nx * ny, nx * ny))


def solve(matrix, load, *, dirichlet=None):
    """Solution at the nodes by SuperLU."""
    number = np.arange(load.size).reshape(load.shape)
    if dirichlet is None:
        return scipy.sparse.linalg.spsolve(matrix.tocsc(), load.ravel()).reshape(load.shape)
    inside = number[1:-1, 1:-1].ravel()
    u = np.array(dirichlet, dtype=np.result_type(matrix.dtype, load, dirichlet))
    u[1:-1, 1:-1] = 0
    rhs = (load.ravel() - matrix @ u.ravel())[inside]
    solution = scipy.sparse.linalg.spsolve(matrix[inside][:, inside].tocsc(), rhs)
    u[1:-1, 1:-1] = solution.reshape(load.shape[0] - 2, load.shape[1] - 2)
    return u
