"""What a run learns: weights, loss, data and evaluation, built from a config.

`sino_jax.train` knows nothing but this, so that anything with these parts can be trained.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jax.sharding import Mesh
from ml_collections import FrozenConfigDict

from sino_jax import data, equations, scale_range, superdomain
from sino_jax.data import Dataset, batches
from sino_jax.equations import Equation
from sino_jax.loss import choose, crops, training_loss
from sino_jax.loss.crops import Choice
from sino_jax.models import network
from sino_jax.train import evaluate
from sino_jax.train.config import to_dict
from sino_jax.train.step import LossFn, Params
from sino_jax.types import Key

# loss(apply_fn, params, instance, *, equation, key, progress) -> (per example, named parts)
Loss = Callable[..., tuple[Any, dict[str, Any]]]
Results = dict[str, dict[str, float]]


class Task(NamedTuple):
    """The parts of a run that depend on its equation, model and data.

    Attributes:
      init: key -> weights.
      loss_at: ``loss_at(step, total_steps)``, a `sino_jax.train.step.LossFn`; few different ones,
        since each is compiled.
      train: data sets to draw batches from.
      evaluate: ``evaluate(params, mesh) -> {data set: {metric: mean}}``; empty without test data.
      meta: JSON-like facts to keep with every checkpoint.
    """

    init: Callable[[Key], Params]
    loss_at: Callable[[int, int], LossFn]
    train: Sequence[Dataset]
    evaluate: Callable[[Params, Mesh], Results]
    meta: Mapping[str, Any]


def build(
    config: FrozenConfigDict,
    *,
    loss: Loss | None = None,
    super_prior: superdomain.Prior | None = None,
) -> Task:
    """The task of a completed config.

    Args:
      config: see `sino_jax.train.config.complete`.
      loss: replaces `sino_jax.loss.training_loss` with the options of ``config.loss``.
      super_prior: an option of `sino_jax.loss.training_loss` that is no data.
    """
    equation = equations.get(config.equation)
    train = [data.load(path) for path in config.data.train]
    test = [data.load(path) for path in config.data.test]
    if not train:
        raise ValueError("config.data.train must name at least one data set, got none")
    for dataset in (*train, *test):
        if dataset.equation != equation.name:
            raise ValueError(
                f"config.equation is {equation.name!r}, but {dataset.path} holds data of "
                f"{dataset.equation!r}"
            )
    statistics = data.statistics(train) if config.data.normalise else None
    model, apply_fn = network.build(config.model, equation, statistics)
    options = to_dict(config.loss)
    fitting = [
        {
            **options,
            "sub_sizes": crops.fitting_sizes(options.get("sub_sizes", ()), dataset.grid),
        }
        for dataset in train
    ]
    trained = crops.trained_range(
        equation,
        [(dataset.scale, dataset.grid) for dataset in train],
        {} if loss else options,
    )

    @functools.cache
    def loss_fn(choice: Choice) -> LossFn:
        chosen = loss or functools.partial(
            training_loss, **{**options, **choice._asdict()}, super_prior=super_prior
        )
        return lambda params, batch, key, progress: chosen(
            apply_fn, params, batch, equation=equation, key=key, progress=progress
        )

    def loss_at(step: int, total_steps: int) -> LossFn:
        if loss:
            return loss_fn(Choice((), ()))
        given = fitting[batches.drawn_from(train, step, **batch_order(config))]
        return loss_fn(choose(given, seed=config.seed, step=step, total_steps=total_steps))

    return Task(
        init=lambda key: network.init(model, equation, train[0].grid, key),
        loss_at=loss_at,
        train=train,
        evaluate=_evaluation(config, equation, apply_fn, test, trained),
        meta={
            "statistics": statistics,
            "scales": sorted({dataset.scale for dataset in train}),
            "grids": sorted({dataset.grid for dataset in train}),
            "scale_range": [min(trained), max(trained)],
            "datasets": {str(dataset.path): dataset.digest for dataset in (*train, *test)},
        },
    )


def batch_order(config: FrozenConfigDict) -> dict[str, Any]:
    """What the order of batches depends on besides the data; options of `batches.draw`."""
    return {
        "seed": config.seed,
        "batch_size": config.data.batch_size,
        "keep_remainder": True,
    }


def _evaluation(
    config: FrozenConfigDict,
    equation: Equation,
    apply_fn,
    test: Sequence[Dataset],
    trained: Sequence[float],
) -> Callable[[Params, Mesh], Results]:
    frames = config.evaluation.rollout_frames
    if frames > 1:
        test = [dataset.with_window(horizon=frames, stride=frames) for dataset in test]
        blocks = [dataset.window.history for dataset in test if dataset.window.frames == "axis"]
        steps = frames // blocks[0] if blocks else frames
        metrics_fn = evaluate.rollout_metrics(apply_fn, equation, steps)
    else:
        metrics_fn = evaluate.error_metrics(apply_fn, equation)

    @functools.cache
    def evaluator(mesh: Mesh) -> evaluate.Evaluator:
        points = config.evaluation.points_per_batch
        return evaluate.Evaluator(metrics_fn, mesh, points_per_batch=points)

    def run(params: Params, mesh: Mesh) -> Results:
        # Python shows a warning of one text once, however often a run is evaluated.
        scale_range.warn_outside([dataset.scale for dataset in test], trained)
        named = zip(evaluate.names(test), test, strict=True)
        return {name: evaluator(mesh)(params, dataset) for name, dataset in named}

    return run
