"""Estimates that are never negative. They are biased: small counts come out too large on average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hdmm.estimators.estimator import Estimator, LinearEstimator, Noise
from hdmm.matrix import Array, Identity
from hdmm.workload import EncodedProduct

MAX_CELLS = 1 << 22
"""The most cells for which a vector of counts is fitted: a round passes over all of them a few times."""
LEAST_VARIANCE = 1e-3
"""The least that the variance of a block counts beside the others, so that iterations settle."""


class Counts(Protocol):
    """Counts that are never negative, from which products are answered."""

    @property
    def label(self) -> str:
        """How the estimate was made, as tables name it."""

    @property
    def total(self) -> float:
        """How many records it holds."""

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product."""


AnyCounts = TypeVar("AnyCounts", bound=Counts)


class BiasedEstimator(Estimator[AnyCounts]):
    """An estimator whose state is counts that are never negative; no error and no interval is claimed."""

    @property
    def linear(self) -> None:
        return None

    def label(self, state: AnyCounts) -> str:
        return state.label

    def answer(self, product: EncodedProduct, state: AnyCounts) -> Array:
        return state.answer(product)


def counts_on(sizes: Mapping[int, int]) -> EncodedProduct:
    """The product that asks for every cell of some attributes; without attributes, for the total."""
    return EncodedProduct.of({axis: Identity(size) for axis, size in sizes.items()})


def estimated_total(estimator: LinearEstimator[Any], answers: Sequence[Array], noise: Noise) -> float | None:
    """The least-squares estimate of the number of records, which is unbiased; None if it is not measured."""
    total = counts_on({})
    if not estimator.supports(total):
        return None
    return float(estimator.answer(total, estimator.reconstruct(answers, noise))[0])
