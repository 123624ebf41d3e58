"""What every strategy can do, and the form in which it tells how an answer depends on the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hdmm.matrix import Array
from hdmm.strategy.block import Block
from hdmm.strategy.rows import RowTypes
from hdmm.workload import EncodedProduct

Noise = Sequence[float]
"""The variance of the noise on each block's answers, one number per block."""


@final
@dataclass(frozen=True)
class Coefficients:
    """How answers depend on the noise of one block, for every combination of row types.

    An answer's error holds each coefficient times as many independent noises as its multiplicity says. Both arrays have
    the types on their first axes, one per axis of the product, and the coefficients of a type on the others.
    """

    block: int
    values: Array
    counts: Array

    def power_sum(self, power: int, types: int) -> Array:
        """Σ multiplicity · coefficient^power, for every combination of types."""
        total: Array = np.sum(self.counts * self.values**power, axis=tuple(range(types, self.values.ndim)))
        return total


@dataclass(frozen=True, eq=False)
class Strategy(ABC):
    """Blocks of integer queries, and the unbiased estimate of a workload's answers from their noisy answers.

    Everything here is exact for the estimator that :meth:`answer` computes.
    """

    sizes: tuple[int, ...]
    """The sizes of the schema's attributes."""

    blocks: tuple[Block, ...]
    """What is measured."""

    @abstractmethod
    def supports(self, product: EncodedProduct) -> bool:
        """Whether every query of the product can be answered from the blocks."""

    @abstractmethod
    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        """The expected total squared error of the product's answers, weights left out."""

    @abstractmethod
    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Which predicates of an attribute lead to answers with the same error distribution."""

    @abstractmethod
    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        """How the error of answers of these types, one for each axis of the product, depends on each block's noise."""

    @abstractmethod
    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Any:
        """What all products are answered from, computed once from the noisy answers of the blocks."""

    @abstractmethod
    def answer(self, product: EncodedProduct, state: Any) -> Array:
        """The answers to a product, from what :meth:`reconstruct` returned."""
