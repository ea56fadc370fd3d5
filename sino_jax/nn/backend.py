"""Which of several equivalent forms of a computation is chosen: by backend, in one place.

The forms of `products` and `spectral` that differ from the plain one, and the cost of a Fourier
transform in `dft`, were measured on two CPU cores with AVX2 (``python -m benchmarks train_step``),
products of fields with narrow maps on one with AVX-512 (``python -m benchmarks narrow_steps``).
Other backends get the plain form, which their libraries are made for.
"""

import jax


def forms_for_cpu() -> bool:
    """Whether programs traced now are for a CPU. An exported program keeps the choice made here."""
    return jax.default_backend() == "cpu"
