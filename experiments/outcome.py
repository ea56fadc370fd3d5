"""The result of a row: errors at every scale, as its run wrote them."""

import json
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from experiments import configs
from sino_jax import scale_range

RESULT = "result.json"
# Of the fields that describe a part of `consistency`, and say nothing without it.
PREFIXES = {"stretch": "stretched_", "super": "super_"}
# Several values mean the same model: the label of a row, by which results are found, has one name.
IN_LABEL = ("model", "kernel", "scale_informed", "frequency_embedding")


def is_of(config: ConfigDict, result: Mapping[str, Any]) -> bool:
    """Whether a result is that of this config, and not of one that had the same name before."""
    # Results of older versions lack the fields that came later.
    recorded = {**json.loads(ConfigDict(configs.COMMON).to_json()), **result["config"]}
    return _used(recorded) == _used(json.loads(config.to_json()))


def _used(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without what describes losses that it does not have, and what the label says."""
    parts = config["consistency"].split("+")
    idle = tuple(prefix for part, prefix in PREFIXES.items() if part not in parts)
    others = config.keys() - set(IN_LABEL)
    return {name: config[name] for name in others if not name.startswith(idle)}


def errors_by_scale(
    result: Mapping[str, Any], *, metric: str = "relative_l2"
) -> dict[float, float]:
    """Relative errors of a result by scale."""
    return {
        float(name.rsplit("-", 1)[1]): metrics[metric] for name, metrics in result["errors"].items()
    }


def report(result: Mapping[str, Any]) -> str:
    """A result in words: every metric at every scale, and which scales were not trained on."""
    metrics = sorted(next(iter(result["errors"].values())))
    errors = {metric: errors_by_scale(result, metric=metric) for metric in metrics}
    scales = sorted(errors[metrics[0]])
    marks = [f"{s:g}{'*' if s in result['trained_scales'] else ''}" for s in scales]
    width = max(map(len, metrics))
    lines = [
        f"{result['row']}, seed {result['seed']}: errors in percent (* scale of the training data)",
        "scale".ljust(width) + "".join(f"{mark:>10}" for mark in marks),
        *(
            metric.ljust(width) + "".join(f"{100 * errors[metric][s]:10.3f}" for s in scales)
            for metric in metrics
        ),
    ]
    # Results from before the range was recorded have the scales of the data only.
    trained = result.get("trained_range", result["trained_scales"])
    if beyond := scale_range.outside(scales, trained):
        lines.append(f"warning: {beyond}")
    return "\n".join(lines)
