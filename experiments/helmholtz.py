"""Helmholtz equation across wave numbers: one row of the paper's Table 2 or of its ablation.

python -m experiments.helmholtz --config=experiments/configs/helmholtz.py:small,model=sino_u
python -m experiments.helmholtz \
    --config=experiments/configs/helmholtz.py:small,consistency=sub+super
python -m experiments.helmholtz --config=experiments/configs/helmholtz.py:small,scale_informed=no
python -m experiments.tables helmholtz
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

import jax

from experiments import models, runner, training
from solvers import helmholtz
from solvers.configs import helmholtz as data_configs


def prior(config):
    """Media as in the data, and traces of random waves; the wave number grows with the grid."""
    del config  # the media are alike at every wave number

    def sample(key, shape, scale):
        coefficient_key, boundary_key = jax.random.split(key)
        coefficient = helmholtz.sample_coefficient(coefficient_key, shape)
        boundary = helmholtz.sample_boundary(boundary_key, shape, scale)
        return coefficient[..., None], boundary[..., None]

    return sample


EXPERIMENT = training.Experiment(
    equation="helmholtz",
    data_config=data_configs.get_config,
    model_fields=models.fields,
    prior=prior,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
