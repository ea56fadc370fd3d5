"""The malformed inputs that ``python -m tests.faults`` tries, see there.

Names of modules differ between releases: a case takes the first that exists.
"""

import importlib
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

KEY = jax.random.key(0)
ONES = jnp.ones((2, 17, 17, 1))
NAN = float("nan")


class Case(NamedTuple):
    """What is tried.

    Attributes:
      group, what: its name.
      call: tries it.
      right: a test of the result; None if there is no right one.
    """

    group: str
    what: str
    call: Callable[[], Any]
    right: Callable[[Any], bool] | None = None


def use(*names: str) -> Any:
    """The first of these modules that there is."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(f"none of {names}")


def is_nan(result: Any) -> bool:
    return all(bool(np.isnan(leaf).all()) for leaf in jax.tree.leaves(result))


def near(value: float) -> Callable[[Any], bool]:
    return lambda result: bool(np.allclose(np.asarray(result, float), value, rtol=1e-2))


def _norms() -> list[Case]:
    loss = use("sino_jax.loss")
    boundary, decomposition = use("sino_jax.boundary"), use("sino_jax.decomposition")
    estimates = use("sino_jax.diagnostics.error_estimate", "sino_jax.error_estimate")
    nan = ONES * NAN
    random = jnp.asarray(np.random.default_rng(0).uniform(0.5, 1, size=(1, 9, 9, 1)), "f4")

    def of_size(size, dtype="f4"):
        return lambda: loss.relative_l2(*((f * random * size).astype(dtype) for f in (1.5, 1)))

    def converges():
        return decomposition.refine_history(
            lambda p, inputs, scale: NAN * inputs[..., 1:2], None, ONES, ONES, jnp.ones(2),
            equation="darcy", patches=2, overlap=5, iterations=3, tolerance=0.1, start="zeros",
        ).change  # fmt: skip

    both = {"relative_l2": loss.relative_l2, "central half": loss.relative_l2_central_half}
    cases = [
        Case("NaN", f"{name} of a NaN prediction{how}", lambda f=f, w=w: w(f)(nan, ONES), is_nan)
        for name, f in both.items()
        for how, w in {"": lambda f: f, ", compiled": jax.jit}.items()
    ]
    return [
        *cases,
        Case("NaN", "relative_l2 of a NaN target", lambda: loss.relative_l2(ONES, nan), is_nan),
        Case("NaN", "magnitude of NaN traces", lambda: boundary.magnitude(nan), is_nan),
        Case("NaN", "refine(tolerance=0.1) of a model that gives NaN", converges,
             lambda change: len(change) == 3 and is_nan(change)),
        Case("NaN", "ranks of errors with NaN",
             lambda: estimates.rank_correlation(np.arange(3.0), np.array([1.0, NAN, 2.0]))),
        Case("range", "relative_l2 in float16, values of 1e-3", of_size(1e-3, "f2"), near(0.5)),
        Case("range", "relative_l2 in float16, values of 3e4", of_size(3e4, "f2"), near(0.5)),
        Case("range", "relative_l2 in float32, values of 1e-30", of_size(1e-30), near(0.5)),
        Case("range", "relative_l2 in float32, values of 1e30", of_size(1e30), near(0.5)),
        Case("range", "relative_l2 in complex64, values of 1e30", of_size(1e30, "c8"), near(0.5)),
        Case("range", "relative_l2 of unsigned integers",
             lambda: loss.relative_l2(*(x * jnp.ones((1, 9, 9, 1), jnp.uint8) for x in
                                        (jnp.uint8(1), jnp.uint8(2))))),
    ]  # fmt: skip


def _losses() -> list[Case]:
    loss, types = use("sino_jax.loss"), use("sino_jax.types")
    darcy = types.Instance(ONES, None, jnp.ones(2), ONES)
    unlabelled = types.Instance(ONES, ONES, jnp.ones(2), None)

    def trace(params, inputs, scale):
        return inputs[..., 1:2]

    def training(instance=darcy, model=trace, **options):
        options = {"equation": "darcy", "key": KEY, "progress": 0.5, **options}
        return lambda: loss.training_loss(model, None, instance, **options)

    def consistency(instance=darcy, model=trace, **options):
        options = {"equation": "darcy", "key": KEY, "size": 9, **options}
        return lambda: loss.scale_consistency(model, None, instance, **options)

    def infinitesimal(instance=darcy, model=trace, equation="darcy"):
        return lambda: loss.infinitesimal_scale_consistency(
            model, None, instance, equation=equation
        )

    outputs = {
        "two channels": lambda p, x, s: x[..., :2],
        "a grid of one row": lambda p, x, s: x[:, :1, :, 1:2],
        "a batch of one": lambda p, x, s: x[:1, ..., 1:2],
        "a number": lambda p, x, s: 1.0,
    }
    forms = {
        "self-supervised loss": lambda model: consistency(unlabelled, model),
        "infinitesimal loss": lambda model: infinitesimal(darcy, model),
        "training_loss": lambda model: training(darcy, model),
    }
    big_endian = types.Instance(
        *(np.ones((2, 17, 17, 1), ">f4"), None, jnp.ones(2), np.ones((2, 17, 17, 1), ">f4"))
    )
    size = consistency(size=np.int64(9))
    return [
        *(Case("losses", f"{form}, apply_fn returns {what}", make(model))
          for form, make in forms.items() for what, model in outputs.items()),
        Case("losses", "training_loss, coefficient of integers",
             training(darcy._replace(coefficient=ONES.astype(int)))),
        Case("losses", "training_loss, coefficient of another grid",
             training(darcy._replace(coefficient=ONES[:, :9]))),
        Case("losses", "training_loss, NaN in the coefficient",
             training(darcy._replace(coefficient=NAN * ONES))),
        Case("losses", "training_loss, negative scale",
             training(darcy._replace(scale=-jnp.ones(2)))),
        Case("losses", "training_loss, a batch of zero",
             training(types.Instance(ONES[:0], None, jnp.ones(0), ONES[:0]))),
        Case("losses", "real solution for Helmholtz, training_loss",
             training(model=lambda p, x, s: x[..., 1:3], equation="helmholtz")),
        Case("losses", "real solution for Helmholtz, consistency",
             consistency(model=lambda p, x, s: x[..., 1:3], equation="helmholtz")),
        Case("losses", "detach='inputs'", training(detach="inputs")),
        Case("losses", "progress=nan", training(progress=NAN)),
        Case("losses", "sub_count=0", training(sub_count=0, sub_sizes=(9,))),
        Case("losses", "super_rates=(nan,)", training(super_rates=(NAN,))),
        Case("losses", "size=np.int64(9)", size, near(0)),
        Case("losses", "size=9.0", consistency(size=9.0)),
        Case("losses", "size=True", consistency(size=True)),
        Case("losses", "error_fn that returns one number",
             consistency(error_fn=lambda p, t: jnp.mean(abs(p - t)))),
        Case("losses", "training_loss with nothing wrong",
             lambda: training(sub_sizes=(9,))()[0], near(0)),
        Case("losses", "big-endian fields", training(big_endian)),
    ]  # fmt: skip


def _files(place: pathlib.Path) -> list[Case]:
    data = use("sino_jax.data.dataset", "sino_jax.data")
    portable = use("sino_jax.operator.portable", "sino_jax.portable")
    storage = use("solvers.storage")
    predict = use("sino_jax.predict")

    def dataset(name: str) -> pathlib.Path:
        fields = {n: np.ones((3, 5, 5, 1), "f4") for n in ("boundary", "solution")}
        grid = {"axes": ["x", "y"], "shape": [5, 5], "centrings": ["node"] * 2, "extent": [1.0] * 2}
        described = storage.describe(
            equation="darcy", split="train", scale=4.0, samples=3, seed=0, grid=grid, window=None,
            units={}, limits={}, config={}, versions={},
        )  # fmt: skip
        storage.write(place / name, described, {k: [v] for k, v in fields.items()}, {})
        return place / name

    def opened(change: Callable[[pathlib.Path], None]) -> Callable[[], Any]:
        def call():
            path = dataset(f"data-{len(list(place.iterdir()))}")
            change(path)
            return np.asarray(data.load(path).examples([0]).boundary)

        return call

    def renamed(name):
        def change(path):
            meta = json.loads((path / "meta.json").read_text())
            np.save(path.parent / "outside.npy", np.ones((3, 5, 5, 1), "f4"))
            meta["fields"][name] = meta["fields"].pop("boundary")
            stated = {k: v for k, v in meta.items() if k != "checksum"}
            meta["checksum"] = data.checksum(stated)
            (path / "meta.json").write_text(json.dumps(meta))

        return change

    def replaced(make):
        def change(path):
            (path / "boundary.npy").replace(path.parent / "elsewhere.npy")
            make(path / "boundary.npy")

        return change

    def big_endian(path):
        np.save(path / "boundary.npy", np.ones((3, 5, 5, 1), ">f4"))
        meta = json.loads((path / "meta.json").read_text())
        meta["fields"]["boundary"]["dtype"] = ">f4"
        meta["checksum"] = data.checksum({k: v for k, v in meta.items() if k != "checksum"})
        (path / "meta.json").write_text(json.dumps(meta))

    def pipe_for_meta(path):
        (path / "meta.json").unlink()
        os.mkfifo(path / "meta.json")

    def altered_operator():
        config = {"equation": "darcy", "model": {}, "precision": "float32"}
        path = place / f"operator-{len(list(place.iterdir()))}"
        portable.write(path, {"w": np.ones(3)}, {"config": config, "scales": [4.0]}, None)
        meta = json.loads((path / portable.META_FILE).read_text())
        (path / portable.META_FILE).write_text(json.dumps({**meta, "scales": [8.0]}))
        return portable.read(path)

    def pickled_problems():
        np.savez(place / "problems.npz", scale=np.array([{}], object))
        try:
            return predict.read_problems(place / "problems.npz")
        except ValueError as error:
            return str(error)

    def masked():
        seen = []
        original, os.umask = os.umask, lambda mask: seen.append(mask) or 0o022
        try:
            predict.write_atomically(place / "out.npz", {"solution": np.ones(2)})
        finally:
            os.umask = original
        return seen

    native = lambda values: bool(values.dtype.isnative and (values == 1).all())  # noqa: E731
    return [
        Case("files", "data set, field name ../outside", opened(renamed("../outside"))),
        Case("files", "data set, field name is an absolute path",
             opened(lambda path: renamed(str(path.parent / "outside"))(path))),
        Case("files", "data set, link out of it",
             opened(replaced(lambda file: file.symlink_to(file.parent.parent / "elsewhere.npy")))),
        Case("files", "data set, a pipe in place of a field", opened(replaced(os.mkfifo))),
        Case("files", "data set, a device in place of a field",
             opened(replaced(lambda file: file.symlink_to("/dev/zero")))),
        Case("files", "data set, a pipe in place of meta.json", opened(pipe_for_meta)),
        Case("files", "data set with nothing wrong", opened(lambda path: None), native),
        Case("files", "data set, big-endian field", opened(big_endian), native),
        Case("files", "portable operator, altered description", altered_operator),
        Case("files", "problems.npz with Python objects", pickled_problems,
             lambda text: isinstance(text, str) and "allow_pickle" not in text),
        Case("files", "umask while a file is written (calls that change it)", masked,
             lambda seen: seen == []),
    ]  # fmt: skip


def _configs() -> list[Case]:
    models = use("sino_jax.models")
    experiment, generated = use("experiments.configs.darcy"), use("solvers.configs.darcy")
    runner = use("experiments.runner")
    fno = {"name": "fno", "n_modes": (4, 4), "hidden_channels": 8, "out_channels": 1}

    def text(value, module=experiment):
        return lambda: runner.row_label(module.get_config(value))

    def data(value):
        return lambda: generated.get_config(value).to_dict()

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
        *(Case("config", f"experiment {value}", text(value)) for value in texts),
        *(Case("config", f"data {value}", data(value)) for value in of_data),
        *(
            Case("config", f"model {key}={value!r}",
                 lambda key=key, value=value: models.build({**fno, key: value}))
            for key, values in fields.items() for value in values
        ),
        Case("config", "a model with nothing wrong",
             lambda: models.build(fno).hidden_channels, near(8)),
        Case("config", "an experiment with nothing wrong",
             lambda: experiment.get_config("tiny,epochs=3").epochs, near(3)),
        Case("config", "model of another name", lambda: models.build({**fno, "name": "fn0"})),
    ]  # fmt: skip


def cases(place: pathlib.Path) -> list[Case]:
    """All cases; those with files work below `place`."""
    return [*_norms(), *_losses(), *_files(place), *_configs()]
