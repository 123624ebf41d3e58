"""The plain mechanism: each product of the workload is measured and published as it is (paper, prop:error0)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hdmm.matrix import Array
from hdmm.strategy.base import Coefficients, Noise, Spread, Strategy
from hdmm.strategy.rows import RowTypes
from hdmm.workload import EncodedProduct


@final
@dataclass(frozen=True, eq=False)
class DirectStrategy(Strategy):
    """One block per product; an answer is the noisy answer itself."""

    def supports(self, product: EncodedProduct) -> bool:
        return product.empty or self._find(product) is not None

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        if not product.axes:
            return 0.0 if product.empty else product.squares * noise[self._block(product)]
        return product.queries * noise[self._block(product)]

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return 1

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return RowTypes.single(product.factors[axis].shape[0])

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if product.empty:
            return
        one = np.ones([1] * (2 * len(types)))
        yield Spread(self._block(product), one, one, len(types))

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        return list(answers)

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        if not product.axes:  # measured is the total, of which these are multiples
            return product.multiples * (0.0 if product.empty else float(state[self._block(product)][0]))
        return state[self._block(product)].astype(float)

    @cached_property
    def _places(self) -> dict[tuple[object, ...], int]:
        """Where each product is measured; of equal ones, where its weight is largest."""
        places: dict[tuple[object, ...], int] = {}
        for index, block in enumerate(self.blocks):
            asked = (block.axes, block.factors, block.condition)
            known = places.setdefault(asked, index)
            if block.weight > self.blocks[known].weight:
                places[asked] = index
        return places

    def _find(self, product: EncodedProduct) -> int | None:
        return self._places.get((product.axes, tuple(product.factors.values()), product.condition))

    def _block(self, product: EncodedProduct) -> int:
        found = self._find(product)
        if found is None:
            raise ValueError("the product is not one of the measured ones")
        return found
