"""How wrong predictions are, measured without solutions: residuals, bounds, the theorem's terms."""

from sino_jax.base.elements import diffusion_load, residual_load
from sino_jax.diagnostics.residual import (
    ErrorBounds,
    boundary_error,
    darcy_error_bounds,
    dual_norm,
    residual_norm,
    self_consistency_error,
)

__all__ = [
    "ErrorBounds",
    "boundary_error",
    "darcy_error_bounds",
    "diffusion_load",
    "dual_norm",
    "residual_load",
    "residual_norm",
    "self_consistency_error",
]
