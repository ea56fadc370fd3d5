# %% [markdown]
# # Train on your own data
#
# From arrays to a table of errors and a prediction, without an experiment file. The page "Train
# on your own data" of the documentation has the same as commands.

# %%
import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

import sino_jax
from sino_jax import equations, train
from sino_jax.train import recipe

plt.rcParams.update({"figure.dpi": 75, "image.origin": "lower"})

# %% [markdown]
# ## 1. Arrays
#
# The output of your solver: `[sample, x, y]`, any rectangular grid that contains the boundary. Here
# a few lines of NumPy make Darcy problems: −∇·(a∇u) = 0 in media of smooth
# bumps, by finite differences and relaxation.

# %%
NX, NY, SAMPLES = (17, 13, 10) if QUICK else (33, 25, 80)
rng = np.random.default_rng(0)
x, y = np.meshgrid(np.linspace(0, 1, NX), np.linspace(0, (NY - 1) / (NX - 1), NY), indexing="ij")


def random_field(terms=6):
    waves = rng.normal(size=(terms, 2)) * 4
    phases, weights = rng.uniform(0, 2 * np.pi, terms), rng.normal(size=terms)
    return sum(w * np.cos(k[0] * x + k[1] * y + p) for w, k, p in zip(weights, waves, phases))


# %%
def your_solver(a, g, sweeps=3000):
    """Five points, harmonic means on the edges, red-black over-relaxation."""
    east, north = 2 / (1 / a[1:] + 1 / a[:-1]), 2 / (1 / a[:, 1:] + 1 / a[:, :-1])
    e, w, n, s = east[1:, 1:-1], east[:-1, 1:-1], north[1:-1, 1:], north[1:-1, :-1]
    u = g.copy()
    colour = np.add.outer(np.arange(NX - 2), np.arange(NY - 2)) % 2
    for sweep in range(sweeps):
        neighbours = e * u[2:, 1:-1] + w * u[:-2, 1:-1] + n * u[1:-1, 2:] + s * u[1:-1, :-2]
        mean = neighbours / (e + w + n + s)
        update = np.where(colour == sweep % 2, 1.8 * (mean - u[1:-1, 1:-1]), 0)
        u[1:-1, 1:-1] += update
    return u


coefficient = np.stack([np.exp(0.5 * random_field()) for _ in range(SAMPLES)])
solution = np.stack([your_solver(a, random_field()) for a in coefficient])
coefficient.shape, solution.shape

# %%
figure, axes = plt.subplots(1, 4, figsize=(12, 2.4))
fields = [coefficient[0], solution[0], coefficient[1], solution[1]]
for axis, field, title in zip(axes, fields, "auau"):
    figure.colorbar(axis.imshow(field.T), ax=axis)
    axis.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# ## 2. Data sets
#
# One directory for each split and scale. `scale` is the equation's parameter: wave number,
# Reynolds number; for Darcy flow, which has none, a label.

# %%
made = sino_jax.data.from_arrays(
    "data/mine",
    equation="darcy",
    coefficient=coefficient,
    solution=solution,
    scale=1.0,
    extent=(1.0, (NY - 1) / (NX - 1)),
    split={"train": 0.8, "val": 0.1, "test": 0.1},
)
made

# %% [markdown]
# Arrays that do not fit are refused before anything is written:

# %%
try:
    sino_jax.data.from_arrays(
        "data/wrong",
        equation="darcy",
        coefficient=coefficient[1:],
        solution=solution,
        scale=1.0,
    )
except ValueError as error:
    print(error)

# %% [markdown]
# The same from a file, on the command line (`sino-jax import npz …`; `hdf5` likewise):

# %%
np.savez("fields.npz", a=coefficient, p=solution)
command = (
    f"{sys.executable} -m sino_jax import npz fields.npz data/from_file "
    "--equation=darcy --map coefficient=a,solution=p --scale=1 --split=train=0.8,test=0.2"
)
print(subprocess.check_output(command.split(), text=True))

# %%
sino_jax.data.load("data/from_file/train-1")

# %% [markdown]
# ## 3. Training
#
# `recipe` chooses modes, width and the sizes of sub-domains from the equation and the grids.

# %%
tests = [made["val-1"], made["test-1"]]
preset = "tiny" if QUICK else "small"
config = recipe.recipe([made["train-1"]], tests, model="fno", preset=preset)
if not QUICK:
    config["epochs"] = 60
    config["model"] |= {"n_modes": (8, 8), "hidden_channels": 16, "n_layers": 3}
print(json.dumps(config, indent=1, default=str))

# %%
state = train.fit(config, "runs/mine")
state

# %% [markdown]
# After an interruption (the stop button, a full disk, a lost machine) the same cell resumes. If the
# run is finished, it returns at once.

# %%
state = train.fit(config, "runs/mine")

# %%
trained = sino_jax.operator.load("runs/mine")
for name, metrics in trained.meta["evaluation"].items():
    print(name, {metric: f"{100 * value:.2f} %" for metric, value in metrics.items()})

# %% [markdown]
# ## With and without scale-consistency

# %%
plain = {**config, "loss": {}}
train.fit(plain, "runs/plain")
without = sino_jax.operator.load("runs/plain")
for name, one in (("without crops", without), ("with crops", trained)):
    print(f"{name:14}", f"{100 * one.meta['evaluation']['test-1']['relative_l2']:.2f} %")

# %% [markdown]
# ## 4. Prediction

# %%
test = made["test-1"].examples([0])
predicted = trained.solve(test.coefficient, test.solution, 1.0)
figure, axes = plt.subplots(1, 3, figsize=(11, 2.6))
fields = [test.solution, predicted, predicted - test.solution]
for axis, field, title in zip(axes, fields, ("solution", "prediction", "difference")):
    figure.colorbar(axis.imshow(np.asarray(field)[0, ..., 0].T), ax=axis)
    axis.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# The operator also works on a part of the domain, with another shape:

# %%
part = (slice(None), slice(4, -4), slice(2, -4))
piece = trained.solve(test.coefficient[part], test.solution[part], trained.scales[0] * 0.75)
error = np.linalg.norm(piece - test.solution[part]) / np.linalg.norm(test.solution[part])
print(piece.shape, f"{100 * error:.2f} %")

# %% [markdown]
# ## When the loss applies
#
# It needs an equation whose restriction to a sub-domain is again a problem of the same family, and
# its scaling law. `equations.check` tests whether a law fits a residual on a field of yours
# (notebook 02 defines an equation).

# %%
field, medium = test.solution[0] + 0j, test.coefficient[0]
print(equations.check(equations.get("helmholtz"), solution=field, coefficient=medium, scale=7.0))
