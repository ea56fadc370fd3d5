"""The rooms of the library and the floors they stand on, drawn from the imports in the code.

    python -m benchmarks architecture            this tree
    python -m benchmarks.architecture PATH       another checkout, for before and after

Prints the modules of ``sino_jax`` with their lines, room by room, from the ground up; which rooms
each room imports; and the longest file and function. ``tests/test_house.py`` holds the floors.
"""

import ast
import pathlib
import sys
from collections import Counter, defaultdict

ROOT = pathlib.Path(__file__).parent.parent
# From the ground up: a room imports rooms of its own floor or below.
FLOORS = {
    "what a problem is": (
        "types",
        "checks",
        "norms",
        "grid",
        "channels",
        "boundary",
        "equations",
        "problem",
    ),
    "the central sentence": ("subdomain", "superdomain", "augment", "rollout", "loss"),
    "networks": ("nn", "base", "krylov", "models"),
    "test time": ("partition", "diagnostics", "decomposition", "sweep", "scale_range"),
    "plumbing": ("files", "data", "checkpoint", "runtime", "operator", "train"),
    "commands": ("predict", "programs", "cli", "__main__"),
}


def modules(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Dotted names below ``sino_jax`` (without it) and their files."""
    package = root / "sino_jax"
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"] = path
    return found


def room(module: str) -> str:
    return module.partition(".")[0]


def imports(path: pathlib.Path, known: set[str]) -> set[str]:
    """The modules of the library that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sino_jax"):
            below = node.module.removeprefix("sino_jax").lstrip(".")
            for alias in node.names:
                full = f"{below}.{alias.name}".lstrip(".")
                found.add(full if full in known else below)
    return found - {""}


def crossings(root: pathlib.Path = ROOT) -> list[str]:
    """Imports that go up a floor: there should be none."""
    level = {name: i for i, rooms in enumerate(FLOORS.values()) for name in rooms}
    files = modules(root)
    wrong = []
    for module, path in files.items():
        for imported in imports(path, set(files)):
            if level.get(room(imported), 0) > level.get(room(module), len(FLOORS)):
                wrong.append(f"{module} imports {imported}")
    return sorted(wrong)


def lines(path: pathlib.Path) -> int:
    return len(path.read_text().splitlines())


def longest_function(root: pathlib.Path) -> tuple[int, str]:
    """Lines and place of the longest function of the library, solvers and experiments."""
    longest = (0, "")
    for package in ("sino_jax", "solvers", "experiments"):
        for path in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    size = node.end_lineno - node.lineno + 1
                    longest = max(longest, (size, f"{path.relative_to(root)}:{node.name}"))
    return longest


def main(root: pathlib.Path = ROOT) -> None:
    files = modules(root)
    rooms = defaultdict(list)
    for module in files:
        rooms[room(module)].append(module)
    graph = {
        name: Counter(
            room(imported)
            for module in members
            for imported in imports(files[module], set(files))
            if room(imported) != name
        )
        for name, members in rooms.items()
    }
    placed = {name for names in FLOORS.values() for name in names}
    others = tuple(sorted(set(rooms) - placed - {"__init__"}))
    for floor, names in (*FLOORS.items(), *([("on no floor", others)] if others else [])):
        print(f"\n{floor}")
        for name in names:
            if name not in rooms:
                continue
            total = sum(lines(files[module]) for module in rooms[name])
            parts = [module.partition(".")[2] for module in rooms[name]]
            contents = " ".join(part for part in parts if part)
            below = " ".join(sorted(graph[name])) or "nothing"
            print(f"  {name:14s}{total:5d} lines  imports {below}")
            if contents:
                print(f"  {'':14s}{contents}")
    sizes = {
        package: sum(map(lines, (root / package).rglob("*.py")))
        for package in ("sino_jax", "solvers", "experiments", "tests", "benchmarks")
    }
    longest = max((lines(path), str(path.relative_to(root))) for path in files.values())
    print("\nlines:", ", ".join(f"{name} {count}" for name, count in sizes.items()))
    print("longest file of sino_jax: {1} ({0} lines)".format(*longest))
    print("longest function: {1} ({0} lines)".format(*longest_function(root)))
    up = crossings(root)
    print("imports that go up a floor:", ", ".join(up) if up else "none")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
