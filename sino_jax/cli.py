"""The command ``sino-jax``, also ``python -m sino_jax``: one name for all programs.

    sino-jax run darcy --config=small,model=fno       one row of a table: data, training, errors
    sino-jax generate --config=darcy:small            data sets
    sino-jax inspect data/darcy-small/train-4         what a data set holds
    sino-jax import npz FILE data/mine --equation=darcy --map solution=u    data of your own
    sino-jax train data/mine --model=fno              training on it
    sino-jax predict darcy input.npz output.npz       solutions by a trained operator
    sino-jax tables darcy                             results beside the paper's
    sino-jax figures darcy
    sino-jax campaign FILE                            many rows
    sino-jax COMMAND --help                           the options of a command

In a clone the same programs are ``python -m experiments.darcy``, ``python -m solvers.generate`` and
so on; options are theirs.
"""

import argparse
import sys
from collections.abc import Sequence

import sino_jax
from sino_jax import programs, runtime

# command -> the module that it is; {} is the command's first argument.
COMMANDS = {
    "run": "experiments.{}",
    "generate": "solvers.generate",
    "inspect": "solvers.inspect",
    "interchange": "solvers.interchange",
    "import": "sino_jax.data.importing",
    "train": "sino_jax.train.command",
    "predict": "sino_jax.predict",
    "tables": "experiments.tables",
    "figures": "experiments.figures",
    "campaign": "experiments.campaign",
    "memory": "experiments.memory",
    "baselines": "experiments.baselines",
    "distances": "experiments.distances",
    "publish": "experiments.publish",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Finds the program of a command and hands over; what is wrong is said in one line."""
    parser = argparse.ArgumentParser(
        prog="sino-jax", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=sino_jax.__version__)
    parser.add_argument("command", choices=COMMANDS, metavar="command", help=", ".join(COMMANDS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the command")
    runtime.print_what_can_be_printed()
    chosen = parser.parse_args(argv)
    module, rest, name = COMMANDS[chosen.command], chosen.arguments, chosen.command
    try:
        if "{}" in module:
            known = runnable()
            if rest[:1] in (["-h"], ["--help"]):
                sys.stdout.write(f"usage: sino-jax {name} {{{','.join(known)}}} [options]\n")
                return
            if not rest or rest[0] not in known:
                got = repr(rest[0]) if rest else "nothing"
                sys.exit(f"error: sino-jax {name} takes one of {', '.join(known)}, got {got}")
            module, name, rest = module.format(rest[0]), f"{name} {rest[0]}", rest[1:]
        program = programs.find(module)
    except (FileNotFoundError, ImportError) as error:
        sys.exit(f"error: {error}")
    if program is None:
        sys.exit(f"error: this release has no program {module}")
    programs.run(program, [f"sino-jax {name}", *rest])


def runnable() -> list[str]:
    """Names of the experiments: the modules that have a config file and can be run."""
    files = programs.directory() / "experiments"
    return sorted(
        path.stem
        for path in files.glob("*.py")
        if (files / "configs" / path.name).is_file()
        and "__main__" in path.read_text(encoding="utf-8")
    )
