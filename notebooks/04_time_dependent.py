# %% [markdown]
# # Time: Burgers in space-time, Navier-Stokes frame by frame
#
# Time can be an axis like the others and be cropped with them (Burgers), or the model advances
# frame by frame on its own predictions (Navier-Stokes). Both have a scaling law.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image
from matplotlib import animation

from sino_jax import data, equations, operator, rollout, subdomain, train
from sino_jax.train import recipe
from sino_jax.types import Instance
from solvers import burgers, navier_stokes

plt.rcParams.update({"figure.dpi": 75, "image.origin": "lower"})


def show(fields, titles, labels=("x", "y"), **style):
    figure, axes = plt.subplots(1, len(fields), figsize=(3.3 * len(fields), 2.8))
    for axis, field, title in zip(np.atleast_1d(axes), fields, titles, strict=True):
        image = axis.imshow(np.asarray(field).T, aspect="auto", **style)
        figure.colorbar(image, ax=axis, shrink=0.8)
        axis.set(title=title, xlabel=labels[0], ylabel=labels[1], xticks=[], yticks=[])


# %% [markdown]
# ## Burgers
#
# `u_t + (u²/2)_x = ν u_xx`, Re = 1/ν. The model sees half of a periodic
# interval, as one field over time and space: initial values and the values on both sides in time
# are given.

# %%
TIMES = tuple(np.linspace(0.04, 1.0, 25))


@jax.jit
def flow(key, reynolds):
    start = burgers.sample_initial(key, 1024)
    return burgers.window(burgers.solve(start, 1 / reynolds, TIMES))[:, ::4]


keys = jax.random.split(jax.random.key(0), 4)
examples = {re: flow(keys[0], re) for re in (100.0, 400.0, 1000.0)}
show(list(examples.values()), [f"Re = {re:g}" for re in examples], ("t", "x"))

# %% [markdown]
# ## The law
#
# Crop time and space by the same λ: the crop solves the equation with
# λ Re. `equations.check` tests that by substitution into the discrete residual.

# %%
equation = equations.get("burgers")
print(equations.check(equation, solution=examples[400.0][..., None], scale=400.0))

# %%
crop = subdomain.restrict(
    equation,
    None,
    examples[400.0][..., None],
    jnp.asarray(400.0),
    start=jnp.array([8, 20]),
    size=equation.crop_size(13, examples[400.0].shape),
)
reynolds = f"Re = {float(crop.scale):.0f}"
print(f"{crop.solution.shape[:2]} points of {examples[400.0].shape}: {reynolds}")
show([examples[400.0], crop.solution[..., 0]], ["Re = 400", f"crop, {reynolds}"], ("t", "x"))

# %% [markdown]
# ## Training at one Reynolds number

# %%
SAMPLES = 8 if QUICK else 64
EPOCHS = 1 if QUICK else 30
TESTED = (100, 400, 1000)
sets = {}
for split, scales, count in (("train", (400,), SAMPLES), ("test", TESTED, 16)):
    for re in scales:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(len(split)), re), count)
        solution = jax.vmap(flow, (0, None))(keys, float(re))
        sets |= data.from_arrays(
            "data/burgers", equation="burgers", solution=np.asarray(solution), scale=re, split=split
        )
sets


# %%
def train_burgers(name, model, consistency, **fields):
    config = recipe.recipe(
        [sets["train-400"]],
        [sets[f"test-{re}"] for re in TESTED],
        model=model,
        consistency=consistency,
    )
    config["epochs"] = EPOCHS
    config["model"] |= {"n_modes": (8, 12), "hidden_channels": 12, "n_layers": 3, **fields}
    train.fit(config, f"runs/burgers-{name}")
    return operator.load(f"runs/burgers-{name}")


trained = {"FNO": train_burgers("fno", "fno", "none")}

# %%
trained["SINO with crops"] = train_burgers("sino", "sino", "sub", kernel="tensor", log_scale=True)

# %%
print("Re (central half)".ljust(18) + "".join(f"{re:8}" for re in TESTED))
for name, one in trained.items():
    results = [one.meta["evaluation"][f"test-{re}"]["relative_l2_central_half"] for re in TESTED]
    print(name.ljust(18) + "".join(f"{100 * value:7.1f}%" for value in results))

# %%
some = sets["test-100"].examples([2])
predictions = [one.solve(None, some.solution, 100.0)[0, ..., 0] for one in trained.values()]
show([some.solution[0, ..., 0], *predictions], ["Re = 100", *trained], ("t", "x"))

