"""Runs all benchmarks, or those named: ``python -m benchmarks elliptic train_step``."""

import importlib
import pathlib
import sys

from sino_jax import runtime

NAMES = sorted(
    path.stem for path in pathlib.Path(__file__).parent.glob("[a-z]*.py") if path.stem != "peers"
)

if __name__ == "__main__":
    runtime.use_tuned_allocator()
    chosen = sys.argv[1:] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"unknown benchmarks {unknown}; there are {NAMES}")
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()
