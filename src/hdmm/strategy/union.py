"""Several Kronecker products, each product of the workload answered from one of them (paper, OPT_+).

Answers are local least squares: from the block that gives the product its least error, by that block alone. Least
squares over all blocks together would do no worse, so the error here is an upper bound for it (MATH §5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

from hdmm.matrix import Array
from hdmm.strategy.base import Coefficients, Noise, Strategy
from hdmm.strategy.kron import KronStrategy
from hdmm.strategy.rows import RowTypes
from hdmm.workload import EncodedProduct


@final
@dataclass(frozen=True, eq=False)
class UnionStrategy(Strategy):
    """One Kronecker product per group of products."""

    @cached_property
    def _parts(self) -> tuple[KronStrategy, ...]:
        return tuple(KronStrategy(self.sizes, (block,)) for block in self.blocks)

    @cached_property
    def _homes(self) -> dict[EncodedProduct, int | None]:
        return {}

    def home(self, product: EncodedProduct) -> int | None:
        """The block that answers a product: the one with the least error, noise being as the weights say."""
        if product not in self._homes:
            errors = {
                index: part.squared_error(product, [1 / float(part.block.weight) ** 2])
                for index, part in enumerate(self._parts)
                if part.block.condition is None and part.supports(product)
            }
            self._homes[product] = min(errors, key=errors.__getitem__, default=None)
        return self._homes[product]

    def supports(self, product: EncodedProduct) -> bool:
        return self.home(product) is not None

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        index, part = self._home(product)
        return part.squared_error(product, [noise[index]])

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        return self._home(product)[1].row_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return self._home(product)[1].row_size(product, types)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        index, part = self._home(product)
        for one in part.coefficients(product, types, [noise[index]]):
            yield replace(one, block=index)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> list[Array]:
        """The least-squares estimate of the counts over each block's attributes."""
        return [
            part.reconstruct([given], [variance])
            for part, given, variance in zip(self._parts, answers, noise, strict=True)
        ]

    def answer(self, product: EncodedProduct, state: list[Array]) -> Array:
        index, part = self._home(product)
        return part.answer(product, state[index])

    def _home(self, product: EncodedProduct) -> tuple[int, KronStrategy]:
        index = self.home(product)
        if index is None:
            raise ValueError("no block can answer the product")
        return index, self._parts[index]
