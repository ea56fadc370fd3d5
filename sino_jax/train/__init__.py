"""Training: one `fit(config, workdir)` that a laptop and a cluster run unchanged."""

from sino_jax.train.fitting import fit, run

__all__ = ["fit", "run"]
