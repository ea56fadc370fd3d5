"""Where the programs around the library are: `solvers` makes data, `experiments` trains tables.

Both are packages beside `sino_jax` in a clone of the repository. An installed package keeps them in
a directory of its own, ``sino_jax/_programs``, since their names are common: nothing of yours that
is called ``solvers`` or ``experiments`` is ever in their way, nor they in yours. The command
``sino-jax`` finds them by itself; in Python it takes one call, which is an explicit choice:

    import sino_jax.programs
    sino_jax.programs.enable()
    import solvers.darcy

Importing this module changes nothing, and the library itself never imports the programs.
"""

import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import types

# Each package, with a module by which it is told from a user's package of the same name.
PACKAGES = {"solvers": "generate.py", "experiments": "runner.py"}
INSTALLED = "_programs"


def directory() -> pathlib.Path:
    """The directory that holds the packages `solvers` and `experiments` of this installation."""
    package = pathlib.Path(__file__).resolve().parent
    for place in (package / INSTALLED, package.parent):
        if all((place / name / module).is_file() for name, module in PACKAGES.items()):
            return place
    raise FileNotFoundError(
        f"{package} comes without the programs solvers and experiments: "
        "install the whole package, or work in a clone of its repository"
    )


def enable() -> pathlib.Path:
    """Makes `import solvers` and `import experiments` mean this package's, in this process.

    Puts `directory` first on `sys.path`; a second call does nothing new.

    Raises:
      ImportError: another module of one of these names is imported already. It would be replaced
        for everybody, hence the refusal: call this earlier, or use a process of its own.
    """
    place = directory()
    for name in PACKAGES:
        module = sys.modules.get(name)
        if module is not None and place not in map(pathlib.Path, _parents(module)):
            found = getattr(module, "__file__", None) or list(getattr(module, "__path__", []))
            raise ImportError(
                f"a module {name!r} of yours is imported already ({found}): call "
                "sino_jax.programs.enable() before that import, or in a process of its own"
            )
    entry = os.fspath(place)
    if sys.path[:1] != [entry]:
        sys.path[:] = [entry, *(other for other in sys.path if other != entry)]
        importlib.invalidate_caches()
    return place


def find(module: str) -> importlib.machinery.ModuleSpec | None:
    """What ``python -m module`` would run, None if there is no such program."""
    if module.partition(".")[0] in PACKAGES:
        enable()
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{module}.__main__")
    return spec


def run(spec: importlib.machinery.ModuleSpec, argv: list[str]) -> None:
    """Runs what `find` found as ``python -m`` would, with `argv` as its command line.

    For a process that does nothing else: `sys.argv` and ``__main__`` become the program's, and
    processes that it starts find the packages, too, also in a directory with packages of the same
    names.
    """
    if spec.name.partition(".")[0] in PACKAGES:
        place = os.fspath(directory())
        others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        paths = [place, *(path for path in others if path not in ("", place))]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        # Otherwise `python -m` puts the working directory before PYTHONPATH.
        os.environ["PYTHONSAFEPATH"] = "1"
    main = types.ModuleType("__main__")
    main.__dict__.update(__spec__=spec, __file__=spec.origin, __package__=spec.parent)
    sys.modules["__main__"], sys.argv = main, argv
    exec(spec.loader.get_code(spec.name), main.__dict__)


def _parents(module: types.ModuleType) -> list[str]:
    """The directories that an imported package or module was found in."""
    places = list(getattr(module, "__path__", [])) or [getattr(module, "__file__", None) or "?"]
    return [os.path.dirname(os.path.realpath(place)) for place in places]
