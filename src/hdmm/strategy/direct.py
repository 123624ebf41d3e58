"""The plain mechanism: each product of the workload is measured and published as it is (paper, prop:error0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Array, Matrix
from hdmm.strategy.base import Noise, Strategy, Terms
from hdmm.strategy.rows import RowTypes
from hdmm.workload import EncodedProduct


@final
@dataclass(frozen=True, eq=False)
class DirectStrategy(Strategy):
    """One block per product; an answer is the noisy answer itself."""

    def supports(self, product: EncodedProduct) -> bool:
        return self._find(product) is not None

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        return product.queries * noise[self._block(product)]

    def row_types(self, product: EncodedProduct, axis: int, matrix: Matrix) -> RowTypes:
        return RowTypes.single(matrix.shape[0])

    def terms(self, product: EncodedProduct, rows: Sequence[int], noise: Noise) -> Terms:
        return Terms(np.array([self._block(product)]), np.ones(1), np.ones(1))

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        return list(answers)

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        return state[self._block(product)].astype(float)

    def _find(self, product: EncodedProduct) -> int | None:
        for index, block in enumerate(self.blocks):
            if block.axes == product.axes and all(
                a is b or a == b for a, b in zip(block.factors, product.factors.values(), strict=True)
            ):
                return index
        return None

    def _block(self, product: EncodedProduct) -> int:
        found = self._find(product)
        if found is None:
            raise ValueError("the product is not one of the measured ones")
        return found
