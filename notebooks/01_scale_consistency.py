# %% [markdown]
# # Scale-consistency in pictures
#
# A solution of a partial differential equation, restricted to a part of its domain, is the
# solution of the rescaled equation on that part. A model of the solution operator should know
# that. This notebook shows what a Fourier neural operator for Darcy flow gains from it when there
# are few samples. Crop sizes are chosen below on validation problems; the test problems are used
# once, at the end. (Grid, width and number of epochs were found earlier, with other test problems
# in sight.) With one seed and 16 test problems for each scale it is an illustration; the tables of
# the repository have larger tests.

# %%
import functools
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import sino_jax
from sino_jax import data, equations, loss, operator, subdomain, train
from sino_jax.scale_range import ScaleWarning
from sino_jax.train import logging, recipe
from solvers import darcy

warnings.simplefilter("ignore", ScaleWarning)  # unseen scales are what this is about
plt.rcParams.update({"figure.dpi": 75, "image.origin": "lower"})

# %% [markdown]
# ## One problem
#
# Darcy flow, −∇·(a∇u) = 0 with u = g on the boundary. The medium *a* has two
# values, and grains whose size is a length: at scale 8 the unit square holds twice as many of
# them a side as at scale 4.


# %%
@functools.partial(jax.jit, static_argnums=(1, 2))
def problems(key, count, scale):
    """Random problems with their solutions by finite elements, 8 cells for a unit of scale."""
    keys = jax.random.split(key, count)
    return jax.vmap(lambda k: darcy.sample(k, 8 * scale + 1, scale))(keys)


def show(fields, titles, **style):
    figure, axes = plt.subplots(1, len(fields), figsize=(3.2 * len(fields), 3))
    for axis, field, title in zip(np.atleast_1d(axes), fields, titles, strict=True):
        figure.colorbar(axis.imshow(np.asarray(field).T, **style), ax=axis, shrink=0.8)
        axis.set(title=title, xticks=[], yticks=[])


one = problems(jax.random.key(0), 1, 8)
show([one.coefficient[0], one.solution[0]], ["medium $a$ (scale 8)", "solution $u$"])

# %% [markdown]
# ## The sentence
#
# Crop half of it: the medium, and the values of *u* on the crop's boundary. That is a problem of
# scale 4. Solve it *anew*, and compare with the crop of *u*.

# %%
equation = equations.get("darcy")
crop = subdomain.restrict(
    equation,
    one.coefficient[0, ..., None],
    one.solution[0, ..., None],
    one.scale[0],
    start=jnp.array([20, 10]),
    size=(33, 33),
)
anew = darcy.solve(crop.coefficient[..., 0], crop.boundary[..., 0])
difference = float(jnp.abs(anew - crop.solution[..., 0]).max())
print(f"scale of the crop: {float(crop.scale):g}; largest difference: {difference:.1e}")

# %%
show([crop.solution[..., 0], anew], ["crop of $u$", "the crop's problem, solved anew"])

# %% [markdown]
# So every sample holds many: each crop is another pair of data and solution, at another scale,
# free of charge. And a model that is right must agree with itself on crops, whether or not
# anybody knows the solution. `sino_jax.loss.scale_consistency` measures that for any model. A
# classical solver, passed as a "model", is consistent:


# %%
def solver(params, inputs, scale):
    coefficient, boundary = jax.vmap(equation.split)(inputs)
    return jax.vmap(darcy.solve)(coefficient[..., 0], boundary[..., 0])[..., None]


instance = sino_jax.types.Instance(
    one.coefficient[..., None], None, one.scale, one.solution[..., None]
)
loss.scale_consistency(solver, None, instance, equation="darcy", size=33, key=jax.random.key(1))

# %% [markdown]
# ## Few samples
#
# 64 samples of scale 4 to train on, validation problems at scales 3 and 6 to choose by, and test
# problems at scales 2 to 16, each on its own grid.

# %%
TRAIN = 8 if QUICK else 64
SCALES = (2, 4) if QUICK else (2, 4, 8, 16)
EPOCHS, FEW_EPOCHS = (2, 1) if QUICK else (200, 50)


def write(path, made, scale, split):
    return data.from_arrays(
        path,
        equation="darcy",
        coefficient=np.asarray(made.coefficient),
        solution=np.asarray(made.solution),
        scale=scale,
        split=split,
    )


sets = write("data", problems(jax.random.key(2), TRAIN, 4), 4, "train")
for number, split, scales in ((5, "val", (3, 6)), (6, "test", SCALES)):
    for scale in scales:
        key = jax.random.fold_in(jax.random.key(number), scale)
        sets |= write("data", problems(key, 16, scale), scale, split)
