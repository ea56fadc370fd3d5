# %% [markdown]
# # Test time: using a trained operator
#
# Load an operator, solve with it on any grid and scale, refine large problems by domain
# decomposition, ask how wrong it may be, solve to a tolerance, and pass it on.

# %%
import functools
import os
import pathlib
import subprocess
import sys
import warnings

import jax
import jax.export
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from sino_jax import loss, operator
from solvers import darcy

plt.rcParams.update({"figure.dpi": 75, "image.origin": "lower"})


@functools.partial(jax.jit, static_argnums=(1, 2))
def problems(key, count, scale):
    """Darcy problems on 16 cells for a unit of scale: coefficient and solution."""
    made = jax.vmap(lambda k: darcy.sample(k, 16 * scale + 1, scale))(jax.random.split(key, count))
    return made.coefficient[..., None], made.solution[..., None]


def show(fields, titles, **style):
    figure, axes = plt.subplots(1, len(fields), figsize=(3.2 * len(fields), 3))
    for axis, field, title in zip(axes, fields, titles, strict=True):
        figure.colorbar(axis.imshow(np.asarray(field)[..., 0].T, **style), ax=axis, shrink=0.8)
        axis.set(title=title, xticks=[], yticks=[])


# %% [markdown]
# ## An operator
#
# Some operators come with the package. This one is an FNO that corrects the harmonic extension of
# the boundary values, trained with crops on 128 samples of scale 4. Its model card has data,
# scales and errors. `load` also takes the directory of a run of yours.

# %%
LARGE = 8 if QUICK else 16
trained = operator.load("darcy")
trained

# %%
print((operator.pretrained.directory("darcy") / "README.md").read_text())

# %% [markdown]
# `save` writes a small directory, to be copied anywhere: weights and JSON, without code or
# optimiser state.

# %%
trained.save("darcy-operator")
for entry in os.scandir("darcy-operator"):
    print(f"{entry.name}: {entry.stat().st_size / 1000:.0f} kB")

# %% [markdown]
# ## Solve
#
# NumPy or JAX arrays, one problem or many, on any rectangular grid. Of the boundary field only the
# values on the sides are read. A scale outside of the training range gives a warning.

# %%
trained.scales, trained.scale_range

# %%
coefficient, truth = problems(jax.random.key(1), 2, LARGE)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    predicted = trained.solve(coefficient, truth, float(LARGE))
print(*{str(one.message) for one in caught}, sep="\n")
print("relative L2 errors (%):", 100 * loss.relative_l2(predicted, truth))

# %%
show([coefficient[0], truth[0], predicted[0] - truth[0]], ["medium", "solution", "error"])

# %% [markdown]
# ## Refine
#
# A solution restricted to a patch solves the problem on the patch. So cover the domain by
# overlapping patches of the size that the operator was trained on, solve on each with the boundary
# values of the last estimate, blend, and repeat. Then the operator only sees scales that it was
# trained on. Here it more than halves the error of both problems. That is not guaranteed, since
# every solve on a patch has an error of its own.

# %%
refined = trained.refine_history(coefficient, truth, float(LARGE), iterations=2 if QUICK else 6)
print("relative L2 errors (%):", 100 * loss.relative_l2(refined.solution, truth))
print("relative change of each iteration:", np.round(refined.change[:, 0], 4))

# %%
limit = float(jnp.abs(predicted[0] - truth[0]).max())
show(
    [predicted[0] - truth[0], refined.solution[0] - truth[0]],
    ["error of the prediction", "error after refinement"],
    vmin=-limit,
    vmax=limit,
    cmap="RdBu_r",
)

# %%
faster = trained.refine_history(
    coefficient, truth, float(LARGE), iterations=2 if QUICK else 6, memory=3
)
figure, axis = plt.subplots(figsize=(5, 3))
axis.semilogy(refined.change[:, 0], "o-", label="as in the paper")
axis.semilogy(faster.change[:, 0], "s-", label="memory=3 (Anderson)")
axis.set(xlabel="iteration", ylabel="relative change")
axis.legend()
plt.show()

# %% [markdown]
# ## How wrong may it be?
#
# The residual tells, with no solution at hand. For Darcy flow `bound` is guaranteed; a few
# iterations of conjugate gradients make it sharp.

# %%
estimate = trained.estimate_error(
    coefficient, truth, float(LARGE), solution=refined.solution, iterations=4
)
print("error (%)           ", 100 * loss.relative_l2(refined.solution, truth))
print("guaranteed bound (%)", 100 * estimate.bound)

# %% [markdown]
# ## Right to a tolerance
#
# A known linear equation need not end with a prediction: it is the start of a Krylov iteration.

# %%
solved = trained.solve(coefficient, truth, float(LARGE), tolerance=1e-4)
print("iterations:", solved.iterations, " reached:", solved.reached)
print("relative L2 errors:", loss.relative_l2(jnp.asarray(solved.solution, truth.dtype), truth))

# %% [markdown]
# ## Without Python
#
# From file to file, for many problems in batches of bounded memory. In a shell this is `sino-jax
# predict darcy-operator input.npz output.npz --refine=2`.

# %%
np.savez("input.npz", coefficient=coefficient, boundary=truth, scale=float(LARGE))
command = f"{sys.executable} -m sino_jax predict darcy-operator input.npz output.npz --refine=2"
print(subprocess.check_output(command.split(), text=True))

# %% [markdown]
# ## Without this package
#
# `export` writes `solve` on one grid as a program (StableHLO) for any number of problems: JAX alone
# runs it.

# %%
trained.export("darcy.bin", grid=coefficient.shape[1:3], platforms=("cpu",))
program = jax.export.deserialize(bytearray(pathlib.Path("darcy.bin").read_bytes()))
again = program.call(coefficient, truth, jnp.full(2, float(LARGE)))
print("largest difference:", float(jnp.abs(again - predicted).max()))
