"""The plain mechanism: each product of the workload is published as it was measured (paper, section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.estimators.coefficients import Coefficients, Factored
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct


@final
class AsMeasured(LinearEstimator[list[Array]]):
    """One block per product; an answer is the noisy answer itself, and the state all of them."""

    consistent = False

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    def parts(self) -> Sequence[tuple[LinearEstimator[Any], slice]]:
        """None: what was measured is answered, and no combination of it."""
        return []

    def supports(self, product: EncodedProduct) -> bool:
        return product.empty or self._find(product) is not None

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        return np.array([0.0 if p.empty else self._squares(p) * noise[self._block(p)] for p in products])

    def _squares(self, product: EncodedProduct) -> float:
        return product.queries if product.axes else product.squares

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return RowTypes.single(product.factors[axis].shape[0])

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return 1

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if not product.empty:
            yield Factored(self._block(product), tuple(types), ())

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        return list(answers)

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        if not product.axes:  # the total is measured, and these are multiples of it
            return product.multiples * (0.0 if product.empty else float(state[self._block(product)][0]))
        return state[self._block(product)].astype(float)

    @cached_property
    def _places(self) -> dict[tuple[object, ...], int]:
        """The block that measures each product; of several, the one with the largest weight."""
        places: dict[tuple[object, ...], int] = {}
        blocks = self.blocks
        for index, block in enumerate(blocks):
            key = (block.axes, block.factors, block.condition)
            if block.weight > blocks[places.setdefault(key, index)].weight:
                places[key] = index
        return places

    def _find(self, product: EncodedProduct) -> int | None:
        return self._places.get((product.axes, tuple(product.factors.values()), product.condition))

    def _block(self, product: EncodedProduct) -> int:
        index = self._find(product)
        if index is None:
            raise ValueError("the product is not one of the measured ones")
        return index
