"""The models of the paper's tables, from the fields of an experiment's config."""

from typing import Any

from ml_collections import ConfigDict

LABELS = {
    "fno": "FNO",
    "unet": "UNet",
    "fno_unet": "FNO-UNet",
    "uno": "UNO",
    "cno": "CNO",
    "sino": "SINO",
    "sino_u": "SINO-U",
}
CONVOLUTIONAL = ("unet", "fno_unet", "cno")
SCALE_INFORMED = ("sino", "sino_u")
# Points of one family, see `sino_jax.models.fno`: the name only says what "auto" means.
FAMILY = ("fno", "sino")
# Levels of the Fourier models that have some.
SPECTRAL_LEVELS = 3


def fields(config: ConfigDict) -> dict[str, Any]:
    """What `sino_jax.models.build` needs for the model of a config, beside its channels.

    Raises:
      ValueError: the config names a model that no table has, or a flag that is not yes, no or auto.
    """
    if config.model not in LABELS:
        raise ValueError(f"model must be one of {', '.join(LABELS)}, got {config.model!r}")
    if config.model in CONVOLUTIONAL:
        # A CNO has one level less than a UNet.
        levels = config.n_levels - (config.model == "cno")
        own = {"hidden_channels": config.pyramid_channels, "n_levels": levels}
        if config.model == "fno_unet":
            own |= {"n_modes": config.n_modes, "initialisation": config.initialisation}
        return {"name": config.model, **own, "size": config.size}
    shared = kernel(config) == "shared"
    n_layers = config.sino_layers if shared else config.n_layers
    own = {
        "fno": {"n_layers": n_layers, "kernel": "tensor"},
        "uno": {"n_levels": SPECTRAL_LEVELS},
        "sino": {
            "n_layers": n_layers,
            "kernel": "shared",
            "normalisation": "group",
            "truncated": config.truncated,
        },
        "sino_u": {
            "n_layers": n_layers,
            "n_levels": SPECTRAL_LEVELS,
            "truncated": config.truncated,
        },
    }
    name = ("sino" if shared else "fno") if config.model in FAMILY else config.model
    return {
        "name": name,
        "n_modes": config.sino_modes if shared else config.n_modes,
        "hidden_channels": config.sino_channels if shared else config.hidden_channels,
        "padding": config.padding,
        "initialisation": config.initialisation,
        "log_scale": config.log_scale,
        "scale_embedding": config.scale_embedding,
        "complex_factor": config.complex_factor,
        "reference_scale": config.reference_scale,
        **own[name],
        **{flag: value == "yes" for flag, value in embedding(config).items()},
    }


def kernel(config: ConfigDict) -> str:
    """The kernel of a model with Fourier layers: "tensor" or "shared"."""
    own = {"fno": "tensor", "uno": "tensor", "sino_u": "shared"}
    own["sino"] = config.get("sino_kernel", "shared")
    if config.kernel == "auto":
        return own[config.model]
    allowed = ("tensor", "shared") if config.model in FAMILY else (own[config.model],)
    if config.kernel not in allowed:
        choices = " or ".join((*allowed, "auto"))
        raise ValueError(f"kernel of {config.model} must be {choices}, got {config.kernel!r}")
    return config.kernel


def embedding(config: ConfigDict) -> dict[str, str]:
    """The flags of a model with Fourier layers, "yes" or "no" each."""
    own = "yes" if config.model in SCALE_INFORMED else "no"
    flags = {name: config[name] for name in ("scale_informed", "frequency_embedding")}
    for name, value in flags.items():
        if value not in ("yes", "no", "auto"):
            raise ValueError(f"{name} must be yes, no or auto, got {value!r}")
    return {name: own if value == "auto" else value for name, value in flags.items()}


def label(config: ConfigDict) -> str:
    """The model's name in a table: the point of the family that it is, flags of the others."""
    if config.model in CONVOLUTIONAL:
        return LABELS[config.model]
    flags = embedding(config)
    if config.model in FAMILY:
        return family_label(kernel(config), **flags)
    own = "yes" if config.model in SCALE_INFORMED else "no"
    if set(flags.values()) == {own}:
        return LABELS[config.model]
    return f"{LABELS[config.model]} ({_words(**flags)})"


def family_label(kernel: str, *, scale_informed: str, frequency_embedding: str) -> str:
    """The name of a point of the family, from its kernel and flags that are "yes" or "no"."""
    flags = {"scale_informed": scale_informed, "frequency_embedding": frequency_embedding}
    if set(flags.values()) == {"no"}:
        return "FNO" if kernel == "tensor" else "FNO (shared kernel)"
    if set(flags.values()) == {"yes"}:
        return f"SINO ({kernel} kernel)"
    return f"SINO ({kernel} kernel, {_words(**flags)})"


def _words(*, scale_informed: str, frequency_embedding: str) -> str:
    return f"scale {scale_informed}, frequency {frequency_embedding}"
