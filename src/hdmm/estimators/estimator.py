"""What an estimator is: how answers follow from the noisy measurements of a strategy.

Estimator[State]
├── LinearEstimator[State]   unbiased, linear in the measurements, with the error of every answer
│   ├── KronLeastSquares, MarginalLeastSquares, ResidualLeastSquares, ExplicitLeastSquares: least squares of a family
│   ├── JointLeastSquares    least squares over several blocks of any kind
│   ├── BlockLeastSquares    each product from the one block that answers it best
│   └── AsMeasured           each product as it was measured
└── BiasedEstimator          never negative; no errors are known
    ├── NonnegativeLeastSquares
    └── PrivatePGM           the graphical model that fits best

``reconstruct`` turns all measurements into a state, once; ``answer`` reads the answers to a product from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from hdmm.estimators.coefficients import Coefficients
from hdmm.estimators.footprint import assembled_bytes
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array, Norm
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded, EncodedProduct

MAX_COEFFICIENTS = 1 << 22
"""The most coefficients in memory at a time."""

Noise = Sequence[float]
"""The variance of the noise on each block's answers, one number per block."""

Types = tuple[RowTypes, ...]
"""The row types on every attribute of a product."""

State = TypeVar("State")


class Estimator(ABC, Generic[State]):
    """How answers follow from the noisy measurements of a strategy."""

    strategy: Strategy

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What was measured, block by block."""
        return self.strategy.blocks

    @abstractmethod
    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> State:
        """What all products are answered from, computed once from the noisy answers of the blocks."""

    @abstractmethod
    def answer(self, product: EncodedProduct, state: State) -> Array:
        """The answers to a product."""

    @abstractmethod
    def label(self, state: State) -> str:
        """How tables name the estimator."""

    @property
    @abstractmethod
    def linear(self) -> LinearEstimator[State] | None:
        """Itself if it is linear, and so has errors and intervals; None for a biased one."""


class LinearEstimator(Estimator[State]):
    """An unbiased estimator that is linear in the measurements.

    Errors are exact for the answers that :meth:`answer` gives, or upper bounds if ``bounded``.
    """

    @property
    def bounded(self) -> bool:
        """Whether the errors of single answers are only upper bounds (default: no)."""
        return False

    @property
    def totals_bounded(self) -> bool:
        """Whether the squared errors of products are only upper bounds (default: as those of single answers are)."""
        return self.bounded

    @property
    def consistent(self) -> bool:
        """Whether all tables add up to each other, because they come from one estimate of the counts (default: yes)."""
        return True

    @property
    def linear(self) -> LinearEstimator[State]:
        return self

    def label(self, state: State) -> str:
        return "least squares" if self.consistent else "least squares on one block"

    def exact(self) -> LinearEstimator[Any]:
        """The same estimator with exact errors, at whatever cost (default: itself)."""
        return self

    def parts(self) -> Sequence[tuple[LinearEstimator[Any], slice]]:
        """Estimators that are linear for all products alike, and the blocks that each uses (default: itself, and all).

        The difference of two answers is the answer to the difference, if both are from one part.
        """
        return [(self, slice(None))]

    def covering(self, noise: Noise) -> Noise:
        """The variances that errors are computed with (default: the noise's), larger ones if errors are bounds."""
        return noise

    @abstractmethod
    def supports(self, product: EncodedProduct) -> bool:
        """Whether every query of the product can be answered from the blocks."""

    @abstractmethod
    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        """The expected total squared error of each product's answers, without weights."""

    @abstractmethod
    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Which predicates of an attribute lead to answers with the same error distribution."""

    @abstractmethod
    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        """How many coefficients are written out for each type of the product's first attribute."""

    @abstractmethod
    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        """How the errors of answers of these types, one for each attribute of the product, depend on the noise.

        For a product without attributes: the one count that its queries are multiples of.
        """

    def state_bytes(self) -> Sequence[int]:
        """The sizes of the arrays that hold and make the state, beside the noisy answers (default: none)."""
        return ()

    def answer_bytes(self, product: EncodedProduct) -> int:
        """Bytes to answer a product, its answers included (default: from a table that is put together for it)."""
        return assembled_bytes(self.strategy, product)

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        """The expected total squared error of one product's answers, without its weight."""
        return float(self.squared_errors([product], noise)[0])


def types_of(estimator: LinearEstimator[Any], product: EncodedProduct) -> Types:
    """The row types on every attribute of a product."""
    return tuple(estimator.row_types(product, axis) for axis in product.axes)


def in_pieces(estimator: LinearEstimator[Any], product: EncodedProduct, types: Types) -> Iterator[Types]:
    """The row types, those of the first attribute piece by piece, so that the coefficients of a piece fit memory."""
    if not types:
        yield ()
        return
    step = max(1, MAX_COEFFICIENTS // estimator.row_size(product, types))
    for start in range(0, len(types[0]), step):
        yield (types[0].some(start, start + step), *types[1:])


def variances(estimator: LinearEstimator[Any], product: EncodedProduct, noise: Noise, types: Types) -> Array:
    """The variance of the answers to a product, for every combination of row types."""
    return np.concatenate([np.atleast_1d(table) for table in _variance_tables(estimator, product, noise, types)])


def worst_variance(estimator: LinearEstimator[Any], product: EncodedProduct, noise: Noise) -> float:
    """The largest variance of an answer to a product."""
    if product.empty:
        return 0.0
    tables = _variance_tables(estimator, product.total, noise, types_of(estimator, product))
    return float(abs(product.multiples).max()) ** 2 * max(float(table.max()) for table in tables)


def _variance_tables(
    estimator: LinearEstimator[Any], product: EncodedProduct, noise: Noise, types: Types
) -> Iterator[Array]:
    covering = estimator.covering(noise)
    for piece in in_pieces(estimator, product, types):
        table = np.zeros(tuple(len(row_types) for row_types in piece))
        for coefficients in estimator.coefficients(product, piece, noise):
            table += covering[coefficients.block] * coefficients.power_sum(2)
        yield table


def loss(estimator: LinearEstimator[Any], workload: Encoded, norm: Norm) -> float:
    """The weighted total squared error at unit noise, ‖A‖²·‖WA⁺‖²_F (paper, section 3.1)."""
    squares = np.array([float(product.weight) ** 2 for product in workload.products])
    return float(squares @ estimator.squared_errors(workload.products, estimator.strategy.unit_noise(norm)))


def weighing_variances(blocks: Sequence[Block], noise: Noise, least: float) -> tuple[float, ...]:
    """The variances by which an estimator weighs blocks against each other, up to a common factor.

    Noise is as the weights of the blocks say, v ∝ 1/θ², until a budget is so large that integer noise falls to zero, on
    some blocks long before it does on others. No v·θ² counts as less than ``least`` times the largest; otherwise what
    only the other blocks know would be lost to rounding. Any weights give an unbiased estimate, and its error is
    predicted from the noise itself.
    """
    squares = [float(block.weight) ** 2 for block in blocks]
    relative = [variance * square for variance, square in zip(noise, squares, strict=True)]
    largest = max(relative)
    shares = [max(ratio / largest, least) for ratio in relative] if largest > 0 else [1.0] * len(relative)
    return tuple(share / square for share, square in zip(shares, squares, strict=True))
