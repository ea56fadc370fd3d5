"""How far apart are solutions of the Burgers equation at different viscosities? No training in it.

    python -m experiments.distances burgers
    python -m experiments.distances burgers --law=strong --samples=64

A model that ignores the viscosity can do no better than to predict u at the one it was trained on,
1/400. Its error at Re = 1/ν is then ‖u₄₀₀ - u_ν‖/‖u_ν‖ on the central half, which is compared with
the paper's models that do not know ν: that is how the law of the initial conditions was found. The
spread over samples is wide, hence the standard error beside the mean. For the other equations, and
for the samples of a test set, see `experiments.baselines`.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments import paper
from sino_jax import equations, loss, runtime
from solvers import burgers, recipes
from solvers.configs import burgers as data_configs

TRAINED = 400.0
BLOCK = 32  # samples at once


def solutions(
    keys: jax.Array, reynolds: float, *, law: str, points: int, preset: str
) -> np.ndarray:
    """What models see of the solutions from these keys, ``[sample, t, x, 1]``."""
    times = recipes.burgers_times(data_configs.get_config(preset).to_dict())

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def solve(key, nu):
        initial = burgers.sample_initial(key, points, law=law)
        return burgers.window(burgers.simulate(initial, nu, times, cfl=2.0).frames)[..., None]

    blocks = [keys[i : i + BLOCK] for i in range(0, len(keys), BLOCK)]
    return np.concatenate([solve(block, 1 / reynolds) for block in blocks])


def distances(
    *, law: str, samples: int, points: int, preset: str = "small", seed: int = 0
) -> dict[float, tuple[float, float]]:
    """For each Re of the test data, mean and standard error of the distance to u at `TRAINED`."""
    axes = equations.get("burgers").spatial_axes
    solve = functools.partial(solutions, law=law, points=points, preset=preset)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), samples)
        reference = solve(keys, TRAINED)
        found = {}
        for reynolds in data_configs.get_config(preset).test_scales:
            if reynolds == TRAINED:
                continue
            errors = loss.relative_l2_central_half(
                jnp.asarray(reference), jnp.asarray(solve(keys, reynolds)), axes=axes
            )
            found[reynolds] = (float(errors.mean()), float(errors.std() / samples**0.5))
    return found


def report(found: dict[float, tuple[float, float]]) -> str:
    head = " | ".join(f"Re {reynolds:g}" for reynolds in found)
    cells = [f"{100 * mean:.1f} ± {100 * error:.1f}" for mean, error in found.values()]
    lines = [
        "Distance to the solution at Re = 400 in percent, central half, ± standard error",
        f"| | {head} |",
        "|---|" + "---|" * len(found),
        f"| distance | {' | '.join(cells)} |",
    ]
    for row in ("FNO", "UNO", "CNO"):
        published = dict(zip(paper.BURGERS.columns, paper.BURGERS.rows[row], strict=True))
        cells = [f"{published[re]:.1f}" if re in published else "–" for re in found]
        lines.append(f"| *{row}, paper* | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    runtime.prepare()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("equation", choices=["burgers"])
    parser.add_argument("--law", choices=sorted(burgers.INITIAL_LAWS), default="mild")
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--points", type=int, default=512, help="of the periodic interval")
    options = parser.parse_args()
    print(report(distances(law=options.law, samples=options.samples, points=options.points)))


if __name__ == "__main__":
    main()
