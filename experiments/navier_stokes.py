"""Decaying turbulence, frame by frame, across Reynolds numbers: one row of the paper's Table 2.

Errors of one step from the true past, over all windows of the test trajectories (what the paper's
numbers can be compared with), and of rollouts: of the last frame, and the mean over all frames;
each on the whole window and on its central half, which is what the paper scores.

python -m experiments.navier_stokes --config=experiments/configs/navier_stokes.py:small,model=fno
python -m experiments.navier_stokes \
    --config=experiments/configs/navier_stokes.py:small,consistency=sub
python -m experiments.tables navier_stokes
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

from experiments import models, runner, training
from solvers.configs import navier_stokes as data_configs

EXPERIMENT = training.Experiment(
    equation="navier_stokes",
    data_config=data_configs.get_config,
    model_fields=models.fields,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
