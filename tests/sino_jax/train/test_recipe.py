"""Configs for data of one's own: every model fits every grid, and errors are one line."""

import json

import jax
import numpy as np
import pytest

from sino_jax import data, equations, models
from sino_jax.loss import crops
from sino_jax.train import command, recipe
from sino_jax.train import config as configs

GRIDS = {"darcy": (33, 17), "helmholtz": (24, 50), "burgers": (20, 41)}


@pytest.fixture(scope="module", params=GRIDS)
def dataset(request, tmp_path_factory):
    equation, shape = equations.get(request.param), GRIDS[request.param]
    solution = np.random.default_rng(0).normal(size=(5, *shape))
    coefficient = np.abs(solution) if equation.coefficient_channels else None
    path = tmp_path_factory.mktemp("recipe")
    made = data.from_arrays(
        path,
        equation=equation,
        solution=solution,
        coefficient=coefficient,
        scale=3.0,
        split={"train": 0.6, "val": 0.2, "test": 0.2},
    )
    return made["train-3"]


@pytest.mark.parametrize("model", models.MODELS)
@pytest.mark.parametrize("preset", ["tiny", "large"])
def test_the_model_of_a_recipe_takes_the_inputs_and_the_crops(dataset, model, preset):
    config = recipe.recipe([dataset], model=model, preset=preset, consistency="sub+super")
    completed = configs.complete(config)
    equation = equations.get(dataset.equation)
    network = models.build({**equation.model_fields(), **config["model"]})
    sizes = crops.fitting_sizes(config["loss"]["sub_sizes"], dataset.grid)
    assert sizes == config["loss"]["sub_sizes"]
    shapes = [dataset.grid, *(equation.crop_size(size, dataset.grid) for size in sizes)]
    assert min(min(shape) for shape in shapes) >= network.smallest_grid()
    # Shapes of inputs and outputs, without compiling or computing anything.
    for shape in shapes[:2] if preset == "tiny" else shapes[1:2]:
        inputs = jax.ShapeDtypeStruct((2, *shape, equation.input_channels), np.float32)
        scale = jax.ShapeDtypeStruct((2,), np.float32)
        output, _ = jax.eval_shape(network.init_with_output, jax.random.key(0), inputs, scale)
        assert output.shape == (2, *shape, equation.output_channels)
    assert completed.data.batch_size == 3


def test_stretched_sub_domains_reach_smaller_and_larger_scales(dataset):
    equation = equations.get(dataset.equation)
    if not equation.side_powers:
        with pytest.raises(ValueError, match=f"boxes of unequal sides .* got {equation.name}"):
            recipe.recipe([dataset], consistency="sub+stretch")
        return
    config = recipe.recipe([dataset], model="sino", consistency="sub+stretch")
    low, high = crops.trained_range(equation, [(3.0, dataset.grid)], config["loss"])
    assert low < 3 / 2 < 3 * 1.9 < high
    model = config["model"]
    assert (model["scale_embedding"], model["reference_scale"]) == ("octaves", pytest.approx(3.0))
    models.build({**equation.model_fields(), **model})


def test_small_grids_have_no_sub_domains(tmp_path):
    field = np.ones((2, 8, 8))
    made = data.from_arrays(tmp_path, equation="darcy", coefficient=field, solution=field, scale=1)
    with pytest.raises(ValueError, match="consistency must be none for grids of"):
        recipe.recipe([made["train-1"]])
    assert recipe.recipe([made["train-1"]], consistency="none")["loss"] == {}


@pytest.mark.parametrize("name", ["model", "preset", "consistency"])
def test_unknown_choices_are_named(dataset, name):
    with pytest.raises(ValueError, match=f"{name} must be one of .*, got 'nothing'"):
        recipe.recipe([dataset], **{name: "nothing"})


def test_the_command_finds_data_sets_and_shows_its_config(dataset, capsys):
    root = str(dataset.path.parent)
    changes = ["--set", "epochs=7", "optimizer.name=adam", "loss.sub_sizes=(9, 10)"]
    command.main([root, "--model=unet", "--preset=tiny", *changes, "--show"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["data"]["train"] == [str(dataset.path)]
    for use in ("val", "test"):
        assert shown["data"][use] == [str(dataset.path.with_name(f"{use}-3"))]
    assert (shown["epochs"], shown["optimizer"]["name"]) == (7, "adam")
    assert shown["loss"]["sub_sizes"] == [9, 10]
    assert shown["model"]["name"] == "unet"
    text = "tiny,model=unet,epochs=7,optimizer.name=adam,loss.sub_sizes=9+10"
    command.main([root, f"--config={text}", "--show"])
    assert json.loads(capsys.readouterr().out) == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config=huge,model=fno"], "preset must be one of .*'tiny', 'small', 'large'"),
        (["--config=tiny,epoch=3"], "did you mean 'epochs'"),
        (["--config=tiny,seed=one"], "seed must be a whole number, got 'one'"),
        (["--config=tiny,model=fno,model=uno"], "model is given twice"),
        (["--config=tiny", "--model=fno"], "--config replaces --model"),
        (["nowhere"], "nowhere is no data set, and no directory of data sets"),
        (["--preset=huge"], "preset must be one of .*'tiny', 'small', 'large'"),
        (["--set", "epochs"], "a change has the form field=value"),
        (["--set", "epoch=3"], "did you mean 'epochs'"),
        (["--equation=navier_stokes"], "holds data of"),
    ],
)
def test_errors_of_the_command_are_one_line(dataset, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [] if arguments == ["nowhere"] else [str(dataset.path)]
    with pytest.raises(SystemExit, match=f"error: .*{message}"):
        command.main([*given, *arguments])
