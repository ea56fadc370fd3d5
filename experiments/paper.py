"""The numbers of the paper's tables, as data.

Relative L2 errors in percent, except where a table says otherwise. Each table maps a row's label to
one value for each of its columns. `check` compares all of them with the paper's source:

    python -m experiments.paper PATH/scale_consistent_learning.tex
"""

import dataclasses
import pathlib
import re
import sys
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Table:
    """One table, or one equation's part of it.

    Attributes:
      label: of the table in the paper's source.
      parameter: what the columns vary.
      columns: its values.
      trained: columns that the models were trained on.
      rows: label -> errors.
    """

    label: str
    parameter: str
    columns: tuple[float, ...]
    trained: tuple[float, ...]
    rows: Mapping[str, tuple[float, ...]]


DARCY = Table(
    label="table:darcy_burgers",
    parameter="scale",
    columns=(2, 3, 4, 8, 16),
    trained=(4,),
    rows={
        "FNO": (3.921, 3.842, 3.737, 3.323, 3.214),
        "FNO+scale": (1.990, 1.932, 1.990, 2.130, 2.300),
        "UNet": (6.638, 6.981, 6.011, 5.527, 6.361),
        "UNet+scale": (5.130, 4.945, 5.869, 5.645, 6.094),
        "UNO": (5.534, 5.336, 4.725, 4.495, 4.366),
        "UNO+scale": (3.009, 2.753, 3.087, 4.602, 4.600),
        "CNO": (4.393, 4.281, 4.248, 4.159, 4.451),
        "CNO+scale": (4.149, 4.228, 4.505, 4.418, 4.716),
    },
)

DARCY_SYMMETRY = Table(
    label="table:symmetry",
    parameter="scale",
    columns=(2, 3, 4, 8, 16),
    trained=(4,),
    rows={
        "No aug.": (4.143, 4.193, 4.036, 3.552, 3.352),
        "Rot.": (3.101, 2.944, 2.953, 2.797, 2.872),
        "Ref.": (2.821, 2.701, 2.597, 2.616, 2.684),
        "Rot.+Ref.": (2.713, 2.469, 2.450, 2.461, 2.582),
        "Scale (ours)": (1.918, 2.075, 2.035, 2.159, 2.237),
        "All (ours)": (1.903, 1.816, 1.910, 2.095, 2.309),
    },
)

BURGERS = Table(
    label="table:darcy_burgers",
    parameter="Re",
    columns=(100, 200, 400, 1000),
    trained=(400,),
    rows={
        "FNO": (28.602, 11.005, 1.230, 8.709),
        "FNO+scale": (27.799, 10.008, 1.908, 9.442),
        "SINO": (24.914, 10.027, 1.174, 8.363),
        "SINO+scale": (5.926, 1.720, 0.957, 4.575),
        "UNet": (32.897, 22.463, 20.119, 26.481),
        "UNet+scale": (30.137, 22.815, 25.138, 30.747),
        "UNO": (28.581, 10.963, 1.235, 8.624),
        "UNO+scale": (28.716, 11.009, 1.387, 8.720),
        "CNO": (27.999, 10.461, 2.059, 9.054),
        "CNO+scale": (25.264, 8.280, 3.959, 11.191),
    },
)

HELMHOLTZ = Table(
    label="table:helm_ns",
    parameter="k",
    columns=(1, 2, 5, 10, 25, 50),
    trained=(5, 10, 25),
    rows={
        "FNO": (136.847, 131.200, 4.285, 12.575, 21.060, 107.186),
        "FNO+scale": (44.625, 36.026, 3.186, 11.924, 19.744, 108.916),
        "SINO-U": (69.437, 63.283, 3.666, 12.503, 19.728, 102.980),
        "SINO-U+scale": (8.960, 6.960, 3.081, 12.490, 19.001, 112.940),
        "UNet": (164.945, 156.775, 48.341, 51.028, 21.189, 112.914),
        "UNet+scale": (51.441, 64.313, 63.827, 52.731, 53.541, 104.477),
        "UNO": (120.742, 101.478, 9.350, 16.172, 32.280, 118.570),
        "UNO+scale": (125.742, 91.541, 10.821, 19.605, 36.017, 117.776),
    },
)

NAVIER_STOKES = Table(
    label="table:helm_ns",
    parameter="Re",
    columns=(250, 500, 1000, 2000, 4000, 10000),
    trained=(1000,),
    rows={
        "FNO": (0.447, 0.750, 1.015, 3.108, 7.374, 18.295),
        "FNO+scale": (0.302, 0.531, 0.743, 2.446, 6.137, 17.127),
        "SINO-U": (0.695, 0.782, 0.976, 2.466, 4.793, 13.772),
        "SINO-U+scale": (0.357, 0.514, 0.953, 2.186, 4.289, 11.483),
        "UNet": (4.156, 2.706, 0.809, 2.096, 10.027, 22.284),
        "UNet+scale": (1.086, 1.753, 13.802, 15.427, 16.442, 28.297),
        "UNO": (4.228, 3.021, 4.147, 8.316, 16.728, 33.221),
        "UNO+scale": (4.005, 2.661, 3.458, 6.941, 14.785, 30.663),
    },
)

# Rows: scale informed, frequency embedding.
BURGERS_EMBEDDING = Table(
    label="table:ScaleFrequency",
    parameter="Re",
    columns=(100, 200, 400, 800),
    trained=(400,),
    rows={
        "No & No": (28.531, 10.756, 1.087, 8.889),
        "No & Yes": (28.660, 10.832, 0.916, 8.725),
        "Yes & No": (10.731, 2.540, 1.055, 5.477),
        "Yes & Yes": (6.334, 1.887, 1.042, 4.636),
    },
)

