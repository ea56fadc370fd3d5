"""Do outputs on finer and finer grids approach one another? Random weights, smooth periodic inputs.

    python -m benchmarks resolution_freedom

For each model the table gives the relative difference, at common points, between its outputs on a
grid and on 256². The convolutional models work on their own grid of 64² and only interpolate.
"""

import json
import math
import pathlib
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import models

RESULTS = pathlib.Path("results/benchmarks/resolution_freedom.json")
GRIDS = ((64, 64), (96, 80), (128, 128))
FINEST = 256
_OPERATOR = dict(n_modes=(16, 16), hidden_channels=32, out_channels=1, coordinates=False)
_CONVOLUTION = dict(hidden_channels=16, out_channels=1, coordinates=False, periodic=True)
VARIANTS = {
    "FNO": dict(name="fno", **_OPERATOR),
    "UNO": dict(name="uno", **_OPERATOR),
    "SINO": dict(name="sino", **_OPERATOR),
    "SINO, untruncated": dict(name="sino", truncated=False, **_OPERATOR),
    "SINO, untruncated, with biases": dict(
        name="sino", truncated=False, kernel_bias=True, **_OPERATOR
    ),
    "SINO-U": dict(name="sino_u", **_OPERATOR),
    "SINO-U with biases": dict(name="sino_u", kernel_bias=True, **_OPERATOR),
    "CNO": dict(name="cno", **_CONVOLUTION),
    "UNet": dict(name="unet", n_levels=4, **_CONVOLUTION),
    "FNO-UNet": dict(name="fno_unet", n_levels=4, n_modes=(16, 16), **_CONVOLUTION),
}


def main() -> None:
    table = {label: differences(fields) for label, fields in VARIANTS.items()}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    names = [f"{n} × {m}" for n, m in GRIDS]
    print(f"| against {FINEST}² | {' | '.join(names)} |\n|---|---|---|---|")
    for label, errors in table.items():
        print(f"| {label} | {' | '.join(f'{error:.1e}' for error in errors)} |")


def differences(
    fields: Mapping, grids: Sequence[tuple[int, int]] = GRIDS, *, finest: int = FINEST
) -> list[float]:
    """Relative differences to the finest grid at common points, for each of `grids`."""
    model = models.build({"centring": "cell", **fields})
    scale = jnp.array([3.0])
    variables = jax.jit(model.init)(jax.random.key(1), smooth_fields(32, 32), scale)
    apply = jax.jit(model.apply)
    limit = apply(variables, smooth_fields(finest, finest), scale)
    errors = []
    for shape in grids:
        common = [math.gcd(n, finest) for n in shape]
        here = tuple(slice(None, None, n // c) for n, c in zip(shape, common, strict=True))
        there = tuple(slice(None, None, finest // c) for c in common)
        outputs = apply(variables, smooth_fields(*shape), scale)[0][here]
        reference = limit[0][there]
        errors.append(float(jnp.linalg.norm(outputs - reference) / jnp.linalg.norm(reference)))
    return errors


def smooth_fields(n: int, m: int) -> jax.Array:
    """One example with three smooth periodic channels, ``[1, n, m, 3]``."""
    x, y = np.meshgrid(np.arange(n) / n, np.arange(m) / m, indexing="ij")
    waves = [
        np.exp(np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y)),
        np.cos(2 * np.pi * (2 * x - y)),
        np.sin(2 * np.pi * (x + 3 * y)),
    ]
    return jnp.asarray(np.stack(waves, axis=-1)[None], jnp.float32)
