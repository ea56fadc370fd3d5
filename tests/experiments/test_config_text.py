"""Config text: what it says is what is meant, or one line says what is wrong, before any work."""

import importlib

import pytest

from experiments import darcy, naming, training
from sino_jax.train import config as configs

EXPERIMENTS = (
    "darcy", "helmholtz", "burgers", "navier_stokes", "navier_stokes_spacetime", "kolmogorov",
)  # fmt: skip


def get(package, name, text):
    return importlib.import_module(f"{package}.configs.{name}").get_config(text)


@pytest.mark.parametrize("package", ["solvers", "experiments"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_preset_keeps_its_own_rules(package, name):
    presets = importlib.import_module(f"{package}.configs.{name}").PRESETS
    assert all(get(package, name, preset).is_locked for preset in presets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tiny,preset=small", "preset is 'tiny' here and cannot be changed"),
        ("tiny,equation=burgers", "equation is 'darcy' here and cannot be changed"),
        ("tiny,changes=none", "changes is .* cannot be changed"),
        ("tiny,epochs=1,epochs=2", "epochs is given twice"),
        ("tiny,epochs", "written field=value, got 'epochs'"),
        ("tiny,", "written field=value, got ''"),
        ("", "there is no preset ''"),
        ("tiny,epoch=1", "there is no field 'epoch'.*did you mean 'epochs'"),
        ("tiny,epochs=many", "epochs takes a value like 2"),
        ("tiny,epochs=0", "epochs must be a whole number of at least 1, got 0"),
        ("tiny,epochs=-3", "epochs must be a whole number"),
        ("tiny,epochs=True", "epochs takes a value like 2"),
        ("tiny,epochs=1e400", "epochs takes a value like 2"),
        ("tiny,learning_rate=0", "learning_rate must be a positive number, got 0.0"),
        ("tiny,learning_rate=-1e-3", "learning_rate must be a positive number"),
        ("tiny,learning_rate=1e999", "learning_rate must be finite"),
        ("tiny,learning_rate=nan", "learning_rate takes a value like"),
        ("tiny,n_layers=0", "n_layers must be a whole number of at least 1"),
        ("tiny,n_levels=-1", "n_levels must be"),
        ("tiny,n_modes=0+4", "entries of n_modes must be a whole number of at least 1"),
        ("tiny,n_modes=4.5+4", "entries of n_modes must be a whole number"),
        ("tiny,n_modes=4+x", "n_modes takes a value like"),
        ("tiny,n_modes=4x4", "entries of n_modes must be a whole number"),
        ("tiny,stretched_sizes=9", "entries of stretched_sizes must be boxes of whole numbers"),
        ("tiny,stretched_sizes=9x1", "entries of stretched_sizes must be boxes of whole numbers"),
        ("tiny,base_extent=1x2", "entries of base_extent must be a positive number"),
        ("tiny,padding=-0.5", "padding must be a number from 0 to 4, got -0.5"),
        ("tiny,clip_norm=-1", "clip_norm must be a number of at least 0, got -1.0"),
        ("tiny,ema_decay=1", "ema_decay must be a number from 0 to less than 1, got 1.0"),
        ("tiny,super_rates=0.5", "entries of super_rates must be a number of at least 1"),
        ("tiny,super_start=2", "super_start must be a number from 0 to 1"),
        ("tiny,log_scale=maybe", "log_scale takes true or false, got 'maybe'"),
        ("tiny,log_scale=1", "log_scale takes true or false, got '1'"),
        ("tiny,scale_informed=true", "scale_informed must be one of yes, no, auto, got 'true'"),
        ("tiny,model=resnet", "model must be one of fno, .*, got 'resnet'"),
        ("tiny,consistency=subsuper", "consistency must be one of none, sub, super, sub.super"),
        ("tiny,base=poisson", "base must be one of none, coons, harmonic"),
        ("tiny,score=train", "score must be one of test, val"),
        ("tiny,data=tinny", "data=tinny: there is no preset 'tinny'"),
        ("tiny,data=tiny;train_samples=0", "data=tiny;train_samples=0: train_samples must be"),
    ],
)  # fmt: skip
def test_experiments_refuse_what_cannot_be_meant(text, message):
    with pytest.raises(ValueError, match=message) as raised:
        get("experiments", "darcy", text)
    assert "\n" not in str(raised.value)


def test_boxes_are_written_with_an_x():
    config = get("experiments", "burgers", "small,stretched_sizes=50x65+19x128")
    assert config.stretched_sizes == ((50, 65), (19, 128))
    data = get("solvers", "navier_stokes", "tiny,points=100x48+200x64+400x96")
    assert data == get("solvers", "navier_stokes", "tiny")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tiny,points=100x48.5", "entries of points must be pairs of a scale and its points"),
        ("tiny,points=48", "entries of points must be pairs of a scale and its points"),
        ("tiny,dtype=int8", "dtype must be one of float32, float64, got 'int8'"),
        ("tiny,equation=burgers", "equation is 'darcy' here"),
        ("tiny,train_samples=0", "train_samples must be a whole number of at least 1"),
        ("tiny,train_scales=-4", "entries of train_scales must be a positive number"),
        ("tiny,train_scales=nan", "train_scales must be finite"),
        ("tiny,seed=-1", "seed must be a whole number of at least 0"),
        ("tiny,name=../elsewhere", "name must be a plain name"),
        ("tiny,name=.hidden", "name must be a plain name"),
        ("tiny,name=", "name must be a plain name"),
    ],
)
def test_data_sets_refuse_what_cannot_be_meant(text, message):
    with pytest.raises(ValueError, match=message) as raised:
        get("solvers", "darcy", text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("False", False), ("true", True)])
