"""The picture of the idea on the front page: one Helmholtz solution, and the problem on a crop.

    python -m experiments.idea --out=docs/images/idea.png

The field on the right is not cut out of the one on the left: it is solved anew, with the cropped
coefficient, the boundary values on the crop and the rescaled wave number. The caption gives the
difference of the two, which is round-off.
"""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from sino_jax import runtime, subdomain
from sino_jax.equations import get
from solvers import helmholtz

WAVE_NUMBER, POINTS, START, SIZE = 25.0, 129, (58, 18), 53


def draw(path: pathlib.Path) -> pathlib.Path:
    """Solves both problems and writes the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import patches, pyplot

    instance = helmholtz.sample(jax.random.key(3), POINTS, WAVE_NUMBER)
    coefficient, solution = instance.coefficient, instance.solution
    local = subdomain.restrict(
        get("helmholtz"),
        coefficient[..., None],
        solution[..., None],
        jnp.asarray(WAVE_NUMBER),
        start=jnp.array(START),
        size=(SIZE, SIZE),
    )
    anew = helmholtz.solve(local.coefficient[..., 0], local.scale, dirichlet=local.boundary[..., 0])
    difference = np.linalg.norm(anew - local.solution[..., 0]) / np.linalg.norm(anew)

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(7.2, 3.7), constrained_layout=True)
    limit = float(np.abs(solution.real).max())
    style = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "origin": "lower"}
    side, unit = SIZE - 1, POINTS - 1
    left.imshow(np.asarray(solution.real).T, extent=(0, 1, 0, 1), **style)
    box = (START[0] / unit, START[1] / unit)
    left.add_patch(
        patches.Rectangle(box, side / unit, side / unit, fill=False, linewidth=2.5, color="black")
    )
    right.imshow(np.asarray(anew.real).T, extent=(0, 1, 0, 1), **style)
    left.set_title(rf"solution $u$, wave number $k={WAVE_NUMBER:g}$", fontsize=12)
    right.set_title(
        rf"solved anew: $a|_{{\hat\Omega}},\ u|_{{\partial\hat\Omega}},\ "
        rf"\lambda k={float(local.scale):.3g}$",
        fontsize=12,
    )
    for axes in (left, right):
        axes.set(xticks=[], yticks=[])
    for spine in right.spines.values():
        spine.set_linewidth(2.5)
    for top in (0, 1):  # from the crop to the picture of it
        ends = ((box[0] + side / unit, box[1] + top * side / unit), (0, top))
        line = patches.ConnectionPatch(
            *ends, "data", "data", axesA=left, axesB=right, color="black", linestyle=":"
        )
        figure.add_artist(line)
    figure.suptitle(
        f"the same solution (relative difference {difference:.0e})", y=-0.04, fontsize=12
    )
    figure.savefig(path, dpi=160, bbox_inches="tight")
    pyplot.close(figure)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("idea.png"))
    jax.config.update("jax_enable_x64", True)  # the difference is that of round-off
    print(draw(parser.parse_args().out))


if __name__ == "__main__":
    runtime.prepare()
    main()
