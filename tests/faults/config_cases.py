"""Cases of config text and of fields of models."""

import pathlib

from case import NAN, Case, near, use


def cases(place: pathlib.Path) -> list[Case]:
    del place
    models = use("sino_jax.models")
    experiment, generated = use("experiments.configs.darcy"), use("solvers.configs.darcy")
    naming = use("experiments.naming", "experiments.runner")
    label = getattr(naming, "label", None) or naming.row_label
    fno = {"name": "fno", "n_modes": (4, 4), "hidden_channels": 8, "out_channels": 1}

    def text(value, module=experiment):
        return lambda: label(module.get_config(value))

    def data(value):
        return lambda: generated.get_config(value).to_dict()

    def named(value):
        return value.split(",")[-1].partition("=")[0]

    texts = [
        "tiny,preset=small", "tiny,equation=burgers", "tiny,epochs=1,epochs=2", "tiny,epochs",
        "tiny,epochs=0", "tiny,epochs=-3", "tiny,epochs=many", "tiny,learning_rate=0",
        "tiny,learning_rate=1e999", "tiny,n_layers=0", "tiny,n_levels=-1", "tiny,padding=-0.5",
        "tiny,super_rates=0.5", "tiny,super_start=2", "tiny,model=resnet", "tiny,base=poisson",
        "tiny,consistency=subsuper", "tiny,symmetries=mirror", "tiny,data=tinny", "tiny,epoch=1",
    ]  # fmt: skip
    of_data = [
        "tiny,dtype=int8", "tiny,equation=burgers", "tiny,train_samples=0", "tiny,seed=-1",
        "tiny,train_scales=-4", "tiny,train_scales=nan", "tiny,name=../elsewhere", "tiny,name=",
    ]  # fmt: skip
    fields = {
        "hidden_channels": [0, -8, "8"], "n_layers": [0, True], "n_modes": [(0, 4), 4],
        "padding": [-0.5, NAN], "log_scale": ["no"], "normalisation": ["batch"],
    }  # fmt: skip
    return [
        *(Case("config", f"experiment {value}", text(value), named(value)) for value in texts),
        *(Case("config", f"data {value}", data(value), named(value)) for value in of_data),
        *(
            Case("config", f"model {key}={value!r}",
                 lambda key=key, value=value: models.build({**fno, key: value}), key)
            for key, values in fields.items() for value in values
        ),
        Case("config", "a model with nothing wrong",
             lambda: models.build(fno).hidden_channels, right=near(8)),
        Case("config", "an experiment with nothing wrong",
             lambda: experiment.get_config("tiny,epochs=3").epochs, right=near(3)),
        Case("config", "model of another name", lambda: models.build({**fno, "name": "fn0"}),
             "fn0"),
    ]  # fmt: skip
