"""What every estimator of this room gives: answers from one estimate of the counts, and tables that say how it is made.

Estimates that keep counts from being negative are biased: small counts come out too large on average, and with them
sums of many. So their tables have no standard errors and no intervals, and name their estimator in every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hdmm.matrix import Array, Identity
from hdmm.reconstruct.joint import joint_cells, joint_estimate
from hdmm.strategy import Noise, Strategy, UnionStrategy
from hdmm.workload import EncodedProduct

if TYPE_CHECKING:
    import pyarrow as pa

CELLS = 1 << 22
"""The most cells for which a vector of counts is fitted: a round passes over all of them a few times."""
NOTE = "biased: counts are kept from being negative, so small ones are too large on average; no interval is claimed"


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
    if isinstance(strategy, UnionStrategy) and joint_cells(strategy) <= CELLS:
        return float(joint_estimate(strategy, answers, noise).answer(total)[0])
    return float(strategy.answer(total, strategy.reconstruct(answers, noise))[0])


def biased_table(labels: Mapping[str, pa.Array], answers: Array, estimator: str) -> pa.Table:
    """A product's table: its labels, the answer and the estimator; the file says in its metadata what that means.

    ``labels`` are those of every attribute's predicates; answers are row-major over them.
    """
    import pyarrow as pa

    shape = [len(values) for values in labels.values()]
    if prod(shape) != len(answers):
        raise ValueError("a table has one answer for every combination of labels")
    columns: dict[str, Any] = {}
    if shape:
        places = np.unravel_index(np.arange(len(answers)), shape)
        columns = {
            name: values.take(pa.array(place)) for (name, values), place in zip(labels.items(), places, strict=True)
        }
    named = pa.DictionaryArray.from_arrays(np.zeros(len(answers), np.int8), pa.array([estimator]))
    table = pa.table(columns | {"answer": answers, "estimator": named})
    return table.replace_schema_metadata({"hdmm.estimator": estimator, "hdmm.note": NOTE})
