"""Cases of files that are not what they seem: data sets, portable operators, problems."""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
from case import Case, use


def cases(place: pathlib.Path) -> list[Case]:
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
        Case("files", "data set, field name ../outside", opened(renamed("../outside")),
             r"\.\./outside"),
        Case("files", "data set, field name is an absolute path",
             opened(lambda path: renamed(str(path.parent / "outside"))(path)), "outside"),
        Case("files", "data set, link out of it",
             opened(replaced(lambda file: file.symlink_to(file.parent.parent / "elsewhere.npy"))),
             "boundary.*link"),
        Case("files", "data set, a pipe in place of a field", opened(replaced(os.mkfifo)),
             "boundary"),
        Case("files", "data set, a device in place of a field",
             opened(replaced(lambda file: file.symlink_to("/dev/zero"))), "boundary"),
        Case("files", "data set, a pipe in place of meta.json", opened(pipe_for_meta),
             "meta.json.*pipe"),
        Case("files", "data set with nothing wrong", opened(lambda path: None), right=native),
        Case("files", "data set, big-endian field", opened(big_endian), right=native),
        Case("files", "portable operator, altered description", altered_operator, "digest"),
        Case("files", "problems.npz with Python objects", pickled_problems,
             right=lambda text: isinstance(text, str) and "allow_pickle" not in text),
        Case("files", "umask while a file is written (calls that change it)", masked,
             right=lambda seen: seen == []),
    ]  # fmt: skip
