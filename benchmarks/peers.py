"""The Fourier models of `sino_jax.models` written plainly: real FFTs and complex einsums.

What a reader of the papers would write in JAX, with the weights of the package's own models, whose
outputs these give to round-off. `benchmarks.paper_steps` measures against them. Arrays are
``[batch, *grid, channel]`` throughout; spectra are complex, ``[batch, *modes, channel]``.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from sino_jax import boundary, grid
from sino_jax import channels as channel_axes
from sino_jax.models.fno import FNO
from sino_jax.models.sino_u import SINOU
from sino_jax.nn import bands, embedding


def apply(model: FNO, variables, inputs: Array, scale: Array) -> Array:
    """``model.apply(variables, inputs, scale)`` of an `FNO`, `SINO` or `SINOU`."""
    weights = variables["params"]
    shape = inputs.shape[1:-1]
    points = grid.coordinates(shape, centrings=(model.centring,) * len(shape))
    points = jnp.broadcast_to(points, (len(inputs), *points.shape))
    size = 1.0
    if model.boundary_channels:
        interior, traces = jnp.split(inputs, [inputs.shape[-1] - model.boundary_channels], -1)
        size = channel_axes.per_example(boundary.magnitude(traces), inputs)
        inputs = jnp.concatenate([interior, traces / size], axis=-1)
    field = _mlp(weights["lifting"], jnp.concatenate([inputs, points], axis=-1))
    skips = None
    for layer in range(model.n_layers):
        spectrum = _transform(model, field)
        spectrum = spectrum * _factor(model, weights[f"kernel_{layer}_modulation"], scale, spectrum)
        if isinstance(model, SINOU):
            spectrum, skips = _bands(model, weights, f"kernel_{layer}", spectrum, skips)
        else:
            spectrum = _kernel(model, weights, f"kernel_{layer}", spectrum)
        integral = _inverse(model, spectrum, shape)
        last = layer == model.n_layers - 1
        field = _block(weights[f"layer_{layer}"], field, integral, linear=last)
    return _mlp(weights["projection"], field) * size


def _affine(weights, field: Array) -> Array:
    return field @ weights["kernel"] + weights.get("bias", 0)


def _mlp(weights, field: Array) -> Array:
    return _affine(weights["outer"], jax.nn.gelu(_affine(weights["inner"], field)))


def _block(weights, field: Array, integral: Array, *, linear: bool) -> Array:
    activate = (lambda x: x) if linear else jax.nn.gelu
    mixed = activate(integral + _affine(weights["skip"], field))
    return activate(_mlp(weights["mlp"], mixed) + weights["gate"] * field)


def _transform(model: FNO, field: Array) -> Array:
    """The band of the field's Fourier coefficients, those of the second axis from -(m-1) on."""
    period = model.period(field.shape[1:-1])
    first, second = model.kept_modes(period)
    # The axis that is halved is the last of these.
    full = jnp.fft.rfftn(field, s=period[::-1], axes=(2, 1), norm="forward")
    return jnp.concatenate([full[:, :first, 1 - second :], full[:, :first, :second]], axis=2)


def _inverse(model: FNO, spectrum: Array, shape: tuple[int, ...]) -> Array:
    period = model.period(shape)
    _, first, second, channels = spectrum.shape
    negative, others = jnp.split(spectrum, [second // 2], axis=2)
    full = jnp.zeros((len(spectrum), period[0] // 2 + 1, period[1], channels), spectrum.dtype)
    full = full.at[:, :first, : second // 2 + 1].set(others)
    full = full.at[:, :first, period[1] - second // 2 :].set(negative)
    field = jnp.fft.irfftn(full, s=period[::-1], axes=(2, 1), norm="forward")
    return field[:, : shape[0], : shape[1]]


def _factor(model: FNO, weights, scale: Array, spectrum: Array) -> Array:
    """h(k, ξ): 1 + MLP of powers of the scale and of the frequency."""
    modes = bands.modes_of(spectrum.shape[1:-1])
    of_scale = embedding.scale_features(scale, model.n_features, log=model.log_scale)
    of_frequency = jnp.asarray(embedding.component_features(modes, model.n_features), scale.dtype)
    hidden = _affine(weights["scale"], of_scale)[:, None, None]
    hidden = hidden + _affine(weights["frequency"], of_frequency)
    return 1 + _affine(weights["factor"], jax.nn.gelu(hidden))


def _complex(weights) -> Array:
    return jax.lax.complex(weights["real"], weights["imag"])


def _gelu(spectrum: Array) -> Array:
    return jax.lax.complex(jax.nn.gelu(spectrum.real), jax.nn.gelu(spectrum.imag))


def _kernel(model: FNO, weights, name: str, spectrum: Array) -> Array:
    if model.kernel == "tensor":
        return jnp.einsum("bxyi,xyio->bxyo", spectrum, _complex(weights[name]))
    inner = spectrum @ _complex(weights[f"{name}_inner"])
    energy = jnp.asarray(
        bands.energy_weights(bands.modes_of(spectrum.shape[1:-1])), inner.real.dtype
    )
    mean = jnp.mean(jnp.einsum("xy,bxyc->bc", energy, jnp.abs(inner) ** 2), axis=-1)
    gain = weights[f"{name}_norm"]["gain"] / jnp.sqrt(mean + 1e-6)[:, None]
    return _gelu(inner * gain[:, None, None]) @ _complex(weights[f"{name}_outer"])


def _bands(model: SINOU, weights, name: str, spectrum: Array, skips):
    """The U of frequency bands, and what the next layer adds to its own."""
    levels = [_kernel(model, weights, name, spectrum)]
    if skips is not None:
        levels[0] = levels[0] + skips[0]
    for level in range(1, model.n_levels):
        first, second = map(min, model.level_modes(level), bands.modes_of(levels[-1].shape[1:-1]))
        middle = levels[-1].shape[2] // 2
        above = levels[-1][:, :first, middle - second + 1 : middle + second]
        matrices = _complex(weights[f"{name}_down_{level}"])
        below = _gelu(jnp.einsum("bxyi,xyio->bxyo", above, matrices))
        levels.append(below if skips is None else below + skips[level])
    result = levels[-1]
    for level in reversed(range(1, model.n_levels)):
        matrices = _complex(weights[f"{name}_up_{level}"])
        lifted = _gelu(jnp.einsum("bxyi,xyio->bxyo", result, matrices))
        above, middle = levels[level - 1], levels[level - 1].shape[2] // 2
        half = lifted.shape[2] // 2
        part = (slice(None), slice(lifted.shape[1]), slice(middle - half, middle + half + 1))
        result = above.at[part].add(lifted)
    return result, levels
