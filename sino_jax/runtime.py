"""Settings of a process that only a command-line entry point may make; importing makes none.

if __name__ == "__main__":
    runtime.prepare()     # may start the process again, before JAX starts
    app.run(main)
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping

# Large temporaries of a training step are kept by the process instead of being returned to the
# system and page-faulted back at the next step, and live in huge pages.
ALLOCATOR = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**28),
    "MALLOC_ARENA_MAX": "1",
}
# Set to 0 to keep the system's allocator settings; set to "done" by the re-execution itself.
ALLOCATOR_SWITCH = "SINO_JAX_TUNED_ALLOCATOR"
ACCELERATORS = frozenset({"cuda", "gpu", "rocm", "tpu"})
CACHE_SWITCH = "SINO_JAX_COMPILATION_CACHE"


def prepare() -> None:
    """What a command line that trains or predicts does first; may start the process again."""
    reserve_standard_streams()
    print_what_can_be_printed()
    check_platforms(os.environ)
    use_tuned_allocator()
    use_synchronous_dispatch()
    use_compilation_cache()


def use_tuned_allocator() -> None:
    """Executes the running program again with glibc's allocator tuned; on Linux CPU, once.

    glibc reads these settings when a process starts, hence the re-execution; it is announced on
    stderr. Nothing happens if the program will run on an accelerator or only prints its help, if
    the settings are there, or if the environment has ``SINO_JAX_TUNED_ALLOCATOR=0``.
    """
    environment = tuned_environment(os.environ)
    if environment is None or {"-h", "--help"} & set(sys.argv):
        return
    say(
        f"restarting with a tuned memory allocator ({ALLOCATOR_SWITCH}=0 in the environment turns "
        "this off)"
    )
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def tuned_environment(environment: Mapping[str, str]) -> dict[str, str] | None:
    """`environment` with the allocator's settings added, or None if they do not apply.

    Settings that the user made are kept.
    """
    platforms = environment.get("JAX_PLATFORMS", "")
    runs_on_cpu = platforms == "cpu" if platforms else not _has_accelerator_plugin()
    if not sys.platform.startswith("linux") or not runs_on_cpu:
        return None
    if environment.get(ALLOCATOR_SWITCH) in ("0", "done"):
        return None
    return {**ALLOCATOR, **environment, ALLOCATOR_SWITCH: "done"}


def use_synchronous_dispatch() -> None:
    """Computes on the CPU within the call that asks for it; call it before JAX has any device.

    A step that is dispatched ahead takes its temporaries before those of the step under way are
    free, so that a process needs twice or three times their memory. Accelerators are not affected.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)


def use_compilation_cache(directory: str | os.PathLike | None = None) -> pathlib.Path | None:
    """Keeps compiled programs on disk, so that a second start compiles nothing.

    Args:
      directory: where; by default ``SINO_JAX_COMPILATION_CACHE`` of the environment (0 turns the
        cache off), else ``sino_jax`` in the user's cache directory.

    Returns:
      The directory in use, None if the cache is off, which it also is if the directory cannot be
      written: that is said once, on stderr.
    """
    import jax  # not above: a process that will start again need not wait for it

    chosen = os.fspath(directory) if directory is not None else os.environ.get(CACHE_SWITCH, "")
    if chosen == "0":
        return None
    default = user_cache()
    path = pathlib.Path(chosen) if chosen else default and default / "compiled"
    if path is None or not _is_writable(path):
        say(
            f"compiled programs are not kept: {path or 'no home directory'} cannot be written "
            f"({CACHE_SWITCH}=DIR in the environment names another place)"
        )
        return None
    jax.config.update("jax_compilation_cache_dir", os.fspath(path))
    # Programs of a second and more: below that, reading them is no faster than compiling.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return path


def reserve_standard_streams() -> None:
    """Opens standard streams that were closed (``2>&-``) as the null device.

    Otherwise the next file that is opened takes their number, and whatever a library writes to
    stderr goes into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken, which is this one.
            os.open(os.devnull, os.O_RDWR)


def print_what_can_be_printed() -> None:
    """Characters that the terminal's encoding lacks (λ in the C locale) are printed as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def check_platforms(environment: Mapping[str, str]) -> None:
    """Ends the program if the environment asks for an accelerator that JAX has no plugin for.

    Whether the plugin finds a device is left to JAX: to ask for devices here would start it, which
    a program of several processes must not do yet.
    """
    asked = environment.get("JAX_PLATFORMS", "").split(",")
    if set(asked) <= ACCELERATORS and not _has_accelerator_plugin():
        sys.exit(
            f"error: JAX_PLATFORMS={','.join(asked)} asks for an accelerator, but JAX is installed "
            "without support for one: unset JAX_PLATFORMS, or install jax with it"
        )


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which outlives what a cell does."""
    return "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel")


def say(text: str) -> None:
    """One line on stderr, if anybody can read it; a closed or broken stderr ends nothing."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def user_cache() -> pathlib.Path | None:
    """This package's directory in the user's cache, which need not exist; None without a home."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return (pathlib.Path(given) if given else pathlib.Path.home() / ".cache") / "sino_jax"
    except RuntimeError:
        return None


def write_quietly(path: pathlib.Path, text: str) -> None:
    """Writes a file of a cache, whole or not at all; nothing happens where that is impossible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_text(text)
        temporary.replace(path)
    except OSError:
        pass


def _is_writable(path: pathlib.Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        # Trying is the only test: permissions do not tell of read-only or full file systems.
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _has_accelerator_plugin() -> bool:
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "libtpu")
    return any(importlib.util.find_spec(name) is not None for name in plugins)