HELMHOLTZ_EMBEDDING = Table(
    label="table:ScaleFrequency",
    parameter="k",
    columns=(1, 2, 5, 10, 25, 50),
    trained=(5, 10, 25),
    rows={
        "No & No": (17.914, 5.963, 3.537, 11.042, 16.338, 106.597),
        "No & Yes": (15.642, 6.384, 3.441, 10.294, 14.056, 102.015),
        "Yes & No": (16.741, 4.822, 2.914, 10.631, 12.989, 103.151),
        "Yes & Yes": (9.438, 4.980, 2.921, 9.874, 11.574, 93.938),
    },
)

# Error in percent and improvement over the global prediction in percent, by iteration.
DECOMPOSITION = Table(
    label="tab:dd",
    parameter="iteration",
    columns=(0, 1, 2, 3, 4, 5),
    trained=(),
    rows={
        "error": (5.3162, 3.4571, 3.2464, 3.2029, 3.1868, 3.1801),
        "improvement": (0.0, 34.97, 38.93, 39.75, 40.06, 40.18),
    },
)

# Errors as fractions. Rows: model; scale informed, frequency embedding, crops, smallest crop.
NAVIER_STOKES_SPACETIME = Table(
    label="table:NS-spacetime",
    parameter="Re",
    columns=(250, 500, 1000, 2000, 4000, 10000),
    trained=(1000,),
    rows={
        "FNO, No & No & OFF & N/A": (0.02040, 0.02901, 0.04460, 0.08573, 0.12081, 0.19554),
        "FNO, No & Yes & OFF & N/A": (0.01727, 0.02632, 0.04051, 0.08158, 0.11603, 0.18847),
        "FNO, Yes & No & OFF & N/A": (0.01937, 0.02779, 0.04194, 0.08319, 0.11889, 0.19588),
        "FNO, Yes & Yes & OFF & N/A": (0.01756, 0.02551, 0.04003, 0.08029, 0.11274, 0.18551),
        "FNO MLP, No & No & OFF & N/A": (0.03945, 0.0543, 0.06768, 0.11215, 0.14987, 0.21862),
        "FNO MLP, No & Yes & OFF & N/A": (0.03586, 0.04348, 0.02827, 0.06307, 0.15211, 0.23422),
        "FNO MLP, Yes & No & OFF & N/A": (0.04032, 0.05580, 0.06803, 0.11358, 0.16708, 0.23437),
        "FNO MLP, Yes & Yes & OFF & N/A": (0.02125, 0.02661, 0.02701, 0.06164, 0.11917, 0.19405),
        "FNO, Yes & Yes & ON & 24": (0.01352, 0.02082, 0.03547, 0.07420, 0.11074, 0.18526),
        "FNO, Yes & Yes & ON & 32": (0.01342, 0.02016, 0.03382, 0.07285, 0.10876, 0.18469),
        "FNO, Yes & Yes & ON & 40": (0.01468, 0.02031, 0.03348, 0.07083, 0.10444, 0.17692),
        "FNO, Yes & Yes & ON & 48": (0.01756, 0.02515, 0.03869, 0.07732, 0.11194, 0.18408),
        "FNO MLP, No & No & ON & 32": (0.04083, 0.05681, 0.06516, 0.10959, 0.15138, 0.22287),
        "FNO MLP, No & Yes & ON & 32": (0.01419, 0.02157, 0.02917, 0.06323, 0.09880, 0.17095),
        "FNO MLP, Yes & No & ON & 32": (0.06584, 0.06874, 0.06802, 0.13861, 0.22819, 0.35919),
        "FNO MLP, Yes & Yes & ON & 32": (0.01750, 0.02457, 0.02863, 0.06271, 0.13394, 0.23217),
    },
)

TABLES = (
    DARCY,
    DARCY_SYMMETRY,
    BURGERS,
    HELMHOLTZ,
    NAVIER_STOKES,
    BURGERS_EMBEDDING,
    HELMHOLTZ_EMBEDDING,
    DECOMPOSITION,
    NAVIER_STOKES_SPACETIME,
)


def check(tex: str) -> list[str]:
    """Rows of `TABLES` whose numbers do not stand next to one another in the paper's source."""
    cells = re.sub(r"\\textbf\{([^}]*)\}", r"\1", tex)
    return [
        f"{table.label}, {name}: {values}"
        for table in TABLES
        for name, values in table.rows.items()
        if table is not DECOMPOSITION and not _row(name, values).search(cells)
    ] + [
        f"{DECOMPOSITION.label}, iteration {i}: {error}, {gain}"
        for i, (error, gain) in enumerate(zip(*DECOMPOSITION.rows.values(), strict=True))
        if not re.search(rf"\n{i} \([^&]*& {_number(error)} & (N/A|{_number(gain)})", cells)
    ]


def _row(name: str, values: tuple[float, ...]) -> re.Pattern:
    """A row's label and then its numbers, whatever zeros they end with."""
    label = name.split(", ")[-1]
    return re.compile(re.escape(label) + r"\s*&\s*" + r"\s*&\s*".join(map(_number, values)))


def _number(value: float) -> str:
    return re.escape(f"{value:g}") + r"0*\b"


if __name__ == "__main__":
    missing = check(pathlib.Path(sys.argv[1]).read_text())
    rows = sum(len(table.rows) for table in TABLES)
    print("\n".join(missing) or f"all {rows} rows of {len(TABLES)} tables stand in the paper")
    sys.exit(bool(missing))
