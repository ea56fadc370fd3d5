"""Burgers equation across viscosities: one row of the paper's Table 1 or of its ablation.

The initial condition and both traces in time are given. The paper scores the central half.

python -m experiments.burgers --config=experiments/configs/burgers.py:small,model=sino
python -m experiments.burgers --config=experiments/configs/burgers.py:small,consistency=sub+super
python -m experiments.burgers --config=experiments/configs/burgers.py:small,frequency_embedding=no
python -m experiments.tables burgers
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

from experiments import models, runner, training
from solvers.configs import burgers as data_configs

EXPERIMENT = training.Experiment(
    equation="burgers",
    data_config=data_configs.get_config,
    model_fields=models.fields,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
