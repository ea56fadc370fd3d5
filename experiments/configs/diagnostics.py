"""The paper's theorem and the error estimate, measured on trained Darcy models.

    python -m experiments.diagnostics --run runs/darcy/small/fno/seed-0 \
        runs/darcy/small/fno+scale/seed-0

Fields:

    size_ratio            side of the domain of D_M over that of the training domain
    steepness             M, the largest |∇a| of D_M
    ratio                 M / δ, and points of D_M's sub-domains over those of D_M
    samples               problems of D_M, and of D_δ
    draws                 sub-domains for each problem
    samples_at_once       bounds the memory
    calibration_samples   of each test set
"""

from solvers import configs

COMMON = {
    "equation": "darcy",
    "size_ratio": 4,
    "steepness": 80.0,
    "ratio": 8,
    "draws": 4,
    "samples_at_once": 8,
    "seed": 0,
}
PRESETS = {
    "tiny": {"size_ratio": 1, "ratio": 2, "samples": 4, "draws": 2, "calibration_samples": 4},
    "small": {"samples": 32, "calibration_samples": 64},
    "paper": {"samples": 64, "calibration_samples": 128, "samples_at_once": 2},
}


def get_config(text: str = "small"):
    return configs.resolve(text, {**COMMON, "preset": text.split(",")[0]}, PRESETS)
