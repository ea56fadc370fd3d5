"""The theorem's terms against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sino_jax.diagnostics import theorem
from sino_jax.types import Instance


def first_side_plus(params, inputs, scale):
    """The values on the first side, shifted: exact for constant solutions if not shifted."""
    return inputs[..., 1:2] + params


def constant_problems():
    ones = jnp.ones((2, 17, 13, 1))
    return Instance(ones, None, jnp.ones(2), ones * jnp.array([1.0, 0.5]).reshape(2, 1, 1, 1))


@pytest.mark.parametrize("shift", [0.0, 0.25])
def test_a_constant_shift_is_the_error_everywhere(shift):
    terms = jax.jit(
        lambda params, instance: theorem.varied_terms(
            first_side_plus, params, instance,
            equation="darcy", size=9, key=jax.random.key(0), draws=3,
        )
    )(shift, constant_problems())  # fmt: skip
    np.testing.assert_allclose(terms.error, [shift, shift], atol=1e-6)
    # The model shifts its own restricted prediction once more.
    np.testing.assert_allclose(terms.self_consistency, [shift, shift], atol=1e-6)
    # The boundary of the unit square has length four.
    np.testing.assert_allclose(terms.boundary, [2 * shift, 2 * shift], atol=1e-6)
    alone = theorem.error(first_side_plus, shift, constant_problems(), equation="darcy")
    np.testing.assert_allclose(alone, terms.error, atol=1e-6)


def test_self_consistency_takes_the_worst_sub_domain():
    """A model that is wrong where the coefficient is marked, on sub-domains with a mark."""

    def wrong_at_marks(params, inputs, scale):
        marked = jnp.max(inputs[..., :1], axis=(1, 2, 3), keepdims=True)
        small = inputs.shape[1] < 17
        return inputs[..., 1:2] + marked * (0.5 if small else 0.0)

    ones = jnp.ones((1, 17, 17, 1))
    marked = Instance(jnp.zeros_like(ones).at[0, 3, 3].set(1.0), None, jnp.ones(1), ones)
    found = [
        float(
            theorem.varied_terms(
                wrong_at_marks, None, marked,
                equation="darcy", size=13, key=jax.random.key(0), draws=draws,
            ).self_consistency[0]
        )
        for draws in (1, 8)
    ]  # fmt: skip
    assert found[0] in (0.0, 0.5)
    assert found[1] == 0.5


def test_draws_must_be_positive():
    with pytest.raises(ValueError, match="draws must be at least 1"):
        theorem.varied_terms(
            first_side_plus, 0.0, constant_problems(),
            equation="darcy", size=9, key=jax.random.key(0), draws=0,
        )  # fmt: skip
