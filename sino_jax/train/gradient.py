"""The gradient of a loss over the examples of one device: at once, or with bounded memory.

A gradient keeps the activations of every layer on every point that is differentiated at once. The
loss is a sum over terms and over their problems: its gradient is the sum of theirs, and computing
them one after another costs nothing but the size of matrix products.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from sino_jax.loss import terms
from sino_jax.loss.terms import Term
from sino_jax.types import Instance, Key, PerExample

Params = Any
# loss_fn(params, batch, key, progress) -> (loss of each example, named parts of it to report);
# progress is the fraction of the run that is done.
LossFn = Callable[[Params, Instance, Key, Array], tuple[PerExample, dict[str, PerExample]]]
# gradient_fn(params, (batch, weight), key, progress) -> (gradient of the weighted sum of the loss,
# weighted sums of the loss and its parts)
GradientFn = Callable[..., tuple[Params, dict[str, Array]]]


@dataclasses.dataclass(frozen=True, eq=False)
class SumOfTerms:
    """A `LossFn` that is a sum of terms.

    Attributes:
      terms: ``terms(batch, key, progress)`` makes them.
    """

    terms: Callable[[Instance, Key, Array], Sequence[Term]]

    def __call__(
        self, params: Params, batch: Instance, key: Key, progress: Array
    ) -> tuple[PerExample, dict[str, PerExample]]:
        return terms.add_up(self.terms(batch, key, progress), params, len(batch.scale))


def at_once(loss_fn: LossFn) -> GradientFn:
    """The gradient of the whole loss in one pass."""

    def weighted_sums(params, part, key, progress):
        batch, weight = part
        loss, parts = loss_fn(params, batch, key, progress)
        sums = {
            name: jnp.sum(weight * value.astype(weight.dtype))
            for name, value in {"loss": loss, **parts}.items()
        }
        return sums["loss"], sums

    return jax.grad(weighted_sums, has_aux=True)


def piecewise(loss_fn: LossFn, points: int) -> GradientFn:
    """The gradients of terms, and of so many of their problems as have `points`, added up.

    A piece has at least one problem. All pieces of a term have one size. Pieces of examples that
    only fill up a batch (weight zero, at its end) are left out.

    Raises:
      ValueError: the loss is no `SumOfTerms`, or one of its terms has no problems of its own.
    """
    if not isinstance(loss_fn, SumOfTerms):
        raise ValueError(
            f"points_at_once must be 0 for a loss that is not made of terms, got {points}: only "
            "sino_jax.loss.training_loss is; accumulate cuts the batches of any loss"
        )

    def gradient_fn(params, part, key, progress):
        batch, weight = part
        gradient, sums = jax.tree.map(jnp.zeros_like, params), {}
        for term in loss_fn.terms(batch, key, progress):
            gradient, added = _with_term(gradient, term, params, weight, points)
            sums |= {name: sums[name] + x if name in sums else x for name, x in added.items()}
        return gradient, sums

    return gradient_fn


def _with_term(
    gradient: Params, term: Term, params: Params, weight: PerExample, points: int
) -> tuple[Params, dict[str, Array]]:
    """`gradient` with that of one term added to it, and the sums of this term."""
    if term.draw is None:
        raise ValueError(
            "points_at_once needs one sub-domain size and one super-domain rate in each step, as "
            f"sino_jax.loss.draw_crops gives them, got several for the {term.name} loss"
        )
    problems = term.draw()
    count = len(jax.tree.leaves(problems)[0])
    whole = (problems, terms.problem_weights(weight, count))
    pieces = number_of_pieces(count, term.points, points)
    cut = jax.tree.map(lambda x: x.reshape(pieces, -1, *x.shape[1:]), whole)

    def weighted_sums(params, piece):
        problems, weight = piece
        error = jnp.sum(weight * term.errors(params, problems).astype(weight.dtype))
        loss = jnp.asarray(term.weight, error.dtype) * error
        return loss, {"loss": loss, term.name: term.share * error}

    def add_piece(number, total):
        # Otherwise a loop of one turn does not depend on its state, and is computed ahead of it.
        held, total = jax.lax.optimization_barrier((params, total))
        piece = jax.tree.map(lambda x: x[number], cut)
        added = jax.grad(weighted_sums, has_aux=True)(held, piece)
        return jax.tree.map(jnp.add, total, added)

    # Examples that only fill up a batch come last. Their number is not known to the compiler, which
    # hence keeps every loop: in one program without loops it computes terms in turns, with the
    # memory of all of them, barriers or not.
    used = jnp.max(jnp.where(jnp.any(cut[1] != 0, axis=1), jnp.arange(1, pieces + 1), 0))
    zero = jnp.zeros_like(weight[0])
    return jax.lax.fori_loop(0, used, add_piece, (gradient, {"loss": zero, term.name: zero}))


def number_of_pieces(problems: int, points_each: int, points: int) -> int:
    """The fewest equal pieces of so many problems that have at most `points` each, if they can."""
    fitting = max(1, points // points_each)
    return next(n for n in range(1, problems + 1) if problems % n == 0 and problems // n <= fitting)
