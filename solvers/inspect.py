"""Prints what a data set holds and draws a contact sheet of it.

    python -m solvers.inspect data/darcy-small/train-4 [--samples=4] [--image=sheet.png]

The sheet has a row for each sample: coefficient, boundary values along the perimeter and solution
of independent problems; frames over time of trajectories. Drawing needs matplotlib (the extra
``viz``).
"""

import argparse
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from solvers import storage

FRAMES = 6  # shown of a trajectory


def report(meta: Mapping[str, Any], fields: Mapping[str, np.ndarray]) -> str:
    """Metadata and statistics of a data set, as text."""
    grid = meta["grid"]
    axes = ", ".join(
        f"{name}: {points} points ({centring}-centred) on a length of {length:.4g}"
        for name, points, centring, length in zip(
            grid["axes"], grid["shape"], grid["centrings"], grid["extent"], strict=True
        )
    )
    lines = [
        f"{meta['equation']}, {meta['split']}, scale {meta['scale']:g}, "
        f"{meta['samples']} samples, seed {meta['seed']}",
        f"grid      {axes}",
    ]
    if meta["window"]:
        lines.append("window    " + _listing(meta["window"]))
    lines += [f"units     {name}: {meaning}" for name, meaning in meta["units"].items()]
    for name, field in fields.items():
        for channel, label, values in _real_parts(field):
            lines.append(
                f"field     {name}{channel}{label} {list(field.shape)} {field.dtype}: "
                f"min {values.min():.4g}, mean {values.mean(dtype=np.float64):.4g}, "
                f"std {values.std(dtype=np.float64):.4g}, max {values.max():.4g}"
            )
    for name, values in meta["measures"].items():
        limit = meta["limits"][name]
        lines.append(
            f"measure   {name}: median {np.median(values):.2g}, worst {max(values):.2g} "
            f"(sample {int(np.argmax(values))}), limit {limit:.2g}"
        )
    lines.append("config    " + _listing(meta["config"]))
    lines.append("versions  " + _listing(meta["versions"]))
    lines.append(f"checksum  {meta['checksum']}")
    return "\n".join(lines)


def contact_sheet(
    meta: Mapping[str, Any], fields: Mapping[str, np.ndarray], image: pathlib.Path, samples: int
) -> None:
    """Draws the first samples of a data set into the file `image`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("contact sheets need matplotlib: pip install 'sino-jax[viz]'") from None
    samples = min(samples, meta["samples"])
    if "trajectory" in fields:
        rows = list(_trajectory_rows(meta, fields["trajectory"][:samples]))
    else:
        closed = "t" not in meta["grid"]["axes"]
        rows = [_problem_row(fields, i, closed) for i in range(samples)]
    figure = Figure(figsize=(2.1 * len(rows[0]), 1.9 * len(rows)), layout="constrained")
    figure.suptitle(f"{meta['equation']}, {meta['split']}, scale {meta['scale']:g}", fontsize=10)
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for row, panels in zip(axes, rows, strict=True):
        for axis, (title, values) in zip(row, panels, strict=True):
            axis.set_title(title, fontsize=7)
            axis.tick_params(labelsize=6)
            if values.ndim == 1:
                axis.plot(values, linewidth=0.8)
                axis.set_xticks([])
            else:
                drawn = axis.imshow(
                    values.T, origin="lower", aspect="auto", interpolation="nearest"
                )
                axis.set_xticks([])
                axis.set_yticks([])
                axis.set_xlabel(meta["grid"]["axes"][0], fontsize=6, labelpad=1)
                axis.set_ylabel(meta["grid"]["axes"][1], fontsize=6, labelpad=1)
                figure.colorbar(drawn, ax=axis, shrink=0.8).ax.tick_params(labelsize=6)
    figure.savefig(image, dpi=75)


Panel = tuple[str, np.ndarray]


def _problem_row(fields: Mapping[str, np.ndarray], sample: int, closed: bool) -> list[Panel]:
    """Panels of one independent problem; array axis 0 runs to the right, axis 1 upwards."""
    panels = []
    if "coefficient" in fields:
        panels.append((f"{sample}: coefficient", fields["coefficient"][sample, ..., 0]))
    for channel, label, values in _real_parts(fields["solution"][sample]):
        boundary = perimeter(values, closed=closed)
        panels.append((f"{sample}: boundary{channel}{label}", boundary))
        panels.append((f"{sample}: solution{channel}{label}", values))
    return panels


def _trajectory_rows(meta: Mapping[str, Any], trajectories: np.ndarray) -> Iterator[list[Panel]]:
    shown = np.linspace(0, trajectories.shape[1] - 1, FRAMES).round().astype(int)
    for number, trajectory in enumerate(trajectories):
        for channel, _, values in _real_parts(trajectory):
            yield [
                (f"{number}{channel}: t = {frame * meta['window']['dt']:.3g}", values[frame])
                for frame in shown
            ]


def perimeter(field: np.ndarray, *, closed: bool = True) -> np.ndarray:
    """Values of a field ``[x, y]`` along its boundary, beginning and ending at the end of axis 0.

    Args:
      field: two-dimensional.
      closed: go all the way round. An evolution ``[t, x]`` is open: its last row is no data.
    """
    path = [field[::-1, 0], field[0, 1:], field[1:, -1]]
    return np.concatenate([*path, field[-1, -2::-1]] if closed else path)


def _real_parts(field: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
    """(channel, part, values) for every real number of a point; labels only where needed."""
    channels = field.shape[-1]
    for channel in range(channels):
        name = f" {channel}" if channels > 1 else ""
        values = field[..., channel]
        if np.iscomplexobj(values):
            yield name, " (re)", values.real
            yield name, " (im)", values.imag
        else:
            yield name, "", values


def _listing(entries: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in entries.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=pathlib.Path, help="directory of the data set")
    parser.add_argument("--samples", type=int, default=4, help="rows of the contact sheet")
    parser.add_argument("--image", type=pathlib.Path, help="default: PATH with ending .png")
    options = parser.parse_args()
    try:
        meta, fields = storage.read(options.path)
    except (OSError, ValueError, storage.StorageError) as error:
        sys.exit(f"error: {options.path} is no finished data set: {error}")
    image = options.image or options.path.with_name(options.path.name + ".png")
    contact_sheet(meta, fields, image, options.samples)
    sys.stdout.write(f"{report(meta, fields)}\nsheet     {image}\n")


if __name__ == "__main__":
    main()
