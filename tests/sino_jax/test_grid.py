"""Crops against numpy slicing, side ratios, and the order of the stencils."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax import grid


def corners(shape, size):
    """Every corner position of a box, and one position inside."""
    ends = [(0, n - m) for n, m in zip(shape, size, strict=True)]
    return [
        *itertools.product(*ends),
        tuple((n - m) // 2 for n, m in zip(shape, size, strict=True)),
    ]


@pytest.mark.parametrize(
    ("shape", "size"),
    [((9, 7), (4, 3)), ((8, 8), (8, 8)), ((7, 10), (1, 10)), ((5, 6, 7), (2, 3, 7))],
)
def test_crop_equals_numpy_slicing_at_every_corner_under_jit_and_vmap(shape, size):
    field = np.random.default_rng(0).normal(size=(*shape, 2)).astype("f4")
    starts = corners(shape, size)
    cropped = jax.jit(jax.vmap(lambda start: grid.crop(jnp.asarray(field), start, size)))(
        jnp.array(starts)
    )
    for start, result in zip(starts, cropped, strict=True):
        box = tuple(slice(s, s + m) for s, m in zip(start, size, strict=True))
        np.testing.assert_array_equal(result, field[box])


def test_random_start_reaches_every_position_and_no_other():
    starts = grid.random_starts(jax.random.key(0), 500, (3, 7), (5, 7))
    assert {tuple(s) for s in starts.tolist()} == {(0, 0), (1, 0), (2, 0)}


@pytest.mark.parametrize(
    ("size", "points", "centring", "expected"),
    [(65, 129, "node", 0.5), (64, 128, "cell", 0.5), (33, 129, "node", 0.25), (9, 9, "node", 1)],
)
def test_side_ratio(size, points, centring, expected):
    assert grid.side_ratio(size, points, centring) == expected


def test_ratio_is_the_geometric_mean_of_the_sides():
    assert grid.ratio((3, 5, 9), (9, 9, 9), ("node",) * 3) == pytest.approx((1 / 4 / 2) ** (1 / 3))


def test_ratio_is_the_quotient_of_lengths_read_off_the_coordinates():
    for centring in grid.CENTRINGS:
        full = grid.coordinates((12,), centrings=(centring,))
        step = full[1, 0] - full[0, 0]
        width = (5 if centring == "cell" else 4) * step
        assert grid.side_ratio(5, 12, centring) == pytest.approx(float(width))


def test_matching_size_gives_equal_side_ratios():
    size = grid.matching_size(33, (65, 129, 257), ("node",) * 3)
    assert size == (33, 65, 129)
    assert len(set(grid.side_ratios(size, (65, 129, 257), ("node",) * 3))) == 1


def test_rescaled_extent_of_a_crop_with_unequal_sides_keeps_area_and_aspect():
    extent = grid.rescaled_extent((1.0, 1.0), (3, 9), (9, 9), ("node", "node"))
    assert extent[0] * extent[1] == pytest.approx(1.0)
    assert extent[1] / extent[0] == pytest.approx(4.0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("stencil", "derivative"),
    [(grid.derivative, jnp.cos), (grid.second_derivative, lambda x: -jnp.sin(x))],
)
def test_stencils_are_second_order_up_to_the_ends(stencil, derivative, axis, x64):
    def error(points):
        x = grid.coordinates((points, points), centrings=("node", "node"))[..., axis]
        return jnp.abs(stencil(jnp.sin(x), axis, 1 / (points - 1)) - derivative(x)).max()

    assert jnp.log2(error(33) / error(65)) > 1.85


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: grid.crop(jnp.ones((5, 6, 1)), jnp.array([0, 0]), (6, 6)),
            r"box of \(6, 6\) points in a grid of \(5, 6\) points",
        ),
        (
            lambda: grid.random_starts(jax.random.key(0), 1, (3, 0), (5, 5)),
            r"box of \(3, 0\) points",
        ),
        (lambda: grid.check_box((3,), (5, 5)), "one entry for each of 2 axes"),
        (lambda: grid.side_ratio(10, 9, "node"), "between 2 and the axis's 9 points .* got 10"),
        (lambda: grid.side_ratio(1, 9, "node"), "between 2 and"),
        (lambda: grid.ratio((3,), (5, 5), ("node", "node")), "one entry for each axis"),
        (lambda: grid.spacing((1.0,), (5, 5), ("node", "node")), "one entry for each axis"),
        (lambda: grid.derivative(jnp.ones((2, 5)), 0, 0.1), "at least 3 points on axis 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
