"""Command line of `solvers.interchange`."""

import argparse
import pathlib
import sys

from solvers import storage
from solvers.interchange import pdebench, the_well


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m solvers.interchange")
    parser.add_argument("action", choices=["import", "export"])
    parser.add_argument("layout", choices=["pdebench", "the_well"])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--equation", help="of the imported data")
    parser.add_argument("--split", choices=["train", "val", "test"], default="train")
    parser.add_argument("--scale", type=float, help="of the imported data, if the file has none")
    parser.add_argument("--history", type=int, help="frames given, for trajectories")
    parser.add_argument("--horizon", type=int, help="frames predicted, for trajectories")
    options = parser.parse_args()
    try:
        if options.action == "export":
            export = pdebench.export_file if options.layout == "pdebench" else the_well.export_files
            export(options.source, options.target)
            return
        if not options.equation:
            sys.exit("error: import needs --equation")
        window = None
        if options.history is not None or options.horizon is not None:
            window = {"history": options.history, "horizon": options.horizon or 1, "stride": 1}
            by_channel = options.equation == "navier_stokes"
            window["frames"] = "channel" if by_channel else "axis"
        module = pdebench if options.layout == "pdebench" else the_well
        module.import_file(
            options.source,
            options.target,
            equation=options.equation,
            split=options.split,
            scale=options.scale,
            window=window,
        )
    except (OSError, ValueError, KeyError, ImportError, storage.StorageError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
