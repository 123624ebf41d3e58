"""What every biased estimator of this room gives: answers from one estimate of the counts, none of them negative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from hdmm.matrix import Array, Identity
from hdmm.strategy import Noise, Strategy
from hdmm.workload import EncodedProduct

CELLS = 1 << 22
"""The most cells for which a vector of counts is fitted: a round passes over all of them a few times."""

LEAST = 1e-3
"""How precise a block may count beside the others, so that iterations settle."""


class Estimate(Protocol):
    """Counts that are nowhere negative, from which products are answered."""

    @property
    def estimator(self) -> str:
        """How the estimate was made, as tables name it."""

    @property
    def total(self) -> float:
        """How many records it holds."""

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product."""


def counts_on(sizes: Mapping[int, int]) -> EncodedProduct:
    """The product that asks for every cell of some attributes; without attributes, for the total."""
    factors = {axis: Identity(size) for axis, size in sizes.items()}
    return EncodedProduct(factors, {axis: factor.gram().factor() for axis, factor in factors.items()}, Fraction(1))


def estimated_total(strategy: Strategy, answers: Sequence[Array], noise: Noise) -> float | None:
    """The least-squares estimate of the number of records, which is unbiased; None where it is not measured."""
    total = counts_on({})
    if not strategy.supports(total):
        return None
    return float(strategy.answer(total, strategy.reconstruct(answers, noise))[0])
