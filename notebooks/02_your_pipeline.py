# %% [markdown]
# # The loss in your pipeline
#
# `sino_jax.loss.scale_consistency` is a pure function around any `apply_fn(params, inputs,
# scale)`. Here it is in four pipelines: plain JAX, Flax Linen, Flax NNX and Equinox. Take the one
# that is yours; each section stands alone after the data.

# %%
import dataclasses

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import optax
from flax import nnx

from sino_jax import equations, grid, loss, models, problem
from sino_jax.types import Instance

plt.rcParams.update({"figure.dpi": 75, "image.origin": "lower"})
STEPS = 5 if QUICK else 300
history = {}

# %% [markdown]
# ## Data
#
# Darcy flow through layers has a closed form: a = 1/(1 + cx), u = x + cx²/2 + y. An
# `Instance` is a batch of problems: `[batch, x, y, channel]`, and a scale for each.


# %%
def batch_of_problems(key, batch=8, points=33):
    x, y = jnp.moveaxis(grid.coordinates((points, points), centrings=("node", "node")), -1, 0)
    c = jax.random.uniform(key, (batch, 1, 1), maxval=5.0)
    coefficient, solution = 1 / (1 + c * x[None]), x[None] + c * x[None] ** 2 / 2 + y[None]
    return Instance(coefficient[..., None], None, jnp.full(batch, 4.0), solution[..., None])


darcy = equations.get("darcy")
example = batch_of_problems(jax.random.key(0))
jax.tree.map(jnp.shape, example)

# %% [markdown]
# What a model sees: the coefficient, and the boundary values of each side, carried across the
# domain.

# %%
inputs = problem.inputs(darcy, example)
figure, axes = plt.subplots(1, 6, figsize=(14, 2.4))
titles = ["coefficient", "left", "right", "bottom", "top", "solution"]
fields = [*jnp.moveaxis(inputs[0], -1, 0), example.solution[0, ..., 0]]
for axis, field, title in zip(axes, fields, titles):
    axis.imshow(field.T)
    axis.set(title=title, xticks=[], yticks=[])

# %% [markdown]
# ## The loss
#
# One line: it crops every example at a random place, rescales the parameter, takes boundary
# values from the solution, and evaluates the model there. With `solution=None` and `boundary=`
# given it compares the model with itself instead, and needs no labels.


# %%
def loss_of(apply_fn, params, instance, key):
    """The supervised loss, and scale-consistency on crops of 17 points a side."""
    prediction = apply_fn(params, problem.inputs(darcy, instance), instance.scale)
    supervised = loss.relative_l2(prediction, instance.solution)
    consistency = loss.scale_consistency(
        apply_fn, params, instance, equation="darcy", size=17, key=key
    )
    return jnp.mean(supervised + consistency)


# %% [markdown]
# ## Plain JAX


# %%
def two_layers(params, inputs, scale):
    hidden = jnp.tanh(inputs @ params["in"] + params["bias"])
    return hidden @ params["out"]


@jax.jit
def plain_step(params, key):
    key_data, key_crop = jax.random.split(key)

    def loss_fn(params):
        return loss_of(two_layers, params, batch_of_problems(key_data), key_crop)

    value, gradient = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.02 * g, params, gradient), value


# %%
keys = jax.random.split(jax.random.key(1), 3)
params = {
    "in": 0.5 * jax.random.normal(keys[0], (5, 32)),
    "bias": jnp.zeros((1, 1, 1, 32)),
    "out": 0.1 * jax.random.normal(keys[1], (32, 1)),
}
values = []
for key in jax.random.split(keys[2], STEPS):
    params, value = plain_step(params, key)
    values.append(value)
history["plain JAX"] = jnp.array(values)
history["plain JAX"][jnp.array([0, -1])]

# %% [markdown]
# ## Flax Linen and optax
#
# With a model of this package, and the paper's whole loss, `training_loss`: supervised,
# sub-domains of several sizes in one compiled program, and larger domains (here continued by
# reflection).

# %%
model = models.build(
    {"name": "fno", "n_modes": (6, 6), "hidden_channels": 12, "n_layers": 2, **darcy.model_fields()}
)
optimizer = optax.adam(3e-3)


@jax.jit
def linen_step(variables, state, key, progress):
    key_data, key_loss = jax.random.split(key)

    def loss_fn(variables):
        values, parts = loss.training_loss(
            model.apply,
            variables,
            batch_of_problems(key_data),
            equation=darcy,
            key=key_loss,
            progress=progress,
            sub_sizes=(9, 17, 25),
            super_rates=(1.5,),
        )
        return jnp.mean(values), jnp.mean(parts["supervised"])

    (_, supervised), gradient = jax.value_and_grad(loss_fn, has_aux=True)(variables)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(variables, updates), state, supervised


