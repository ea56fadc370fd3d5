"""``--config`` in all its forms, from any directory, and its one-line errors."""

import pathlib

import pytest

import experiments.configs
import solvers.configs
from solvers.configs import argument

SOLVERS = pathlib.Path(solvers.configs.__file__).parent
EXPERIMENTS = pathlib.Path(experiments.configs.__file__).parent


@pytest.mark.parametrize(
    "value",
    ["tiny,model=unet", "darcy:tiny,model=unet", "experiments/configs/darcy.py:tiny,model=unet"],
)
def test_all_forms_give_the_same_config_from_any_directory(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = argument.load(value, EXPERIMENTS, own="darcy")
    assert (config.equation, config.preset, config.model) == ("darcy", "tiny", "unet")


def test_a_file_of_the_working_directory_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "experiments" / "configs" / "darcy.py"
    own.parent.mkdir(parents=True)
    own.write_text(
        "import ml_collections\n"
        "def get_config(text='x'):\n"
        "    return ml_collections.ConfigDict({'text': text})\n"
    )
    assert argument.load("experiments/configs/darcy.py:a,b=1", EXPERIMENTS).text == "a,b=1"
    assert argument.load("experiments/configs/darcy.py", EXPERIMENTS).text == "x"


def test_expansion_keeps_the_rest_of_the_command_line():
    argv = ["program", "--data=d", "--config", "darcy:tiny", "--out=o"]
    expected = f"--config={SOLVERS / 'darcy.py'}:tiny"
    assert argument.expand(argv, SOLVERS) == ["program", "--data=d", expected, "--out=o"]


@pytest.mark.parametrize(
    ("value", "own", "part"),
    [
        ("nope", "darcy", "there is no preset 'nope', only"),
        ("tiny,modl=fno", "darcy", "did you mean 'model'?"),
        ("nope.py:tiny", "darcy", "there is no config file nope.py"),
        ("stokes:tiny", "darcy", "with a name of burgers, darcy"),
        ("helmholtz:tiny", "darcy", "must be a config of darcy, got one of helmholtz"),
        ("tiny", None, "name:preset,field=value with a name of burgers, darcy"),
        ("", None, "got nothing"),
    ],
)
def test_what_cannot_be_used_ends_the_program_with_one_line(value, own, part):
    with pytest.raises(SystemExit) as ended:
        argument.expand(["program", f"--config={value}"], EXPERIMENTS, own=own)
    assert part in ended.value.code
    assert ended.value.code.startswith("error: ")
    assert "\n" not in ended.value.code
