"""Where a result comes from: the code's revision and the packages it ran with."""

import functools
import importlib.metadata
import pathlib
import platform
import subprocess

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


def describe() -> dict[str, str | dict[str, str]]:
    """Git revision of the package's source (with a mark for local changes) and versions."""
    versions = {"python": platform.python_version()}
    for name in ("sino-jax", *PACKAGES):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {"revision": revision(), "versions": versions}


@functools.cache  # the code that runs was read when the process started
def revision() -> str:
    """``git describe`` of the source tree, or "unknown" if it is no repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        result = subprocess.run(
            command,
            cwd=pathlib.Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return result.stdout.strip()
