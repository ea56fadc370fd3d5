"""Flax layers over `spectral` and `embedding`; fields ``[first, channel, batch, *rest]``."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sino_jax.grid import Centring
from sino_jax.nn import bands, embedding, spectral
from sino_jax.nn.activation import gelu
from sino_jax.nn.products import channel_product, tall_product
from sino_jax.types import Scale

Field = spectral.Field
Spectrum = spectral.Spectrum
NORMALISATIONS = ("none", "group")
EMBEDDINGS = ("mlp", "octaves", "inverse_powers", "powers")
# Powers of the form "octaves": a polynomial of higher degree would not extrapolate.
OCTAVE_POWERS = 4


class Start(NamedTuple):
    """How large the weights of a model are before training.

    Attributes:
      uniform: pointwise weights and biases uniform in ±1/√fan_in; otherwise normal of variance
        1/fan_in, with biases zero.
      kernel: deviation of the complex kernels relative to that which keeps the variance of a field.
    """

    uniform: bool
    kernel: float


# A large random start, above all in the modes, is fitted around and not forgotten where samples are
# few; what was measured stands in docs/recipes.md.
STARTS = {
    "small": Start(uniform=True, kernel=0.2),
    "smaller": Start(uniform=True, kernel=0.04),
    "uniform": Start(uniform=True, kernel=1.0),
    "unit": Start(uniform=False, kernel=1.0),
}


def start(name: str) -> Start:
    """The entry of `STARTS`; a ValueError for other names."""
    if name not in STARTS:
        raise ValueError(f"initialisation must be one of {tuple(STARTS)}, got {name!r}")
    return STARTS[name]


def padded_period(grid: Sequence[int], *, padding: float, centring: Centring) -> tuple[int, ...]:
    """Points of the period of a domain that is padded by a fraction of its own length.

    The domain of a node-centred axis is n - 1 spacings long, that of a cell-centred one n.
    """
    lengths = [n - 1 if centring == "node" else n for n in grid]
    return tuple(
        max(n, round((1 + padding) * length)) for n, length in zip(grid, lengths, strict=True)
    )


class Pointwise(nn.Module):
    """An affine map of the channels, or of their GeLU, the same at every point.

    Attributes:
      axis: of the channels, 1 as in a field, or -1.
    """

    features: int
    activate: bool = False
    use_bias: bool = True
    initialisation: str = "small"
    axis: Literal[1, -1] = 1

    @nn.compact
    def __call__(self, field: Float[Array, "..."]) -> Float[Array, "..."]:
        channels = field.shape[self.axis]
        if start(self.initialisation).uniform:
            of_kernel = of_bias = _uniform(channels**-0.5)
        else:
            of_kernel, of_bias = nn.initializers.lecun_normal(), nn.initializers.zeros
        kernel = self.param("kernel", of_kernel, (channels, self.features))
        kernel = kernel.astype(field.dtype)
        # Flat matrices: contracting several axes at once in the gradient is much slower.
        if self.axis == 1:
            first, _, *others = field.shape
            blocks = field.reshape(first, channels, -1)
            mapped = channel_product(blocks, kernel, self.activate)
            shape, of_channels = (first, self.features, *others), (1, -1, 1)
        else:
            mapped = tall_product(field.reshape(-1, channels), kernel, self.activate)
            shape, of_channels = (*field.shape[:-1], self.features), (1, -1)
        if self.use_bias:
            bias = self.param("bias", of_bias, (self.features,))
            mapped = mapped + bias.astype(field.dtype).reshape(of_channels)
        return mapped.reshape(shape)


class ChannelMlp(nn.Module):
    """Two affine maps of the channels with a GeLU between them, and one before if asked for."""

    hidden: int
    features: int
    activate: bool = False
    initialisation: str = "small"

    @nn.compact
    def __call__(self, field: Field) -> Float[Array, "first out batch *rest"]:
        kind = {"initialisation": self.initialisation}
        hidden = Pointwise(self.hidden, activate=self.activate, name="inner", **kind)(field)
        return Pointwise(self.features, activate=True, name="outer", **kind)(hidden)


class PointwiseBlock(nn.Module):
    """σ(MLP(σ(K v + W v + b)) + g ⊙ v) from a field v and an integral K v of it.

    Attributes:
      features: channels of both fields and of the result.
      hidden: hidden channels of the MLP.
      linear: leave out both σ, as the last layer of an operator does.
      initialisation: see `STARTS`.
    """

    features: int
    hidden: int
    linear: bool = False
    initialisation: str = "small"

    @nn.compact
    def __call__(self, field: Field, integral: Field) -> Field:
        kind = {"initialisation": self.initialisation}
        shape = integral.shape
        # All points in one axis: long loops, also on grids that are short in their last one.
        field, integral = (x.reshape(*x.shape[:2], 1, -1) for x in (field, integral))
        mixed = integral + Pointwise(self.features, name="skip", **kind)(field)
        mlp = ChannelMlp(self.hidden, self.features, activate=not self.linear, name="mlp", **kind)
        gate = self.param("gate", nn.initializers.ones, (self.features,)).astype(field.dtype)
        gated = gate.reshape(1, -1, *(1,) * (field.ndim - 2)) * field
        result = mlp(mixed) + gated
        return (result if self.linear else gelu(result)).reshape(shape)


class Modulation(nn.Module):
    """Multiplies Fourier coefficients by features h(k, ξ) of the scale and of the frequency.

    The two flags are independent, and with neither the coefficients pass unchanged. The factor of
    each channel is, by `form`,

        "mlp"              1 + MLP(powers 0 … 1 of k and of each |ξ_axis|)
        "octaves"          1 + MLP(powers 0 … 3 of log2(k / reference), 1 … 3 of log2(1 + |ξ_axis|))
        "inverse_powers"   MLP(powers -2 … -0.2 of k and of each |ξ_axis|), with biases
        "powers"           k^{i/(C-1)} |ξ|^{i/(C-1)}, without parameters

    The network couples scale and frequency. It starts large whatever the kernels do.

    Attributes:
      scale_informed, frequency_embedding: the flags.
      form: see above.
      log_scale: features of log(1 + k) instead of k.
      n_features: powers of each number.
      complex_factor: a complex factor of signed frequencies ("mlp" only): a real one of |ξ| cannot
        tell left from right.
      reference: a scale of the training data, for "octaves".
    """

    scale_informed: bool
    frequency_embedding: bool
    form: Literal["mlp", "octaves", "inverse_powers", "powers"] = "mlp"
    log_scale: bool = False
    n_features: int = 16
    complex_factor: bool = False
    reference: float = 1.0

    @nn.compact
    def __call__(self, spectrum: Spectrum, scale: Scale) -> Spectrum:
        if self.form not in EMBEDDINGS:
            raise ValueError(f"scale_embedding must be one of {EMBEDDINGS}, got {self.form!r}")
        if self.complex_factor and self.form != "mlp":
            raise ValueError(f"complex_factor needs scale_embedding 'mlp', got {self.form!r}")
        if not (self.scale_informed or self.frequency_embedding):
            return spectrum
        scale = scale.astype(spectrum.dtype)
        if self.form == "powers":
            return spectrum * jnp.expand_dims(self._powers(spectrum, scale), -3)
        factor = self._mlp(spectrum, scale)
        if not self.complex_factor:  # the same for real and imaginary part
            return spectrum * jnp.expand_dims(factor, -3)
        real, imaginary = jnp.split(factor, 2, axis=-1)
        first, second = spectrum[..., 0, :, :], spectrum[..., 1, :, :]
        parts = [real * first - imaginary * second, imaginary * first + real * second]
        return jnp.stack(parts, axis=-3)

    def _mlp(self, spectrum: Spectrum, scale: Scale) -> Array:
        """Broadcasts to ``[*modes, batch, channel]``, twice the channels for a complex factor."""
        *shape, _, _, channels = spectrum.shape
        inverse = self.form == "inverse_powers"
        # Powers from 0 on need no bias, since the first of them is 1.
        options = {"exponents": embedding.INVERSE if inverse else embedding.POSITIVE}
        hidden = []
        if self.scale_informed:
            if self.form == "octaves":
                features = embedding.octave_features(scale, OCTAVE_POWERS, reference=self.reference)
            else:
                features = embedding.scale_features(
                    scale, self.n_features, log=self.log_scale, **options
                )
            of_scale = Pointwise(
                channels, use_bias=inverse, initialisation="unit", axis=-1, name="scale"
            )(features)
            hidden.append(of_scale.reshape(*(1,) * len(shape), *of_scale.shape))
        if self.frequency_embedding:
            if self.form == "octaves":
                features = embedding.octave_component_features(bands.modes_of(shape), OCTAVE_POWERS)
            else:
                features = embedding.component_features(
                    bands.modes_of(shape), self.n_features, signed=self.complex_factor, **options
                )
            features = jnp.asarray(features, spectrum.dtype)
            # Constants have no gradient, and within `shard_map` are alike on all devices where
            # weights are not: the gradient of `Pointwise` is not made for that.
            of_frequency = nn.Dense(
                channels, use_bias=inverse, dtype=features.dtype, name="frequency"
            )(features)
            hidden.append(jnp.expand_dims(of_frequency, -2))
        outputs = 2 * channels if self.complex_factor else channels
        factor = Pointwise(outputs, activate=True, initialisation="unit", axis=-1, name="factor")
        if inverse:
            return factor(sum(hidden))
        one = jnp.ones(channels, spectrum.dtype)
        if self.complex_factor:
            one = jnp.concatenate([one, jnp.zeros_like(one)])
        return one.reshape(*(1,) * (len(shape) + 1), -1) + factor(sum(hidden))

    def _powers(self, spectrum: Spectrum, scale: Scale) -> Array:
        """Broadcasts to ``[*modes, batch, channel]``."""
        *shape, _, batch, channels = spectrum.shape
        factor = jnp.ones((*(1,) * len(shape), batch, channels), spectrum.dtype)
        if self.scale_informed:
            of_scale = embedding.scale_features(scale, channels, log=self.log_scale)
            factor = factor * of_scale.reshape(factor.shape)
        if self.frequency_embedding:
            features = embedding.magnitude_features(bands.modes_of(shape), channels)
            factor = factor * jnp.expand_dims(jnp.asarray(features, spectrum.dtype), -2)
        return factor


class TensorKernel(nn.Module):
    """Each mode's channels times that mode's own complex matrix, ``[*modes, in, out]``.

    A spectrum with fewer modes than `n_modes` uses the weights of its own frequencies.
    """

    features: int
    n_modes: tuple[int, ...]
    initialisation: str = "small"

    @nn.compact
    def __call__(self, spectrum: Spectrum) -> Float[Array, "*modes 2 batch out"]:
        channels = spectrum.shape[-1]
        shape = (*bands.band_shape(self.n_modes), channels, self.features)
        parts = complex_weights(
            self, shape, spectrum.dtype, factor=start(self.initialisation).kernel
        )
        return spectral.mix(spectrum, spectral.ModeWeights(*parts))


class SharedKernel(nn.Module):
    """All modes' channels times one complex matrix, ``[in, out]``."""

    features: int
    use_bias: bool = False
    initialisation: str = "small"

    @nn.compact
    def __call__(self, spectrum: Spectrum) -> Float[Array, "*modes 2 batch out"]:
        shape = (spectrum.shape[-1], self.features)
        parts = complex_weights(
            self, shape, spectrum.dtype, factor=start(self.initialisation).kernel
        )
        weights = spectral.SharedWeights(*parts)
        if not self.use_bias:
            return spectral.mix_shared(spectrum, weights)
        bias = self.param("bias", nn.initializers.normal(0.01), (2, self.features))
        return spectral.mix_shared(spectrum, weights, bias.astype(spectrum.dtype))


