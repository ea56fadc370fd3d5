"""Losses: relative errors and scale-consistency. Each returns one value per example."""

from sino_jax.loss.composite import training_loss, training_terms
from sino_jax.loss.crops import CropDraw, draw_crops
from sino_jax.loss.infinitesimal import infinitesimal_scale_consistency
from sino_jax.loss.relative import relative_h1, relative_l2, relative_l2_central_half
from sino_jax.loss.scale_consistency import scale_consistency

__all__ = [
    "CropDraw",
    "draw_crops",
    "infinitesimal_scale_consistency",
    "relative_h1",
    "relative_l2",
    "relative_l2_central_half",
    "scale_consistency",
    "training_loss",
    "training_terms",
]
