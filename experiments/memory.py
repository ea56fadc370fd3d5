"""What a training step of an experiment needs, without data and without running it.

    python -m experiments.memory helmholtz paper,model=sino_u,consistency=sub+super

compiles the step for the device at hand and prints the memory that the compiler reserves for it, at
the largest training grid, sub-domain and super-domain of the config: no step needs more. Compiling
takes minutes for the largest configs. ``train.points_at_once=N`` bounds the memory, see
`sino_jax.train.gradient`; the presets ``paper`` have it where a step would need more than 14 GiB,
and ``train.points_at_once=0`` tells what it needs without.
"""

import argparse
import importlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced
from ml_collections import ConfigDict

from experiments import naming, tables, training
from sino_jax import equations, runtime
from sino_jax.equations import Equation
from sino_jax.loss import crops, training_terms
from sino_jax.models import network
from sino_jax.train import config as training_configs
from sino_jax.train import optimizer, parallel
from sino_jax.train.gradient import SumOfTerms
from sino_jax.train.step import Control, init_state, make_step
from sino_jax.types import Instance
from solvers import generate, recipes


def trace(experiment: training.Experiment, config: ConfigDict) -> Traced:
    """The training step of a config at its largest, traced for abstract arrays."""
    equation = equations.get(experiment.equation)
    settings = training_configs.complete(training.training_config(experiment, config, {}))
    model, apply_fn = network.build(settings.model, equation, None)
    grid = largest_grid(experiment, config)
    batch = abstract_batch(experiment, config, equation, grid)
    options = {
        **training.loss_options(config),
        "super_prior": experiment.prior(config),
    }
    sizes = crops.fitting_sizes(options["sub_sizes"], grid)
    points = {size: math.prod(equation.crop_size(size, grid)) for size in sizes}
    options["sub_sizes"] = [max(points, key=points.get)] if points else []
    options["super_rates"] = options["super_rates"] and [max(options["super_rates"])]

    def terms(batch, key, progress):
        return training_terms(
            apply_fn, batch, equation=equation, key=key, progress=progress, **options
        )

    adam = optimizer.build(settings.optimizer, total_steps := 1000)
    step = make_step(
        SumOfTerms(terms),
        adam,
        parallel.data_mesh(),
        total_steps=total_steps,
        accumulate=settings.accumulate,
        points_at_once=settings.points_at_once,
    )

    def new_state():
        params = network.init(model, equation, grid, jax.random.key(0))
        return init_state(params, adam, jax.random.key(1), averaged=False)

    devices = jax.ShapeDtypeStruct((jax.device_count(),), jnp.int32)
    weight = jax.ShapeDtypeStruct((config.batch_size,), jnp.float32)
    return step.trace(jax.eval_shape(new_state), (batch, weight), Control(devices, devices))


def cost(experiment: training.Experiment, config: ConfigDict) -> dict[str, int]:
    """Parameters, bytes that the compiler reserves, and those of them for the step itself."""
    traced = trace(experiment, config)
    parameters = sum(math.prod(x.shape) for x in jax.tree.leaves(traced.args_info[0][0].params))
    memory = traced.lower().compile().memory_analysis()
    kept = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    step = memory.temp_size_in_bytes
    return {"parameters": parameters, "bytes": kept + step, "step_bytes": step}


def largest_grid(experiment: training.Experiment, config: ConfigDict) -> tuple[int, ...]:
    """Points of the largest training example on each axis of its solution."""
    settings = generate.data_sets(experiment.data_config(config.data))
    grids = []
    for name, chosen in settings.items():
        if name.startswith("train"):
            recipe = recipes.get(chosen)
            frames = recipe.window and recipe.window["frames"] == "axis"
            time = (recipe.window["horizon"],) if frames else ()
            grids.append((*recipe.grid["shape"], *time))
    return max(grids, key=math.prod)


def abstract_batch(
    experiment: training.Experiment, config: ConfigDict, equation: Equation, grid: tuple[int, ...]
) -> Instance:
    """Shapes and types of a batch as `sino_jax.data` gives it."""
    real = np.dtype(experiment.data_config(config.data).dtype)
    solution = np.result_type(real, np.complex64) if equation.complex_valued else real

    def array(channels: int, dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((config.batch_size, *grid, channels), dtype)

    coefficients = equation.coefficient_channels
    return Instance(
        coefficient=array(coefficients, real) if coefficients else None,
        boundary=None,
        scale=jax.ShapeDtypeStruct((config.batch_size,), jnp.float32),
        solution=array(equation.solution_channels, solution),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=tables.PAPER)
    parser.add_argument("config", help="preset,field=value as in the experiment's own command")
    arguments = parser.parse_args()
    experiment = importlib.import_module(f"experiments.{arguments.experiment}").EXPERIMENT
    configs = importlib.import_module(f"experiments.configs.{arguments.experiment}")
    try:
        config = configs.get_config(arguments.config)
    except ValueError as error:
        parser.exit(1, f"error: {error}\n")
    needed = cost(experiment, config)
    points = training.training_config(experiment, config, {}).get("points_at_once", 0)
    print(
        f"{arguments.experiment} {arguments.config}: {naming.label(config)} on "
        f"{'x'.join(map(str, largest_grid(experiment, config)))}, batch {config.batch_size}, "
        f"{f'{points:,} points' if points else 'all points'} at once: "
        f"{needed['parameters']:,} parameters, "
        f"{needed['bytes'] / 2**30:.2f} GiB, of which "
        f"{needed['step_bytes'] / 2**30:.2f} GiB for the step itself"
    )


if __name__ == "__main__":
    runtime.use_compilation_cache()
    main()
