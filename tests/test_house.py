"""What holds the house up: the import arrow, imports without side effects, version and names."""

import ast
import builtins
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys

import pytest

import sino_jax
from benchmarks import architecture

ROOT = pathlib.Path(__file__).parent.parent
FORBIDDEN_IMPORTS = {
    "sino_jax": {"solvers", "experiments", "benchmarks", "tests"},
    "solvers": {"sino_jax", "experiments", "benchmarks", "tests"},
    "experiments": {"benchmarks", "tests"},
}


def imported_packages(path):
    """Top-level packages that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "relative import" if node.level else node.module.split(".")[0]


@pytest.mark.parametrize("package", FORBIDDEN_IMPORTS)
def test_imports_follow_the_arrow(package):
    for path in sorted((ROOT / package).rglob("*.py")):
        crossing = FORBIDDEN_IMPORTS[package] & set(imported_packages(path))
        assert not crossing, f"{path.relative_to(ROOT)} imports {crossing}"


def test_only_command_lines_know_of_the_programs():
    """The library works without solvers and experiments; `programs` finds them by name."""
    for path in sorted((ROOT / "sino_jax").rglob("*.py")):
        if path.name in ("cli.py", "__main__.py"):
            continue
        text = path.read_text()
        assert "import programs" not in text, f"{path.relative_to(ROOT)} imports programs"
        assert "sino_jax.programs" not in text or path.name == "programs.py", path


def test_rooms_import_only_rooms_of_their_own_floor_or_below():
    assert architecture.crossings() == []


def test_every_module_is_on_a_floor():
    placed = {room for rooms in architecture.FLOORS.values() for room in rooms}
    found = {architecture.room(module) for module in architecture.modules(ROOT)}
    assert found - placed == {"__init__"}


def test_a_trained_operator_needs_no_training_code():
    files = architecture.modules(ROOT)
    for module, path in files.items():
        if architecture.room(module) == "operator":
            used = {architecture.room(name) for name in architecture.imports(path, set(files))}
            assert "train" not in used, f"{module} imports train"


def undefined_names(path):
    """Names that a file reads and binds nowhere; the linter cannot tell them from axis names."""
    read, bound = set(), {*vars(builtins), "__file__", "__name__", "__doc__"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
    return read - bound


def test_no_file_reads_a_name_that_it_does_not_have():
    packages = ("sino_jax", "solvers", "experiments", "benchmarks", "tests")
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    wrong = {
        str(path.relative_to(ROOT)): names for path in files if (names := undefined_names(path))
    }
    assert wrong == {}


def module_names():
    """Every module of the library that is meant to be imported (not run)."""
    for package in ("sino_jax", "solvers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.stem != "__main__":
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


IMPORT_EVERYTHING = """
import importlib, json, sys, time
import jax, flax.linen, optax, orbax.checkpoint, ml_collections, jax.experimental
import jaxtyping, numpy, absl.app, absl.flags, absl.logging
from jax._src import xla_bridge
before = dict(jax.config.values)
start = time.perf_counter()
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
seconds = time.perf_counter() - start
changed = [key for key, value in jax.config.values.items() if before.get(key) != value]
print(json.dumps({
    "seconds": seconds, "changed": changed, "devices": xla_bridge.backends_are_initialized(),
}))
"""


def test_importing_has_no_side_effects():
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING, json.dumps(list(module_names()))],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert run.stderr == ""
    report = json.loads(run.stdout)
    assert report["changed"] == [], "an import changed jax.config"
    assert not report["devices"], "an import asked JAX for devices"
    # The time is reported, not judged finely: a slow machine must not fail a correct package.
    assert report["seconds"] < 10


def test_version_is_the_installed_one():
    assert sino_jax.__version__ == importlib.metadata.version("sino-jax")


def test_public_names_exist():
    for name in module_names():
        module = importlib.import_module(name)
        missing = [
            public for public in getattr(module, "__all__", []) if not hasattr(module, public)
        ]
        assert not missing, f"{name}.__all__ names {missing}"


def test_the_front_page_of_the_experiments_names_all_modules():
    directory = ROOT / "experiments"
    words = set(
        re.findall(r"\w+", ast.get_docstring(ast.parse((directory / "__init__.py").read_text())))
    )
    modules = {path.stem for path in directory.glob("[!_]*.py")}
    assert {name for name in modules - words if not name.endswith("_figures")} == set()
