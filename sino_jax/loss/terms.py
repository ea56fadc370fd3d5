"""A loss as a sum of terms: each has problems of its own, and the model's errors on them.

Terms can be evaluated together (`add_up`), or differentiated one after another and each of them
problem by problem, with the memory of a few problems (`sino_jax.train.gradient`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sino_jax.types import PerExample

# Arrays with one leading axis.
Problems = Any


class Term(NamedTuple):
    """One summand of the loss of a batch.

    Attributes:
      name: of the part of the loss that it is reported in.
      weight: factor in the loss.
      share: factor in that part, of which there may be several terms.
      points: grid points that the model computes on for one problem, in all of its calls.
      draw: makes the problems, for all examples at once: random numbers do not depend on what is
        computed together. None if they are chosen within the compiled program.
      errors: ``errors(params, problems) -> [problem]``, each of its own problem alone.
    """

    name: str
    weight: float | Float[Array, ""]
    share: float
    points: int
    draw: Callable[[], Problems] | None
    errors: Callable[[Any, Problems], Float[Array, "problem"]]

    def per_example(self, params: Any, examples: int) -> PerExample:
        """The errors as one value for each example of the batch.

        If there are fewer problems than examples, it is the mean for all of them.
        """
        errors = self.errors(params, self.draw and self.draw())
        if len(errors) == examples:
            return errors
        return jnp.full(examples, jnp.mean(errors))


def one_of(choice: Int[Array, ""], terms: Sequence[Term], examples: int) -> Term:
    """The term of a number that is known within the compiled program only (`jax.lax.switch`)."""
    if len(terms) == 1:
        return terms[0]

    def errors(params, _):
        branches = [lambda params, term=term: term.per_example(params, examples) for term in terms]
        return jax.lax.switch(choice, branches, params)

    points = max(term.points for term in terms)
    return terms[0]._replace(points=points, draw=None, errors=errors)


def add_up(
    terms: Sequence[Term], params: Any, examples: int
) -> tuple[PerExample, dict[str, PerExample]]:
    """The loss of a batch of so many examples and its named parts, one value for each example."""
    total, parts = None, {}
    for term in terms:
        errors = term.per_example(params, examples)
        weighted = jnp.asarray(term.weight, errors.dtype) * errors
        total = weighted if total is None else total + weighted
        part = term.share * errors
        parts[term.name] = parts[term.name] + part if term.name in parts else part
    return total, parts


def problem_weights(weight: PerExample, problems: int) -> Float[Array, "problem"]:
    """Weights of problems with which the sum of their errors is that of `Term.per_example`."""
    if len(weight) == problems:
        return weight
    return jnp.full(problems, jnp.sum(weight) / problems)