# %% [markdown]
# The FNO was trained at Re = 400 and does not know Re: it predicts the solution at 400 for every
# Re. Crops are data at smaller Re. Both trainings are far from converged; `sino-jax run burgers
# --config=small` trains longer.

# %% [markdown]
# ## Navier-Stokes
#
# Decaying turbulence on a periodic square, of which the model sees a quarter: ten frames of
# vorticity in, the next one out. On a crop in space alone, time is not rescaled:
# λ² Re.

# %%
GRID, PAST, STEP = 64, 10, 0.1
LENGTH = 14 if QUICK else 30
NS_TIMES = tuple(1.0 + STEP * np.arange(LENGTH))


@jax.jit
def turbulence(key, reynolds):
    start = navier_stokes.sample_initial(key, GRID)
    frames = navier_stokes.solve(start, reynolds, NS_TIMES, cfl=2.0)
    return navier_stokes.vorticity_window(frames)


count = 2 if QUICK else 10
keys = jax.random.split(jax.random.key(5), count + 1)
flows = np.stack([turbulence(key, 300.0) for key in keys])
flows.shape  # trajectory, time, x, y

# %% [markdown]
# Windows of ten frames and the next as independent problems: frames are channels.


# %%
def windows(trajectories, stride):
    starts = range(0, LENGTH - PAST, stride)
    past = np.stack([one[t : t + PAST] for one in trajectories for t in starts])
    future = np.stack([one[t + PAST] for one in trajectories for t in starts])
    return np.moveaxis(past, 1, -1), future[..., None]


past, future = windows(flows[:-1], 2)
made = data.from_arrays(
    "data/ns", equation="navier_stokes", coefficient=past, solution=future, scale=300, split="train"
)
past, future = windows(flows[-1:], 1)
made |= data.from_arrays(
    "data/ns", equation="navier_stokes", coefficient=past, solution=future, scale=300, split="test"
)
made

# %%
config = recipe.recipe([made["train-300"]], [made["test-300"]], model="sino_u", consistency="sub")
config["epochs"] = 1 if QUICK else 10
config["model"] |= {"n_modes": (8, 8), "hidden_channels": 8, "n_layers": 2, "n_levels": 2}
train.fit(config, "runs/ns")
advance = operator.load("runs/ns")
advance

# %% [markdown]
# ## A rollout
#
# Each prediction becomes part of the next step's past.

# %%
steps = LENGTH - PAST
begin = Instance(jnp.asarray(np.moveaxis(flows[-1:, :PAST], 1, -1)), None, jnp.array([300.0]))
predicted = rollout.rollout(
    jax.jit(advance.apply_fn), advance.params, begin, equation=advance.equation, steps=steps
)
truth = np.moveaxis(flows[-1, PAST:], 0, -1)
errors = np.linalg.norm(predicted[0] - truth, axis=(0, 1)) / np.linalg.norm(truth, axis=(0, 1))
still = np.linalg.norm(flows[-1, PAST - 1, ..., None] - truth, axis=(0, 1)) / np.linalg.norm(
    truth, axis=(0, 1)
)

# %%
figure, axis = plt.subplots(figsize=(5, 3))
axis.plot(1 + np.arange(steps), 100 * errors, "o-", label="rollout")
axis.plot(1 + np.arange(steps), 100 * still, "--", label="the last known frame, kept")
axis.set(xlabel="frames ahead", ylabel="relative L2 error (%)", ylim=(0, None))
axis.legend()
plt.show()

# %% [markdown]
# After such a short training persistence, the last known frame, is better for a few frames;
# `sino-jax run navier_stokes --config=small` trains longer. As an animation: the flow through the
# sides of the window is unknown to the model, and dominates the error after a few frames.

# %%
figure, axes = plt.subplots(1, 2, figsize=(5, 2.7))
limit = float(np.abs(truth).max())
style = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
images = [axis.imshow(truth[..., 0].T, **style) for axis in axes]
for axis, title in zip(axes, ("solver", "model")):
    axis.set(title=title, xticks=[], yticks=[])


def draw(frame):
    images[0].set_data(truth[..., frame].T)
    images[1].set_data(np.asarray(predicted[0, ..., frame]).T)


animation.FuncAnimation(figure, draw, frames=min(steps, 12)).save(
    "rollout.gif", writer=animation.PillowWriter(fps=4), dpi=50
)
plt.close(figure)
Image("rollout.gif")