class SpectralNorm(nn.Module):
    """Group normalisation in Fourier space with a learned gain; see `spectral.group_norm`."""

    kind: Literal["none", "group"] = "none"
    groups: int = 1

    @nn.compact
    def __call__(self, spectrum: Spectrum) -> Spectrum:
        if self.kind not in NORMALISATIONS:
            raise ValueError(f"normalisation must be one of {NORMALISATIONS}, got {self.kind!r}")
        if self.kind == "none":
            return spectrum
        gain = self.param("gain", nn.initializers.ones, spectrum.shape[-1:])
        return spectral.group_norm(spectrum, gain.astype(spectrum.dtype), groups=self.groups)


def complex_weights(
    module: nn.Module, shape: tuple[int, ...], dtype: jnp.dtype, *, factor: float = 1.0
) -> tuple[Array, Array]:
    """Real and imaginary part, parameters of `module`, of matrices ``[..., in, out]``.

    They are normal; a product multiplies the deviation of its input by `factor`.
    """
    initialiser = nn.initializers.normal(factor * (2 * shape[-2]) ** -0.5)
    return tuple(module.param(part, initialiser, shape).astype(dtype) for part in ("real", "imag"))


def _uniform(bound: float) -> nn.initializers.Initializer:
    """Uniform in ±bound."""
    return lambda key, shape, dtype=jnp.float32: jax.random.uniform(
        key, shape, dtype, -bound, bound
    )
