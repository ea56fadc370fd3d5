"""What the values of config fields may be: words, whole numbers and ranges, by the field's name.

A field means the same in every config that has it, so that one table serves data sets and
experiments; a field without a rule takes any finite value of its default's type.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

# What words are taken for a truth value.
TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A test of one value, and of every entry of a tuple, with the words for what it wants."""

    words: str
    test: Callable[[Any], bool]


def at_least(low: int | float, *, whole: bool = True) -> Rule:
    kind = "a whole number" if whole else "a number"
    return Rule(f"{kind} of at least {low:g}", lambda x: x >= low and (not whole or _whole(x)))


def between(low: int | float, high: int | float) -> Rule:
    return Rule(f"a number from {low:g} to {high:g}", lambda x: low <= x <= high)


def one_of(*words: str) -> Rule:
    return Rule(f"one of {', '.join(words)}", lambda x: x in words)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


POSITIVE = Rule("a positive number", lambda x: x > 0)
NOT_NEGATIVE = at_least(0, whole=False)
COUNT = at_least(1)
NAME = Rule(
    "a plain name of letters, digits, '_', '-', '.' and '+'",
    lambda x: bool(re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*", x)),
)

BOX = Rule(
    "boxes of whole numbers of points from 2 on, as in 50x65",
    lambda x: isinstance(x, tuple) and all(_whole(n) and n >= 2 for n in x),
)
GRID_OF_SCALE = Rule(
    "pairs of a scale and its points a side, as in 4x65",
    lambda x: isinstance(x, tuple) and len(x) == 2 and x[0] > 0 and _whole(x[1]) and x[1] >= 2,
)

RULES: Mapping[str, Rule] = {
    "name": NAME,
    "seed": at_least(0),
    "dtype": one_of("float32", "float64"),
    **dict.fromkeys(["train_scales", "val_scales", "test_scales"], POSITIVE),
    **dict.fromkeys(["train_samples", "test_samples", "block_points"], COUNT),
    "val_samples": at_least(0),
    **dict.fromkeys(["history", "horizon", "stride", "frames", "thin"], COUNT),
    **dict.fromkeys(["dt", "end_time", "cfl"], POSITIVE),
    "burn_in": NOT_NEGATIVE,
    **dict.fromkeys(["epochs", "batch_size", "samples", "samples_at_once"], COUNT),
    **dict.fromkeys(["n_modes", "hidden_channels", "n_layers"], COUNT),
    **dict.fromkeys(["sino_modes", "sino_channels", "sino_layers"], COUNT),
    **dict.fromkeys(["pyramid_channels", "n_levels", "sub_count"], COUNT),
    **dict.fromkeys(["super_count", "super_positions"], COUNT),
    **dict.fromkeys(
        ["rollout_frames", "rollout_steps", "patches", "levels", "level_iterations", "ramp"], COUNT
    ),
    **dict.fromkeys(["sub_sizes", "overlap", "overlaps"], at_least(2)),
    **dict.fromkeys(["size", "smallest_crop", "iterations", "evaluate_every"], at_least(0)),
    "super_points": at_least(0),
    "stretched_sizes": BOX,
    "points": GRID_OF_SCALE,
    **dict.fromkeys(["learning_rate", "base_extent"], POSITIVE),
    **dict.fromkeys(["weight_decay", "clip_norm", "base_shift"], NOT_NEGATIVE),
    **dict.fromkeys(["sub_weight", "super_weight"], NOT_NEGATIVE),
    **dict.fromkeys(["warmup", "super_start", "super_crop"], between(0, 1)),
    "ema_decay": Rule("a number from 0 to less than 1", lambda x: 0 <= x < 1),
    "padding": between(0, 4),
    "super_rates": at_least(1, whole=False),
    **dict.fromkeys(["scale_informed", "frequency_embedding"], one_of("yes", "no", "auto")),
    "kernel": one_of("auto", "tensor", "shared"),
    "sino_kernel": one_of("tensor", "shared"),
    "consistency": one_of(
        "none", "sub", "super", "sub+super", "stretch", "sub+stretch", "sub+super+stretch"
    ),
    "symmetries": one_of("none", "rotation", "reflection", "rotation+reflection"),
    "score": one_of("test", "val"),
    "super_method": one_of("extend", "relabel"),
    "crop_region": one_of("whole", "central_half"),
    "detach": one_of("input", "target", "both", "none", "prediction"),
}


def check(field: str, value: Any, rules: Mapping[str, Rule]) -> None:
    """Raises a ValueError of one line unless a field may have this value."""
    entries = value if isinstance(value, tuple) else (value,)
    for entry in entries:
        if isinstance(entry, float) and not math.isfinite(entry):
            raise ValueError(f"{field} must be finite, got {value!r}")
        rule = rules.get(field)
        if rule is not None and not _passes(rule, entry):
            each = "entries of " if isinstance(value, tuple) else ""
            raise ValueError(f"{each}{field} must be {rule.words}, got {value!r}")


def _passes(rule: Rule, entry: Any) -> bool:
    try:
        return rule.test(entry)
    except TypeError:  # a box where a number is expected
        return False