def test_truth_may_be_given_in_words(word, value):
    assert get("experiments", "darcy", f"tiny,log_scale={word}").log_scale is value


def test_values_of_the_right_kind_pass():
    config = get(
        "experiments", "darcy", "tiny,epochs=3,learning_rate=1,n_modes=4+6,data=tiny;seed=3"
    )
    assert (config.epochs, config.learning_rate, config.n_modes) == (3, 1.0, (4, 6))
    assert config.data == "tiny,seed=3"


def test_every_field_of_training_is_reached_and_names_the_row():
    config = get("experiments", "darcy", "tiny,train.accumulate=2,train.optimizer.b1=0.8,seed=3")
    settings = training.training_config(darcy.EXPERIMENT, config, {"train-4": "a", "test-4": "b"})
    assert settings["accumulate"] == 2
    assert settings["optimizer"]["b1"] == 0.8
    assert settings["optimizer"]["name"] == config.optimizer
    assert configs.complete(settings).accumulate == 2
    assert naming.label(config) == "FNO (train.accumulate=2, train.optimizer.b1=0.8)"
    assert get("experiments", "darcy", naming.config_text(config)) == config


def test_a_preset_sets_fields_of_training_that_text_changes():
    def settings(text):
        return training.training_config(darcy.EXPERIMENT, get("experiments", "darcy", text), {})

    assert settings("paper")["points_at_once"] == 600_000
    assert naming.label(get("experiments", "darcy", "paper")) == "FNO"
    changed = settings("paper,train.accumulate=2")
    assert (changed["accumulate"], changed["points_at_once"]) == (2, 600_000)
    assert settings("paper,train.points_at_once=0")["points_at_once"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.acumulate=2", "did you mean 'accumulate'"),
        ("train.accumulate=two", "accumulate"),
        ("train.logging=true", "section of fields"),
        ("train=1", "cannot be changed"),
        ("train.accumulate=2,train.accumulate=3", "changed twice"),
    ],
)
def test_wrong_fields_of_training_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        get("experiments", "darcy", f"tiny,{change}")
