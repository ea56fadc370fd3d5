"""What the paper's Navier-Stokes data costs here: hours for each data set of the preset `paper`.

    python -m benchmarks flow_data

A trajectory is simulated twice from its first moment, over a short and over a longer interval; the
difference of the times is the cost of simulated time, in double precision as data is made. The flow
decays, so that later steps are longer: hours are upper bounds. Both programs are compiled before
they are timed.
"""

import json
import math
import pathlib
import time

import jax
import jax.numpy as jnp

from solvers import generate, navier_stokes
from solvers.configs import navier_stokes as configs

# Steps of an interval, about: at most so many give the times that are compared.
STEPS = (8, 40)
RESULT = pathlib.Path("results/benchmarks/flow_data.json")


def seconds(points: int, reynolds: float, cfl: float) -> tuple[float, float]:
    """Seconds for a unit of simulated time, and steps in it."""
    initial = navier_stokes.sample_initial(jax.random.key(0), points)
    velocity = jnp.abs(navier_stokes.velocity(initial))
    # max(|u| + |v|) times the largest kept wave number, that of a third of the points.
    rate = float(jnp.max(jnp.sum(velocity, axis=-1)) * 2 * math.pi * points / 3) / cfl

    def timed(steps: int) -> float:
        start = time.monotonic()
        jax.block_until_ready(navier_stokes.simulate(initial, reynolds, [steps / rate], cfl=cfl))
        return time.monotonic() - start

    for steps in STEPS:  # compiles
        timed(steps)
    taken = [timed(steps) for steps in STEPS]
    return (taken[1] - taken[0]) / (STEPS[1] - STEPS[0]) * rate, rate


def main() -> None:
    config, rows = configs.get_config("paper"), {}
    with jax.enable_x64(True):
        for name, settings in generate.data_sets(config).items():
            reynolds, points = float(settings["scale"]), settings["points"]
            cost, rate = seconds(points, reynolds, settings["cfl"])
            units = settings["burn_in"] + settings["dt"] * settings["frames"]
            rows[name] = {
                "points": points,
                "trajectories": settings["samples"],
                "milliseconds_per_step": 1000 * cost / rate,
                "steps_per_unit": rate,
                "hours": settings["samples"] * units * cost / 3600,
            }
            print(
                f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in rows[name].items())
            )
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