# %%
variables = model.init(jax.random.key(2), inputs, example.scale)
state, values = optimizer.init(variables), []
for number, key in enumerate(jax.random.split(jax.random.key(3), STEPS)):
    variables, state, value = linen_step(variables, state, key, number / STEPS)
    values.append(value)
history["Linen (FNO, supervised part)"] = jnp.array(values)
history["Linen (FNO, supervised part)"][jnp.array([0, -1])]

# %% [markdown]
# Any Linen module will do; `scale` may be used or not:


# %%
class Convolutions(nn.Module):
    @nn.compact
    def __call__(self, inputs, scale):
        hidden = nn.gelu(nn.Conv(16, (5, 5))(inputs))
        return nn.Dense(1)(hidden) * jnp.log1p(scale)[:, None, None, None]


own = Convolutions()
loss_of(own.apply, own.init(jax.random.key(0), inputs, example.scale), example, jax.random.key(1))

# %% [markdown]
# ## Flax NNX
#
# The module itself takes the place of the parameters.


# %%
class Pointwise(nnx.Module):
    def __init__(self, width, *, rngs):
        self.lift = nnx.Linear(5, width, rngs=rngs)
        self.mix = nnx.Conv(width, width, (5, 5), rngs=rngs)
        self.project = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, inputs):
        return self.project(nnx.gelu(self.mix(nnx.gelu(self.lift(inputs)))))


@nnx.jit
def nnx_step(module, optimizer, key):
    key_data, key_crop = jax.random.split(key)

    def loss_fn(module):
        apply_fn = lambda module, inputs, scale: module(inputs)
        return loss_of(apply_fn, module, batch_of_problems(key_data), key_crop)

    value, gradient = nnx.value_and_grad(loss_fn)(module)
    optimizer.update(module, gradient)
    return value


# %%
module = Pointwise(16, rngs=nnx.Rngs(0))
nnx_optimizer = nnx.Optimizer(module, optax.adam(3e-3), wrt=nnx.Param)
history["NNX"] = jnp.array(
    [nnx_step(module, nnx_optimizer, key) for key in jax.random.split(jax.random.key(4), STEPS)]
)
history["NNX"][jnp.array([0, -1])]

# %% [markdown]
# ## Equinox
#
# Equinox modules act on one sample: `jax.vmap` makes them an `apply_fn`. This one acts on each
# point.


# %%
def pointwise(module, inputs, scale):
    return jax.vmap(jax.vmap(jax.vmap(module)))(inputs)


@eqx.filter_jit
def equinox_step(module, state, key):
    key_data, key_crop = jax.random.split(key)
    value, gradient = eqx.filter_value_and_grad(
        lambda module: loss_of(pointwise, module, batch_of_problems(key_data), key_crop)
    )(module)
    updates, state = equinox_optimizer.update(gradient, state)
    return eqx.apply_updates(module, updates), state, value


# %%
network = eqx.nn.MLP(5, 1, width_size=32, depth=2, key=jax.random.key(5))
equinox_optimizer = optax.adam(3e-3)
state, values = equinox_optimizer.init(eqx.filter(network, eqx.is_array)), []
for key in jax.random.split(jax.random.key(6), STEPS):
    network, state, value = equinox_step(network, state, key)
    values.append(value)
history["Equinox"] = jnp.array(values)
history["Equinox"][jnp.array([0, -1])]

# %% [markdown]
# ## All of them

# %%
figure, axis = plt.subplots(figsize=(6, 3.4))
for label, values in history.items():
    axis.semilogy(values, label=label)
axis.set(xlabel="step", ylabel="loss")
axis.legend()
plt.show()

# %% [markdown]
# ## An equation of your own
#
# `equation=` takes an `Equation` as well as a name. Screened Poisson, −∇·(a∇u) +
# u/ℓ² = 0: on a sub-domain of side λ the screening length is ℓ/λ.
# `equations.check` tests the law on any field, by substitution.


# %%
def residual(coefficient, solution, scale, *, extent=(1.0, 1.0)):
    diffusion = darcy.residual(coefficient, solution, extent=extent)
    return diffusion + solution[1:-1, 1:-1] / scale**2


screened = dataclasses.replace(
    darcy, name="screened", rescale=equations.power_law(-1), residual=residual
)
field = jnp.sin(7 * inputs[0, ..., :1]) + example.solution[0] ** 2
print(equations.check(screened, solution=field, coefficient=example.coefficient[0], scale=0.3))

# %%
wrong = dataclasses.replace(screened, rescale=equations.power_law(1))
print(equations.check(wrong, solution=field, coefficient=example.coefficient[0], scale=0.3))
