"""Cases of norms and losses: NaN, the range of a dtype, wrong outputs and options."""

import jax
import jax.numpy as jnp
import numpy as np
from case import NAN, Case, is_nan, near, use

KEY = jax.random.key(0)
ONES = jnp.ones((2, 17, 17, 1))


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
        Case(
            "NaN",
            f"{name} of a NaN prediction{how}",
            lambda f=f, w=w: w(f)(nan, ONES),
            right=is_nan,
        )
        for name, f in both.items()
        for how, w in {"": lambda f: f, ", compiled": jax.jit}.items()
    ]
    return [
        *cases,
        Case("NaN", "relative_l2 of a NaN target", lambda: loss.relative_l2(ONES, nan),
             right=is_nan),
        Case("NaN", "magnitude of NaN traces", lambda: boundary.magnitude(nan), right=is_nan),
        Case("NaN", "refine(tolerance=0.1) of a model that gives NaN", converges,
             right=lambda change: len(change) == 3 and is_nan(change)),
        Case("NaN", "ranks of errors with NaN",
             lambda: estimates.rank_correlation(np.arange(3.0), np.array([1.0, NAN, 2.0])),
             "finite|NaN"),
        Case("range", "relative_l2 in float16, values of 1e-3", of_size(1e-3, "f2"),
             right=near(0.5)),
        Case("range", "relative_l2 in float16, values of 3e4", of_size(3e4, "f2"), right=near(0.5)),
        Case("range", "relative_l2 in float32, values of 1e-30", of_size(1e-30), right=near(0.5)),
        Case("range", "relative_l2 in float32, values of 1e30", of_size(1e30), right=near(0.5)),
        Case("range", "relative_l2 in complex64, values of 1e30", of_size(1e30, "c8"),
             right=near(0.5)),
        Case("range", "relative_l2 of unsigned integers",
             lambda: loss.relative_l2(*(x * jnp.ones((1, 9, 9, 1), jnp.uint8) for x in
                                        (jnp.uint8(1), jnp.uint8(2)))),
             "uint8"),
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
        *(Case("losses", f"{form}, apply_fn returns {what}", make(model),
               "apply_fn must return|prediction")
          for form, make in forms.items() for what, model in outputs.items()),
        Case("losses", "training_loss, coefficient of integers",
             training(darcy._replace(coefficient=ONES.astype(int))), "coefficient.*got int32"),
        Case("losses", "training_loss, coefficient of another grid",
             training(darcy._replace(coefficient=ONES[:, :9])), "coefficient.*9, 17"),
        Case("losses", "training_loss, NaN in the coefficient",
             training(darcy._replace(coefficient=NAN * ONES)), "coefficient.*NaN"),
        Case("losses", "training_loss, negative scale",
             training(darcy._replace(scale=-jnp.ones(2))), "scale.*-1"),
        Case("losses", "training_loss, a batch of zero",
             training(types.Instance(ONES[:0], None, jnp.ones(0), ONES[:0])), "at least one"),
        Case("losses", "real solution for Helmholtz, training_loss",
             training(model=lambda p, x, s: x[..., 1:3], equation="helmholtz"), "complex.*float32"),
        Case("losses", "real solution for Helmholtz, consistency",
             consistency(model=lambda p, x, s: x[..., 1:3], equation="helmholtz"),
             "complex.*float32"),
        Case("losses", "detach='inputs'", training(detach="inputs"), "detach.*inputs"),
        Case("losses", "progress=nan", training(progress=NAN), "progress.*nan"),
        Case("losses", "sub_count=0", training(sub_count=0, sub_sizes=(9,)), "sub_count.*0"),
        Case("losses", "super_rates=(nan,)", training(super_rates=(NAN,)), "super_rates.*nan"),
        Case("losses", "size=np.int64(9)", size, right=near(0)),
        Case("losses", "size=9.0", consistency(size=9.0), "size.*9.0"),
        Case("losses", "size=True", consistency(size=True), "size.*True"),
        Case("losses", "error_fn that returns one number",
             consistency(error_fn=lambda p, t: jnp.mean(abs(p - t))), r"error_fn.*\(\)"),
        Case("losses", "training_loss with nothing wrong",
             lambda: training(sub_sizes=(9,))()[0], right=near(0)),
        Case("losses", "big-endian fields", training(big_endian), ">f4"),
    ]  # fmt: skip


def cases(place) -> list[Case]:
    del place
    return [*_norms(), *_losses()]
