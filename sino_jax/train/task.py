"""What a run learns: weights, loss, data and evaluation, built from a config.

`sino_jax.train` knows nothing but this, so that anything with these parts can be trained.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import FrozenConfigDict

from sino_jax import augment, data, equations, scale_range, superdomain
from sino_jax.data import Dataset
from sino_jax.equations import Equation
from sino_jax.loss import CropDraw, crops, draw_crops, training_terms
from sino_jax.models import network
from sino_jax.train import evaluate, verification
from sino_jax.train.config import reject_unknown, to_dict
from sino_jax.train.gradient import LossFn, Params, SumOfTerms
from sino_jax.types import Key

# loss(apply_fn, params, instance, *, equation, key, progress) -> (per example, named parts)
Loss = Callable[..., tuple[Any, dict[str, Any]]]
Results = dict[str, dict[str, float]]

# All but what the trainer itself gives to the loss.
LOSS_OPTIONS = tuple(
    name
    for name in inspect.signature(training_terms).parameters
    if name not in ("apply_fn", "instance", "equation", "key", "progress", "super_prior")
)


class Task(NamedTuple):
    """The parts of a run that depend on its equation, model and data.

    Attributes:
      init: key -> weights.
      loss_at: ``loss_at(dataset, step, total_steps)``, the `LossFn` of a step whose
        batch is of ``train[dataset]``; few different ones, since each is compiled.
      train: data sets to draw batches from.
      evaluate: ``evaluate(params, mesh, last=...) -> {data set: {metric: mean}}``, where `last`
        tells whether the run is at its end; empty without data to evaluate on.
      meta: JSON-like facts to keep with every checkpoint. ``validation`` lists the data sets by
        whose mean error checkpoints are ranked.
    """

    init: Callable[[Key], Params]
    loss_at: Callable[[int, int, int], LossFn]
    train: Sequence[Dataset]
    evaluate: Callable[..., Results]
    meta: Mapping[str, Any]


def build(
    config: FrozenConfigDict,
    *,
    equation: Equation | None = None,
    loss: Loss | None = None,
    super_prior: superdomain.Prior | None = None,
) -> Task:
    """The task of a completed config.

    Args:
      config: see `sino_jax.train.config.complete`.
      equation: the one that ``config.equation`` names; None looks it up in `sino_jax.equations`.
      loss: replaces `sino_jax.loss.training_loss` with the options of ``config.loss``.
      super_prior: an option of `sino_jax.loss.training_loss` that is no data.
    """
    equation = equations.get(config.equation if equation is None else equation)
    options = to_dict(config.loss)
    if loss is None:
        for name in options:
            reject_unknown(name, LOSS_OPTIONS, where="config.loss")
        augment.check_symmetries(equation, options.get("symmetries", ()))
    network.build(config.model, equation, None)  # a wrong model is refused before data is read
    train, val, test = verification.datasets(config.data, equation).values()
    evaluated = dict(zip(evaluate.names([*val, *test]), [*val, *test], strict=True))
    validation = list(evaluated)[: len(val)]
    if loss is None:
        verification.check_consistency(train, options)
    statistics = data.statistics(train) if config.data.normalise else None
    model, apply_fn = network.build(config.model, equation, statistics)
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
    def loss_fn(draw: CropDraw) -> LossFn:
        if loss:
            return lambda params, batch, key, progress: loss(
                apply_fn, params, batch, equation=equation, key=key, progress=progress
            )
        own = {**options, **draw._asdict(), "super_prior": super_prior}
        return SumOfTerms(
            lambda batch, key, progress: training_terms(
                apply_fn, batch, equation=equation, key=key, progress=progress, **own
            )
        )

    def loss_at(dataset: int, step: int, total_steps: int) -> LossFn:
        if loss:
            return loss_fn(CropDraw((), ()))
        given = fitting[dataset]
        return loss_fn(draw_crops(given, seed=config.seed, step=step, total_steps=total_steps))

    def init(key: Key) -> Params:
        # Weights are as precise as the data, also where JAX_ENABLE_X64 makes double the default.
        double = any(np.finfo(f.dtype).bits == 64 for d in train for f in d.fields.values())
        with contextlib.nullcontext() if double else jax.enable_x64(False):
            return network.init(model, equation, train[0].grid, key)

    return Task(
        init=init,
        loss_at=loss_at,
        train=train,
        evaluate=_evaluation(config, equation, apply_fn, evaluated, validation, trained),
        meta={
            "statistics": statistics,
            "scales": sorted({dataset.scale for dataset in train}),
            "grids": sorted({dataset.grid for dataset in train}),
            "scale_range": [min(trained), max(trained)],
            "datasets": {str(d.path): d.digest for d in (*train, *val, *test)},
            "validation": validation,
        },
    )


def _evaluation(
    config: FrozenConfigDict,
    equation: Equation,
    apply_fn,
    sets: Mapping[str, Dataset],
    validation: Sequence[str],
    trained: Sequence[float],
) -> Callable[..., Results]:
    frames = config.evaluation.rollout_frames
    points = config.evaluation.points_per_batch

    def evaluator(metrics_fn: evaluate.MetricsFn) -> Callable[[Mesh], evaluate.Evaluator]:
        return functools.cache(
            lambda mesh: evaluate.Evaluator(metrics_fn, mesh, points_per_batch=points)
        )

    single = evaluator(evaluate.error_metrics(apply_fn, equation))
    if frames > 1:
        long = {name: d.with_window(horizon=frames, stride=frames) for name, d in sets.items()}
        blocks = [d.window.history for d in sets.values() if d.window.frames == "axis"]
        steps = frames // blocks[0] if blocks else frames
        rollouts = evaluator(evaluate.rollout_metrics(apply_fn, equation, steps))

    def errors(params: Params, mesh: Mesh, name: str) -> dict[str, float]:
        of_one = single(mesh)(params, sets[name])
        if frames == 1:
            return of_one
        return {**rollouts(mesh)(params, long[name]), **evaluate.of_first_step(of_one)}

    def run(params: Params, mesh: Mesh, *, last: bool) -> Results:
        # Test data is for the end, unless there is nothing else to watch.
        names = sets if last or not validation else validation
        # Python shows a warning of one text once, however often a run is evaluated.
        scale_range.warn_outside([sets[name].scale for name in names], trained)
        return {name: errors(params, mesh, name) for name in names}

    return run