sets

# %% [markdown]
# ## The same model twice
#
# `recipe` makes a training config from data sets; everything in it can be changed. `fit` trains,
# and resumes if it is interrupted (try it: interrupt the cell, and run it again). Crops are
# squares of the given numbers of points a side, two of them for each sample and step; each size is
# compiled once.


# %%
def train_fno(crops, split, scales, epochs):
    """Without crops a plain FNO."""
    consistency = "sub" if crops else "none"
    evaluated = [sets[f"{split}-{scale}"] for scale in scales]
    config = recipe.recipe([sets["train-4"]], evaluated, model="fno", consistency=consistency)
    config["epochs"] = epochs
    if crops:
        config["loss"]["sub_sizes"] = crops
    config["model"] |= {"n_modes": (8, 8), "hidden_channels": 16, "n_layers": 3}
    workdir = "-".join(["runs/crops", *map(str, crops), split])
    train.fit(config, workdir)
    return operator.load(workdir)


def errors(trained):
    """In percent, by data set."""
    results = trained.meta["evaluation"]
    return {name: 100 * metrics["relative_l2"] for name, metrics in results.items()}


# %% [markdown]
# Which crops? A short training with each choice, and the validation problems decide.

# %%
CHOICES = ((9, 17), (17, 25))
tried = {crops: errors(train_fno(crops, "val", (3, 6), FEW_EPOCHS)) for crops in CHOICES}
CROPS = min(tried, key=lambda crops: sum(tried[crops].values()))
print(tried, "chosen:", CROPS, sep="\n")

# %% [markdown]
# Now without crops, and with the chosen ones:

# %%
plain = train_fno((), "test", SCALES, EPOCHS)

# %%
consistent = train_fno(CROPS, "test", SCALES, EPOCHS)
consistent

# %% [markdown]
# ## What it gives
#
# Relative L2 errors on problems that neither has seen, at the scale of the training data and at
# scales that were not in it.

# %%
before, after = (
    np.array([errors(trained)[f"test-{scale}"] for scale in SCALES])
    for trained in (plain, consistent)
)
print("scale     " + "".join(f"{scale:8}" for scale in SCALES))
print("FNO       " + "".join(f"{value:7.1f}%" for value in before))
print("with crops" + "".join(f"{value:7.1f}%" for value in after))
print("change    " + "".join(f"{value:+7.0f}%" for value in 100 * (after / before - 1)))

# %%
figure, axis = plt.subplots(figsize=(5, 3.2))
axis.semilogx(SCALES, before, "o-", label="FNO")
axis.semilogx(SCALES, after, "s-", label="FNO with crops")
axis.axvline(4, color="grey", linestyle=":")
axis.minorticks_off()
axis.set(xlabel="scale", ylabel="relative L2 error (%)", xticks=SCALES, xticklabels=SCALES)
axis.set_ylim(bottom=0)
axis.legend()
plt.show()

# %%
largest = SCALES[-1]
unseen = sets[f"test-{largest}"].examples([0])
predictions = [
    trained.solve(unseen.coefficient, unseen.solution, unseen.scale)[0, ..., 0]
    for trained in (plain, consistent)
]
limit = float(np.abs(predictions[0] - unseen.solution[0, ..., 0]).max())
show([unseen.solution[0, ..., 0]], [f"solution at scale {largest}"])
show(
    [prediction - unseen.solution[0, ..., 0] for prediction in predictions],
    ["error of the FNO", "error with crops"],
    vmin=-limit,
    vmax=limit,
    cmap="RdBu_r",
)

# %% [markdown]
# ## Why
#
# Crops multiply data. Without them the model memorises its 64 samples: its loss on the training
# data is far below its error on new data. With crops the gap is smaller.

# %%
figure, axis = plt.subplots(figsize=(5, 3.2))
for crops, label in (((), "FNO"), (CROPS, "FNO with crops")):
    lines = logging.read("-".join(["runs/crops", *map(str, crops), "test"]), "train")
    values = [line.get("supervised", line["loss"]) for line in lines]
    axis.semilogy([line["step"] for line in lines], values, label=label)
axis.set(xlabel="step", ylabel="loss on the training data")
axis.legend()
plt.show()

# %% [markdown]
# With more data there is less to gain. `config["model"]["base"] = "harmonic"` lets the same network
# correct the harmonic extension of the boundary values; notebook 05 uses such an operator. Notebook
# 02 has the loss in a pipeline of your own, notebook 03 an equation with a parameter that the model
# is informed of.
