"""Several Kronecker products, each product of the workload answered from one of them (OPT_+; paper, section 6).

Answers are local least squares: from the block that gives the product its least error, by that block alone. Least
squares over all blocks together does no worse, so the errors here are upper bounds for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.estimators.coefficients import Coefficients
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.footprint import estimate_bytes, held_bytes
from hdmm.estimators.kron import KronLeastSquares
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct


@final
class BlockLeastSquares(LinearEstimator[list[Array]]):
    """Least squares on one block for each product. The state is the estimate of the counts over each block."""

    consistent = False

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._homes: dict[EncodedProduct, int | None] = {}

    @cached_property
    def _estimators(self) -> tuple[KronLeastSquares, ...]:
        sizes = self.strategy.sizes
        return tuple(KronLeastSquares(Strategy(sizes, (block,), "kron")) for block in self.blocks)

    def home(self, product: EncodedProduct) -> int | None:
        """The block that answers a product: the one with the least error if noise is as the weights say."""
        if product not in self._homes:
            errors = {
                index: estimator.squared_error(product, [1 / float(estimator.block.weight) ** 2])
                for index, estimator in enumerate(self._estimators)
                if estimator.block.condition is None and estimator.supports(product)
            }
            self._homes[product] = min(errors, key=errors.__getitem__, default=None)
        return self._homes[product]

    def _home(self, product: EncodedProduct) -> tuple[int, KronLeastSquares]:
        index = self.home(product)
        if index is None:
            raise ValueError("no block can answer the product")
        return index, self._estimators[index]

    def parts(self) -> Sequence[tuple[LinearEstimator[Any], slice]]:
        return [(estimator, slice(index, index + 1)) for index, estimator in enumerate(self._estimators)]

    def supports(self, product: EncodedProduct) -> bool:
        return self.home(product) is not None

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        homes = [self._home(product) for product in products]
        pairs = zip(products, homes, strict=True)
        return np.array([estimator.squared_error(product, [noise[index]]) for product, (index, estimator) in pairs])

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._home(product)[1].row_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return self._home(product)[1].row_size(product, types)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        index, estimator = self._home(product)
        for coefficients in estimator.coefficients(product, types, [noise[index]]):
            yield replace(coefficients, block=index)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        return [
            estimator.reconstruct([measured], [variance])
            for estimator, measured, variance in zip(self._estimators, answers, noise, strict=True)
        ]

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        index, estimator = self._home(product)
        return estimator.answer(product, state[index])

    def state_bytes(self) -> Sequence[int]:
        return [estimate_bytes(block) for block in self.blocks]

    def answer_bytes(self, product: EncodedProduct) -> int:
        return held_bytes(self.strategy, product)
