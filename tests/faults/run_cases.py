"""Cases of a run's directory, of what must not be overwritten, and of the environment."""

import contextlib
import functools
import io
import json
import os
import pathlib
import shutil
import sys

import numpy as np
from case import NAN, Case, use


def cases(place: pathlib.Path) -> list[Case]:
    runs, train = use("tests.training_runs"), use("sino_jax.train")
    runtime = use("sino_jax.runtime")
    root = place / "runs"

    @functools.cache
    def trained():
        """A finished run of two steps and its config; cases work on copies."""
        path = runs.write_darcy(root / "data" / "train-4", samples=4)
        config = runs.config([path], steps=2, checkpoint={"every": 1}, logging={"every": 1})
        runs.train_stand_in(config, root / "trained")
        return config

    def again(change=lambda workdir: None, **fields):
        """Starts a copy of the run after a change of its files, with other fields in its config."""

        def call():
            config = trained()
            workdir = root / f"run-{len(list(root.iterdir()))}"
            shutil.copytree(root / "trained", workdir)
            change(workdir)
            return int(runs.train_stand_in({**config, **fields}, workdir).step)

        return call

    def torn(name, text=""):
        return lambda workdir: (workdir / name).write_text(text)

    def without_newest(workdir):
        shutil.rmtree(workdir / "checkpoints" / "2")

    def torn_metrics(workdir):
        without_newest(workdir)
        with (workdir / "metrics.jsonl").open("a") as stream:
            stream.write('{"kind": "tr')

    def damaged(*steps):
        def change(workdir):
            for step in steps:
                (workdir / "checkpoints" / str(step) / "meta" / "metadata").write_text("")

        return change

    def altered_meta(workdir):
        file = workdir / "checkpoints" / "2" / "meta" / "metadata"
        file.write_text(json.dumps({**json.loads(file.read_text()), "scales": [8.0]}))

    def locked():
        config, workdirs = trained(), use("sino_jax.train.workdir")
        with workdirs.lock(root / "trained"):
            return runs.train_stand_in(config, root / "trained")

    def without_stderr():
        before, sys.stderr = sys.stderr, io.StringIO()
        sys.stderr.close()
        try:
            return again(without_newest)()
        finally:
            sys.stderr = before

    def failed_start():
        trained()
        config = runs.fno_config([str(root / "data" / "train-4")], steps=1, loss={"sub_size": 5})
        with contextlib.suppress(ValueError):
            train.fit(config, root / "failed")
        return (root / "failed").exists()

    def fit_on(values=1.0, **changes):
        def call():
            path = root / f"data-{len(list(root.iterdir()))}"
            fields = {name: np.full((3, 9, 9), 1.0) for name in ("coefficient", "solution")}
            fields["solution"][1, 2, 2] = values
            options = {"equation": "darcy", "scale": 4.0, **changes}
            runs.write_dataset(path, fields, **options)
            train.fit(runs.fno_config([str(path)], steps=1), path.with_suffix(".run"))

        return call

    def arrays(**given):
        def call():
            data = use("sino_jax.data")
            field = np.asfortranarray(np.arange(50.0).reshape(2, 5, 5) + 1).astype(">f8")
            target = root / f"arrays-{len(list(root.iterdir()))}"
            options = {"coefficient": field, "solution": field, "scale": 1.0, **given}
            made = data.from_arrays(target, equation="darcy", **options)
            stored = made["train-1"].fields["solution"]
            return bool((np.asarray(stored)[..., 0] == field).all())

        return call

    def written_twice():
        data, field = use("sino_jax.data"), np.ones((2, 5, 5))
        for _ in range(2):
            data.from_arrays(
                root / "twice", equation="darcy", coefficient=field, solution=field, scale=1.0
            )

    def output_is_input():
        predict = use("sino_jax.predict")
        file = place / "problem.npz"
        np.savez(file, scale=np.ones(1))
        predict.main([str(place), str(file), str(file)])

    def unwritable_cache():
        (place / "file").write_text("")
        with contextlib.redirect_stderr(io.StringIO()):
            return runtime.use_compilation_cache(place / "file" / "cache")

    done = {"right": lambda step: step == 2}
    same = {"right": lambda equal: equal is True}
    bad = np.ones((2, 5, 5))
    return [
        Case("run", "a finished run is started again", again(), **done),
        Case("run", "a directory in which another process trains", locked, "in use by process"),
        Case("run", "another seed", again(seed=1), "seed: 0 -> 1"),
        Case("run", "another rate", again(optimizer={"learning_rate": 0.5}),
             "learning_rate: 0.01 -> 0.5"),
        Case("run", "another seed, config.json empty", again(torn("config.json"), seed=1),
             "seed: 0 -> 1"),
        Case("run", "config.json empty", again(torn("config.json")), **done),
        Case("run", "a torn line of metrics", again(torn_metrics), **done),
        Case("run", "the newest checkpoint is damaged", again(damaged(2)), **done),
        Case("run", "a checkpoint whose meta was altered", again(altered_meta), **done),
        Case("run", "all checkpoints are damaged", again(damaged(1, 2)), "no checkpoint of steps"),
        Case("run", "stderr is closed", without_stderr, **done),
        Case("run", "a first start that fails claims its directory", failed_start,
             right=lambda exists: exists is False),
        Case("run", "starting from a run that is not there",
             again(lambda workdir: shutil.rmtree(workdir), start_from=str(root / "none")),
             "none holds no checkpoint"),
        Case("run", "training on test data", fit_on(split="test"), "data.train.*'test'"),
        Case("run", "training on a negative scale", fit_on(scale=-4.0), "scale.*-4"),
        Case("run", "training on NaN", fit_on(NAN), "sample 1 has values that are not finite"),
        Case("overwriting", "predict, output = input", output_is_input, "output"),
        Case("overwriting", "from_arrays, twice", written_twice, "train-1.*already"),
        Case("arrays", "big-endian, in Fortran's order", arrays(), **same),
        Case("arrays", "solution with NaN", arrays(solution=bad * NAN), "solution.*NaN"),
        Case("arrays", "solution of complex numbers", arrays(solution=bad * 1j), "complex128"),
        Case("arrays", "scale of NaN", arrays(scale=NAN), "scale.*nan"),
        Case("arrays", "three scales for two samples", arrays(scale=np.ones(3)), "scale"),
        Case("arrays", "shares that do not add up", arrays(split={"train": 0.5}), "split"),
        Case("arrays", "a share in words", arrays(split={"train": "all"}), "split.*'all'"),
        Case("arrays", "scale in words", arrays(scale="large"), "scale.*'large'"),
        Case("arrays", "solution that is a number", arrays(solution=1.0), "solution.*1.0"),
        Case("arrays", "extent in words", arrays(extent=("one", 1.0)), "extent.*one"),
        Case("arrays", "dtype that is none", arrays(dtype="floaty"), "dtype.*'floaty'"),
        Case("arrays", "no coefficient", arrays(coefficient=None), "coefficient.*None"),
        Case("environment", "JAX_PLATFORMS=cuda without a plugin",
             lambda: runtime.check_platforms({"JAX_PLATFORMS": "cuda"}), "JAX_PLATFORMS=cuda"),
        Case("environment", "a cache that cannot be written", unwritable_cache,
             right=lambda used: used is None),
        Case("environment", "umask of a file that is written", lambda: _mode(place),
             right=lambda mode: mode == 0o600),
    ]  # fmt: skip


def _mode(place: pathlib.Path) -> int:
    predict = use("sino_jax.predict")
    before = os.umask(0o077)
    try:
        predict.write_atomically(place / "mine.npz", {"solution": np.ones(2)})
    finally:
        os.umask(before)
    return (place / "mine.npz").stat().st_mode & 0o777
