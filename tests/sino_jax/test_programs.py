"""The package as it is installed, in a directory with a user's own `solvers` and `experiments`."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import sino_jax
from sino_jax import programs, runtime

ROOT = pathlib.Path(__file__).parents[2]
PUBLIC = [
    "loss",
    "models",
    "equations",
    "train",
    "operator",
    "data",
    "decomposition",
    "diagnostics",
    "base",
    "nn",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A directory laid out by setup.py as ``site-packages`` is after an installation."""
    pytest.importorskip("setuptools")
    place = tmp_path_factory.mktemp("site")
    # Not in the source tree, where a build would leave its traces.
    command = ["-q", "egg_info", "--egg-base", os.fspath(place), "build_py", "--build-lib"]
    subprocess.run(
        [sys.executable, "setup.py", *command, os.fspath(place / "lib")], cwd=ROOT, check=True
    )
    return place / "lib"


@pytest.fixture
def user(tmp_path):
    """A working directory with a module and a package of the same names."""
    (tmp_path / "solvers.py").write_text("MINE = True\n")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("MINE = True\n")
    return tmp_path


def python(site, directory, *arguments, check=True):
    environment = {
        **os.environ,
        "PYTHONPATH": os.fspath(site),
        "JAX_PLATFORMS": "cpu",
        runtime.ALLOCATOR_SWITCH: "0",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment,
        check=check,
        capture_output=True,
        text=True,
    )


def test_a_wheel_has_no_top_level_names_but_its_own(site):
    assert [path.name for path in site.iterdir()] == ["sino_jax"]
    for package in programs.PACKAGES:
        shipped = site / "sino_jax" / "_programs" / package
        sources = {path.relative_to(ROOT / package) for path in (ROOT / package).rglob("*.py")}
        assert {path.relative_to(shipped) for path in shipped.rglob("*.py")} == sources


def test_users_keep_their_modules_and_ask_for_ours(site, user):
    code = """
import sys, sino_jax.programs
before = list(sys.path)
import solvers, experiments
assert solvers.MINE and experiments.MINE and sys.path == before
try:
    sino_jax.programs.enable()
except ImportError as error:
    print(error)
"""
    output = python(site, user, "-c", code).stdout
    assert "a module 'solvers' of yours is imported already" in output
    code = """
import sino_jax.programs
sino_jax.programs.enable(); sino_jax.programs.enable()
import solvers.configs.darcy, experiments.configs.darcy
print(solvers.__file__, experiments.__file__)
"""
    output = python(site, user, "-c", code).stdout
    assert output.count("_programs") == 2


def test_commands_use_ours_from_any_directory(site, user):
    output = python(
        site, user, "-m", "sino_jax", "generate", "--config=darcy:tiny", "--only=test-2"
    )
    assert "data/darcy-tiny/test-2: coefficient [4, 17, 17, 1]" in output.stdout
    output = python(site, user, "-m", "sino_jax", "run", "darcy", "--config=nope", check=False)
    assert output.returncode == 1
    assert output.stderr.strip().splitlines()[-1].startswith("error: there is no preset 'nope'")
    output = python(site, user, "-m", "sino_jax", "run", "nothing", check=False)
    assert output.stderr.startswith("error: sino-jax run takes one of burgers, darcy, ")
    output = python(site, user, "-m", "sino_jax", "run", "darcy", "small", check=False)
    assert output.stderr.strip().splitlines()[-1] == (
        "error: --config must be given, as in --config=small"
    )
    output = python(site, user, "-m", "sino_jax", "run", "--help")
    assert output.stdout.startswith("usage: sino-jax run {burgers,darcy,")


CHILD = """
import json, multiprocessing, os, subprocess, sys
from sino_jax import programs

def where():
    import experiments, solvers
    return [experiments.__file__, solvers.__file__]

if __name__ == "__main__":
    code = "import experiments, solvers; print(experiments.__file__, solvers.__file__)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(json.dumps([*child.stdout.split(), *pool.apply(where)]))
"""


def test_processes_that_a_command_starts_find_ours_too(site, user):
    shipped = site / "sino_jax" / "_programs"
    module = shipped / "solvers" / "started.py"
    module.write_text(CHILD)
    code = "from sino_jax import programs as p; p.run(p.find('solvers.started'), ['started'])"
    try:
        found = json.loads(python(site, user, "-c", code).stdout)
    finally:
        module.unlink()
    assert [pathlib.Path(path).parents[1] for path in found] == [shipped] * 4


def test_in_a_clone_the_programs_are_beside_the_library():
    assert programs.directory() == ROOT
    spec = programs.find("solvers.interchange")
    assert spec.name == "solvers.interchange.__main__"
    assert programs.find("experiments.no_such_program") is None


def test_public_names_after_a_bare_import():
    code = (
        "import sys, sino_jax; assert 'jax' not in sys.modules;"
        f"assert set({PUBLIC}) <= set(dir(sino_jax));"
        f"[getattr(sino_jax, name) for name in {PUBLIC}];"
        "print(sino_jax.loss.relative_l2.__name__, sino_jax.train.fit.__name__)"
    )
    assert python(ROOT, ROOT, "-c", code).stdout == "relative_l2 fit\n"
    with pytest.raises(AttributeError, match="no attribute 'lose'"):
        _ = sino_jax.lose
