"""Losses: relative errors and scale-consistency. Each returns one value per example."""

from sino_jax.loss.relative import relative_h1, relative_l2, relative_l2_central_half

__all__ = ["relative_h1", "relative_l2", "relative_l2_central_half"]
