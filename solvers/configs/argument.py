"""The command-line argument ``--config``: a config file, and the text for its `get_config`.

    --config=small,model=fno                           the config file of the program itself
    --config=darcy:small                               one of the package's config files, by name
    --config=experiments/configs/darcy.py:small        any file

A file is looked for from the working directory, then from the directory that holds the package, so
that the last form works from anywhere, too.
"""

import importlib.util
import pathlib
import re
import sys
from collections.abc import Sequence

from ml_collections import ConfigDict

HELP = "preset,field=value; or FILE.py:preset,field=value"


def locate(
    value: str, directory: pathlib.Path, *, own: str | None = None
) -> tuple[pathlib.Path, str]:
    """The config file that `value` names, and the text after it.

    Args:
      value: of the argument.
      directory: of the package's config files, such as ``solvers/configs``.
      own: the name of the program's own config file; None if it has none.

    Raises:
      ValueError: there is no such file; names those that exist.
    """
    head, colon, text = value.partition(":")
    if head.endswith(".py"):
        for place in (pathlib.Path(), directory.parents[1]):
            if (place / head).is_file():
                return place / head, text
        raise ValueError(
            f"there is no config file {head}; without a file, --config takes "
            f"{'preset,field=value' if own else 'name:preset,field=value'}"
        )
    name = head if colon else own
    known = sorted(path.stem for path in directory.glob("[!_]*.py") if _defines_config(path))
    if name not in known:
        got = f"got {value!r}" if value else "got nothing"
        raise ValueError(
            f"--config must be {'preset,field=value or ' if own else ''}name:preset,field=value "
            f"with a name of {', '.join(known)}, or a file; {got}"
        )
    if own and name != own:
        raise ValueError(f"--config must be a config of {own}, got one of {name}: {value!r}")
    return directory / f"{name}.py", text if colon else value


def load(value: str, directory: pathlib.Path, *, own: str | None = None) -> ConfigDict:
    """The config of an argument; a ValueError says what is wrong with it. See `locate`."""
    file, text = locate(value, directory, own=own)
    spec = importlib.util.spec_from_file_location(f"config_of_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config(text) if text else module.get_config()


def expand(argv: Sequence[str], directory: pathlib.Path, *, own: str | None = None) -> list[str]:
    """A command line whose ``--config`` is in the form ``file:text``, which absl's flag takes.

    Ends the program with one line if the argument cannot be used.
    """
    if not any(argument.lstrip("-").startswith(("config", "help")) for argument in argv[1:]):
        example = "small" if own else "darcy:small"
        sys.exit(f"error: --config must be given, as in --config={example}")
    expanded, rest = [], iter(argv)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if flag in ("--config", "-config"):
            value = value if equals else next(rest, "")
            try:
                file, text = locate(value, directory, own=own)
                load(value, directory, own=own)
            except (ValueError, TypeError) as error:
                sys.exit(f"error: {error}")
            argument = f"--config={file}:{text}" if text else f"--config={file}"
        expanded.append(argument)
    return expanded


def _defines_config(path: pathlib.Path) -> bool:
    return (
        re.search(r"^def get_config\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
    )
