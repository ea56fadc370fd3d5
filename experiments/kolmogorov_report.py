"""Tables and figures of `experiments.kolmogorov`, with the paper's three statements beside ours.

    python -m experiments.kolmogorov_report --preset=small            # from runs/
    python -m experiments.kolmogorov_report --preset=small --write    # from and to results/

The first table has all rows that differ in width alone, the second those at several resolutions.
``--write`` makes ``results/kolmogorov/<preset>/table.md``, and the figures beside it, from the
results that the campaign keeps there; without it figures go to ``runs/kolmogorov/<preset>/``.
"""

import argparse
import pathlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments import kolmogorov_figures, models, outcome, tables
from experiments.configs import kolmogorov as configs
from solvers.configs import kolmogorov as data_configs

# What sets the width of each model, in the order of the tables.
WIDTHS = {
    "fno": "hidden_channels",
    "unet": "pyramid_channels",
    "fno_unet": "pyramid_channels",
    "uno": "hidden_channels",
    "sino": "sino_channels",
    "sino_u": "sino_channels",
}
# Resolutions count as equally good if their errors differ by less than this part.
FLAT = 0.1


class Row(NamedTuple):
    """All seeds of one row.

    Attributes:
      model, width: what it is.
      flow: preset of its data, which says whether it is forced.
      seen: points a side.
      modes: that its kernels keep, all that the grid holds for a shared kernel; 0 for a UNet.
      comparable: whether it differs from its preset in nothing but the model, its width and flow.
      errors: of one step in percent, one for each seed.
      measures: those of `experiments.kolmogorov`, one for each seed.
    """

    model: str
    width: int
    flow: str
    seen: int
    modes: int
    comparable: bool
    errors: tuple[float, ...]
    measures: tuple[Mapping[str, Any], ...]

    @property
    def error(self) -> float:
        return statistics.mean(self.errors)

    @property
    def label(self) -> str:
        return f"{models.LABELS[self.model]}, width {self.width}"

    @property
    def full_band(self) -> bool:
        return self.modes >= self.seen // 2

    def cost(self, name: str) -> float:
        """Parameters and bytes are the same for all seeds; of times the shortest counts."""
        return min(measures[name] for measures in self.measures)

    def divergence_time(self) -> float:
        return statistics.mean(t for m in self.measures for t in m["divergence_times"])

    def epochs_to(self, error: float) -> float | None:
        """Mean over seeds of the first epoch with at most this error (%); None if one has none."""
        first = [
            next((epoch for epoch, e in m["curve"] if 100 * e <= error), None)
            for m in self.measures
        ]
        return None if None in first else statistics.mean(first)

    def small_scales(self, spectrum: str, truth: str) -> float:
        """Energy in the upper half of the wave numbers relative to the truth's."""
        ratios = []
        for measures in self.measures:
            spectra = measures["spectra"]
            upper = slice(len(spectra[truth]) // 2, None)
            ratios.append(sum(spectra[spectrum][upper]) / max(sum(spectra[truth][upper]), 1e-30))
        return statistics.mean(ratios)


def rows_of(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of all results, by flow, model and width."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        grouped.setdefault(result["row"], []).append(result)
    rows = []
    for runs in grouped.values():
        config = ConfigDict(runs[0]["config"])
        preset = configs.get_config(config.preset)
        data = data_configs.get_config(config.data)
        modes = {"unet": 0, "sino": data.seen // 2, "sino_u": config.sino_modes[0]}
        same = ("n_modes", "sino_modes", "n_layers", "sino_layers", "epochs", "batch_size")
        same += ("learning_rate", "stride")
        rows.append(
            Row(
                config.model,
                config[WIDTHS[config.model]],
                config.data.split(",")[0],
                data.seen,
                modes.get(config.model, config.n_modes[0]),
                "," not in config.data
                and all(tuple(_entries(config[f])) == tuple(_entries(preset[f])) for f in same),
                tuple(100 * e for run in runs for e in outcome.errors_by_scale(run).values()),
                tuple(run["measures"] for run in runs),
            )
        )
    order = list(WIDTHS)
    return sorted(rows, key=lambda r: (r.flow, order.index(r.model), r.width, r.seen, r.modes))


def _entries(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def cost_table(rows: Sequence[Row]) -> str:
    """One line for each width of each model, of one flow."""
    target = best(rows, "fno")
    head = "| model | parameters | memory (MiB) | step (ms) | error (%) | epochs to the best FNO's "
    head += "error | divergence time | small-scale energy: one step, end of rollout |"
    lines = [head, "|" + "---|" * 8]
    for row in rows:
        epochs = None if target is None else row.epochs_to(target.error)
        horizon = row.measures[0]["horizon"]
        time = row.divergence_time()
        kept = (("one step", "truth"), ("rollout, end", "truth, end"))
        cells = [
            row.label,
            f"{row.cost('parameters'):,.0f}",
            f"{row.cost('bytes') / 2**20:.0f}",
            f"{1000 * row.cost('step_seconds'):.0f}",
            percent(row.errors),
            "–" if epochs is None else f"{epochs:.0f}",
            f"≥ {horizon:g}" if time >= horizon else f"{time:.2f}",
            ", ".join(f"{row.small_scales(*pair):.2f}" for pair in kept),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def resolution_lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of one model and width at several resolutions: with the full band, and fixed modes."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        if row.model == "unet":
            lines.setdefault(row.label, []).append(row)
            continue
        if row.full_band:
            lines.setdefault(f"{row.label}, all modes", []).append(row)
        if row.model != "sino":
            lines.setdefault(f"{row.label}, {row.modes} modes", []).append(row)
    several = {name: sorted(line, key=lambda r: r.seen) for name, line in lines.items()}
    return {name: line for name, line in several.items() if len({r.seen for r in line}) > 1}


def resolution_table(lines: Mapping[str, Sequence[Row]]) -> str:
    sizes = sorted({row.seen for line in lines.values() for row in line})
    text = [f"| model | {' | '.join(f'{n}²' for n in sizes)} |", "|---|" + "---|" * len(sizes)]
    for name, line in lines.items():
        by_size = {row.seen: percent(row.errors) for row in line}
        text.append(f"| {name} | {' | '.join(by_size.get(n, '–') for n in sizes)} |")
    return "\n".join(text) + "\n"


def percent(errors: Sequence[float]) -> str:
    spread = f" ± {(max(errors) - min(errors)) / 2:.2f}" if len(errors) > 1 else ""
    return f"{statistics.mean(errors):.2f}{spread}"


def best(rows: Sequence[Row], model: str) -> Row | None:
    own = [row for row in rows if row.model == model]
    return min(own, key=lambda row: row.error) if own else None


def shared_kernel(rows: Sequence[Row]) -> str:
    """Is the FNO's error reached with a tenth of its parameters?"""
    fno, sino = best(rows, "fno"), best(rows, "sino")
    if fno is None or sino is None:
        return "not measured"
    goal = f"the best FNO ({fno.error:.2f} % with {fno.cost('parameters'):,.0f} parameters)"
    reaching = [row for row in rows if row.model == "sino" and row.error <= fno.error]
    if not reaching:
        parameters = sino.cost("parameters")
        return f"no: {goal} is not reached, the best SINO has {sino.error:.2f} %, {parameters:,.0f}"
    least = min(row.cost("parameters") for row in reaching)
    factor = fno.cost("parameters") / least
    return f"{'yes' if factor >= 10 else 'no'}: {goal} is reached with {least:,.0f}, 1/{factor:.1f}"


def equal_memory(rows: Sequence[Row]) -> str:
    """Is SINO-U below all other models that need no more memory than it does?"""
    compared = []
    for row in (row for row in rows if row.model == "sino_u"):
        cheaper = [r for r in rows if r.model != "sino_u" and r.cost("bytes") <= row.cost("bytes")]
        if cheaper:
            other = min(cheaper, key=lambda r: r.error)
            compared.append((row, other, 100 * (1 - row.error / other.error)))
    if not compared:
        return "not measured"
    below = sum(gain > 0 for *_, gain in compared)
    row, other, gain = max(compared, key=lambda entry: entry[0].cost("bytes"))
    return (
        f"{'yes' if below == len(compared) else 'no'}: below in {below} of {len(compared)} widths; "
        f"at the most memory {row.error:.2f} % against {other.error:.2f} % ({other.label}), "
        f"{abs(gain):.0f} % {'less' if gain > 0 else 'more'}"
    )


def refinement(lines: Mapping[str, Sequence[Row]]) -> str:
    """Do errors fall with the resolution without truncation, and stay with fixed modes?"""
    words, verdicts = [], []
    for name, line in lines.items():
        errors = [row.error for row in line]
        untruncated = line[0].model in ("sino", "sino_u") and all(row.full_band for row in line)
        fixed = line[0].model == "fno" and len({row.modes for row in line}) == 1
        if untruncated:
            verdicts.append(all(np.diff(errors) < 0))
        elif fixed:
            verdicts.append(errors[-1] > (1 - FLAT) * errors[0])
        else:
            continue
        words.append(f"{name}: {' → '.join(f'{e:.2f}' for e in errors)} %")
    if not words:
        return "not measured"
    return f"{'yes' if all(verdicts) else 'no'}: {'; '.join(words)}"


def statements(rows: Sequence[Row], lines: Mapping[str, Sequence[Row]]) -> str:
    """The paper's statements and what holds here."""
    pairs = {
        "the shared kernel reaches FNO's error with a tenth of the parameters": shared_kernel(rows),
        "SINO-U is below all other models at equal memory": equal_memory(rows),
        "the error falls with the training resolution without truncation, FNO's stays": refinement(
            lines
        ),
    }
    table = "".join(f"| {paper} | {ours} |\n" for paper, ours in pairs.items())
    return f"| paper | here |\n|---|---|\n{table}"


def document(rows: Sequence[Row]) -> str:
    """All tables, flow by flow."""
    parts = []
    for flow in dict.fromkeys(row.flow for row in rows):
        own = [row for row in rows if row.flow == flow]
        comparable = [row for row in own if row.comparable]
        lines = resolution_lines(own)
        parts.append(f"# Data {flow}\n\n{statements(comparable, lines)}")
        parts.append(f"## Cost and accuracy\n\n{cost_table(comparable)}")
        if lines:
            parts.append(f"## One-step error by training resolution\n\n{resolution_table(lines)}")
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="small")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--write", action="store_true", help="keep tables in the repository")
    arguments = parser.parse_args(argv)
    root = arguments.results if arguments.write else arguments.runs
    place = root / "kolmogorov" / arguments.preset
    rows = rows_of(tables.collect(place))
    if not rows:
        parser.exit(1, f"there are no results below {place}\n")
    text = document(rows)
    if arguments.write:
        (place / "table.md").write_text(text, encoding="utf-8")
    print(text)
    for flow in dict.fromkeys(row.flow for row in rows):
        own = [row for row in rows if row.flow == flow]
        for path in kolmogorov_figures.draw_all(own, resolution_lines(own), place, flow):
            print(path)


if __name__ == "__main__":
    main()
