"""Makes the notebooks: executes the scripts of this directory and writes them with their outputs.

    make notebooks                              all of them, on tiny settings, nothing is written
    make notebooks-write                        all of them as they are published
    python -m notebooks.build 01 03 --write     some of them
    python -m notebooks.build --check           whether the published files are those of the scripts
    python -m notebooks.build --texts           new texts, badges and install cells, the old outputs

The source of ``01_scale_consistency.ipynb`` is ``01_scale_consistency.py``, a script whose cells
begin with ``# %%`` or, those of text, ``# %% [markdown]``. Badge and install cell are added here,
so that the address of the repository stands in one place. With ``SINO_JAX_QUICK=1`` in the
environment (which is what leaving out ``--write`` sets) trainings take a few steps.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

HERE = pathlib.Path(__file__).parent
# Where a published copy is: what Colab opens, and installs from.
REPOSITORY = "OWNER/sino-jax"
BRANCH = "main"
QUICK = "SINO_JAX_QUICK"
LARGEST_FILE = 500_000

BADGE = (
    "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "(https://colab.research.google.com/github/{repository}/blob/{branch}/notebooks/{name}.ipynb)"
)
INSTALL = """\
# Colab has no sino-jax: it is installed there. Where it is installed, nothing happens.
import importlib.util, os, tempfile

if importlib.util.find_spec("sino_jax") is None:
    %pip install --quiet "sino-jax[notebooks] @ git+https://github.com/{repository}@{branch}"

import sino_jax.programs, sino_jax.runtime

sino_jax.programs.enable()  # makes `import solvers` possible: the programs that make the data
sino_jax.runtime.use_compilation_cache()  # a second run compiles nothing
os.chdir(tempfile.mkdtemp())  # data and runs of this notebook
QUICK = os.environ.get("{quick}") == "1"  # tiny settings, to see whether everything runs

%matplotlib inline
%config InlineBackend.figure_formats = ["jpeg"]"""


def sources() -> list[pathlib.Path]:
    """The scripts, in order."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def cells(text: str) -> list[tuple[str, str]]:
    """Kind ("markdown" or "code") and text of each cell of a script."""
    found = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if head.strip() == "[markdown]":
            found.append(("markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()))
        elif not head.strip():
            # What only IPython understands is a comment of the script.
            found.append(("code", re.sub(r"^# ([!%])", r"\1", body, flags=re.MULTILINE).strip()))
        else:
            raise ValueError(f"a cell begins with '# %%' or '# %% [markdown]', got '# %%{head}'")
    return found


def notebook(source: pathlib.Path) -> dict[str, Any]:
    """The notebook of a script, without outputs: its title, badge, install cell, and the rest."""
    (kind, title), *rest = cells(source.read_text())
    if kind != "markdown" or not title.startswith("# "):
        raise ValueError(f"{source.name} must begin with a cell of text that has a title")
    place = {"repository": REPOSITORY, "branch": BRANCH, "name": source.stem, "quick": QUICK}
    parts = [
        ("markdown", f"{BADGE.format(**place)}\n\n{title}"),
        ("code", INSTALL.format(**place)),
        *rest,
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        # Random identifiers of cells would change the file at every build.
        "cells": [_cell(f"cell-{i}", *part) for i, part in enumerate(parts)],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    outputs = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {}, "source": text, **outputs}


def execute(made: dict[str, Any], *, timeout: int) -> str:
    """Runs all cells; the first that fails raises an error with its traceback.

    Returns:
      The notebook with outputs, as the text of its file.
    """
    import nbformat
    from nbclient import NotebookClient

    node = nbformat.from_dict(made)
    # What a bar overwrites is not kept.
    NotebookClient(node, timeout=timeout, kernel_name="python3", coalesce_streams=True).execute()
    for cell in node.cells:
        cell.metadata.pop("execution", None)  # times, which differ at every build
    # Warnings name the files that they come from; cells are temporary ones.
    text = nbformat.writes(node).replace(f"{HERE.parent}/", "")
    return re.sub(r"[^\s\"]*/ipykernel_\d+/\d+\.py", "cell", text)


def stale(source: pathlib.Path) -> bool:
    """Whether the published notebook is missing, or was made of another script."""
    path = source.with_suffix(".ipynb")
    if not path.exists():
        return True
    published = json.loads(path.read_text())["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in published] != [
        (cell["cell_type"], cell["source"]) for cell in notebook(source)["cells"]
    ]


def with_outputs(source: pathlib.Path) -> str:
    """The notebook of a script with the outputs of the published one.

    Raises:
      ValueError: cells of code have changed, but for the install cell: the outputs are not theirs.
    """
    made = notebook(source)
    published = json.loads(source.with_suffix(".ipynb").read_text())
    new, old = ([c for c in n["cells"] if c["cell_type"] == "code"] for n in (made, published))
    if [c["source"] for c in new[1:]] != ["".join(c["source"]) for c in old[1:]]:
        raise ValueError(f"code of {source.stem} has changed: --write executes it")
    for cell, executed in zip(new, old, strict=True):
        cell |= {name: executed[name] for name in ("outputs", "execution_count")}
    for cell in made["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)  # as nbformat writes it
    made["metadata"] = published["metadata"]
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="beginnings of names, as 01; all by default")
    parser.add_argument("--write", action="store_true", help="full settings; writes the files")
    parser.add_argument("--check", action="store_true", help="only compares files with scripts")
    parser.add_argument("--texts", action="store_true", help="keeps outputs; for changes of text")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where --write writes")
    parser.add_argument("--quick", action="store_true", help="tiny settings, also with --write")
    parser.add_argument("--timeout", type=int, default=1800, help="of a cell, in seconds")
    arguments = parser.parse_args(argv)
    chosen = [
        source
        for source in sources()
        if not arguments.names or source.stem.startswith(tuple(arguments.names))
    ]
    if not chosen:
        sys.exit(f"error: no notebook begins with one of {arguments.names}")
    if arguments.check:
        if old := [source.stem for source in chosen if stale(source)]:
            sys.exit(f"error: make notebooks-write is needed, for {', '.join(old)}")
        return
    if arguments.texts:
        try:
            written = {source: with_outputs(source) for source in chosen}
        except ValueError as error:
            sys.exit(f"error: {error}")
        for source, text in written.items():
            (arguments.out / f"{source.stem}.ipynb").write_text(text + "\n")
        return
    os.environ[QUICK] = "0" if arguments.write and not arguments.quick else "1"
    for source in chosen:
        start = time.monotonic()
        text = execute(notebook(source), timeout=arguments.timeout)
        size = len(text.encode())
        print(f"{source.stem}: {time.monotonic() - start:.0f} s, {size / 1000:.0f} kB", flush=True)
        if arguments.write:
            (arguments.out / f"{source.stem}.ipynb").write_text(text + "\n")
        if size > LARGEST_FILE:
            sys.exit(f"error: {source.stem} has more than {LARGEST_FILE / 1000:.0f} kB")


if __name__ == "__main__":
    main()
