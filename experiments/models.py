"""The models of the paper's tables, from the fields of an experiment's config."""

from typing import Any

from ml_collections import ConfigDict

LABELS = {
    "fno": "FNO",
    "unet": "UNet",
    "uno": "UNO",
    "cno": "CNO",
    "sino": "SINO",
    "sino_u": "SINO-U",
}
SCALE_INFORMED = ("sino", "sino_u")
# Levels of the Fourier models that have some.
SPECTRAL_LEVELS = 3


def fields(config: ConfigDict) -> dict[str, Any]:
    """What `sino_jax.models.build` needs for the model of a config, beside its name and channels.

    Raises:
      ValueError: the config names a model that no table has, or a flag that is not yes, no or auto.
    """
    if config.model not in LABELS:
        raise ValueError(f"model must be one of {', '.join(LABELS)}, got {config.model!r}")
    if config.model in ("unet", "cno"):
        return pyramid(
            config.model,
            hidden_channels=config.pyramid_channels,
            n_levels=config.n_levels,
            size=config.size,
        )
    own = config.model in SCALE_INFORMED
    return {
        **spectral(
            config.model,
            n_modes=config.sino_modes if own else config.n_modes,
            hidden_channels=config.sino_channels if own else config.hidden_channels,
            n_layers=config.sino_layers if own else config.n_layers,
            padding=config.padding,
        ),
        **{name: embedded == "yes" for name, embedded in embedding(config).items()},
        "log_scale": config.log_scale,
        "initialisation": config.initialisation,
    }


def spectral(
    model: str, *, n_modes: tuple[int, ...], hidden_channels: int, n_layers: int, padding: float
) -> dict[str, Any]:
    """Fields of the models with Fourier layers."""
    shape = {
        "fno": {"n_layers": n_layers},
        "sino": {"n_layers": n_layers},
        "sino_u": {"n_layers": n_layers, "n_levels": SPECTRAL_LEVELS},
        "uno": {"n_levels": SPECTRAL_LEVELS},
    }[model]
    return {
        "n_modes": n_modes,
        "hidden_channels": hidden_channels,
        "padding": padding,
        **shape,
    }


def pyramid(model: str, *, hidden_channels: int, n_levels: int, size: int) -> dict[str, Any]:
    """Fields of the models with convolutions; a CNO has one level less than a UNet."""
    levels = {"unet": n_levels, "cno": n_levels - 1}[model]
    return {"hidden_channels": hidden_channels, "n_levels": levels, "size": size}


def embedding(config: ConfigDict) -> dict[str, str]:
    """The flags of a model with Fourier layers, "yes" or "no" each."""
    own = "yes" if config.model in SCALE_INFORMED else "no"
    flags = {name: config[name] for name in ("scale_informed", "frequency_embedding")}
    for name, value in flags.items():
        if value not in ("yes", "no", "auto"):
            raise ValueError(f"{name} must be yes, no or auto, got {value!r}")
    return {name: own if value == "auto" else value for name, value in flags.items()}


def label(config: ConfigDict) -> str:
    """The model's name in a table, with its flags where they are not the model's own."""
    if config.model in ("unet", "cno"):
        return LABELS[config.model]
    return flagged_label(config.model, **embedding(config))


def flagged_label(model: str, *, scale_informed: str, frequency_embedding: str) -> str:
    """The name of a model with Fourier layers whose flags are "yes" or "no"."""
    own = "yes" if model in SCALE_INFORMED else "no"
    if scale_informed == frequency_embedding == own:
        return LABELS[model]
    return f"{LABELS[model]} (scale {scale_informed}, frequency {frequency_embedding})"
