"""What every strategy can do, and the form in which it tells how an answer depends on the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm.matrix import Array, Matrix
from hdmm.strategy.block import Block
from hdmm.strategy.rows import RowTypes
from hdmm.workload import EncodedProduct

Noise = Sequence[float]
"""The variance of the noise on each block's answers, one number per block."""


@final
@dataclass(frozen=True)
class Terms:
    """The error of one answer: independent noises of some block, so many of them, each times a coefficient."""

    block: NDArray[np.int64]
    coefficient: NDArray[np.float64]
    multiplicity: NDArray[np.float64]

    def variance(self, noise: Noise) -> float:
        """The variance of the answer."""
        return float(self.multiplicity @ (self.coefficient**2 * np.asarray(noise)[self.block]))


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
    def row_types(self, product: EncodedProduct, axis: int, matrix: Matrix) -> RowTypes:
        """Which predicates of an attribute lead to answers with the same error distribution."""

    @abstractmethod
    def terms(self, product: EncodedProduct, rows: Sequence[int], noise: Noise) -> Terms:
        """How the error of one answer, named by its row on each axis of the product, depends on the noise."""

    @abstractmethod
    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Any:
        """What all products are answered from, computed once from the noisy answers of the blocks."""

    @abstractmethod
    def answer(self, product: EncodedProduct, state: Any) -> Array:
        """The answers to a product, from what :meth:`reconstruct` returned."""
