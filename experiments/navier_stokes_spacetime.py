"""Decaying turbulence on space-time windows across Reynolds numbers: the table of the appendix.

python -m experiments.navier_stokes_spacetime \
    --config=experiments/configs/navier_stokes_spacetime.py:small,model=fno
python -m experiments.navier_stokes_spacetime \
    --config=experiments/configs/navier_stokes_spacetime.py:small,consistency=sub,smallest_crop=32
python -m experiments.tables navier_stokes_spacetime
"""

from sino_jax import runtime

if __name__ == "__main__":
    runtime.use_tuned_allocator()  # may start the process again: before imports that take seconds

from experiments import models, runner, training
from solvers.configs import navier_stokes_spacetime as data_configs


def model_fields(config):
    if config.model not in ("fno", "sino"):
        raise ValueError(f"model must be fno or sino, got {config.model!r}")
    return models.fields(config)


EXPERIMENT = training.Experiment(
    equation="navier_stokes_spacetime",
    data_config=data_configs.get_config,
    model_fields=model_fields,
)

if __name__ == "__main__":
    runner.main(EXPERIMENT)
