"""A trained operator for users: load it, solve with it, refine, and estimate the error."""

from sino_jax.operator.loading import load
from sino_jax.operator.operator import POINTS_PER_CALL, Operator
from sino_jax.operator.pretrained import available

__all__ = ["POINTS_PER_CALL", "Operator", "available", "load"]
