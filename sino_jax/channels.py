"""Complex fields as real channels and back, and values per example as factors of a batch."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from sino_jax.types import Batch, Sample


def per_example(values: Float[Array, "batch"], like: Batch) -> Float[Array, "batch *ones"]:
    """One value per example, shaped to multiply the batch `like`."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def to_channels(field: Sample) -> Float[Array, "*grid _"]:
    """A complex field as a real one with (re, im) for each channel; a real field unchanged."""
    if not jnp.iscomplexobj(field):
        return field
    pairs = jnp.stack([field.real, field.imag], axis=-1)
    return pairs.reshape(*field.shape[:-1], 2 * field.shape[-1])


def from_channels(channels: Float[Array, "*grid _"]) -> Sample:
    """Inverse of `to_channels` for complex fields."""
    if channels.shape[-1] % 2:
        raise ValueError(f"channels must come in (re, im) pairs, got {channels.shape[-1]} channels")
    pairs = channels.reshape(*channels.shape[:-1], -1, 2)
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def as_complex(field: Sample) -> Complex[Array, "*grid _"]:
    """The field in the complex dtype of its precision."""
    return field if jnp.iscomplexobj(field) else jax.lax.complex(field, jnp.zeros_like(field))
