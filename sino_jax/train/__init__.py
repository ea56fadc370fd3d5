"""Training: one `fit(config, workdir)` that a laptop and a cluster run unchanged."""

from sino_jax.train.trainer import fit, run

__all__ = ["fit", "run"]
