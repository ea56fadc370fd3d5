"""Darcy flow across scales: one row of the paper's Table 1 (or of the symmetry comparison).

python -m experiments.darcy --config=experiments/configs/darcy.py:small,model=fno
python -m experiments.darcy --config=experiments/configs/darcy.py:small,consistency=sub+super
python -m experiments.darcy --config=experiments/configs/darcy.py:small,symmetries=rotation
python -m experiments.tables darcy
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

import jax

from experiments import models, runner, training
from solvers import darcy
from solvers.configs import darcy as data_configs


def prior(config):
    """Two-phase media and smooth boundary values on any larger grid of the same spacing."""
    data = data_configs.get_config(config.data)
    scale, points = data.points[-1]
    cells_per_scale = (points - 1) / scale

    def sample(key, shape, scale):
        del scale  # traced; the grid says the same, and is static
        coefficient_key, boundary_key = jax.random.split(key)
        coefficient = darcy.sample_coefficient(
            coefficient_key, shape, (shape[0] - 1) / cells_per_scale
        )
        return coefficient[..., None], darcy.sample_boundary(boundary_key, shape)[..., None]

    return sample


def model_fields(config):
    """Darcy's equation has no parameter by which a model could be informed of the scale."""
    if config.model in models.SCALE_INFORMED:
        raise ValueError(f"model must be one of fno, uno, unet, cno, got {config.model!r}")
    return models.fields(config)


EXPERIMENT = training.Experiment(
    equation="darcy",
    data_config=data_configs.get_config,
    model_fields=model_fields,
    prior=prior,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
