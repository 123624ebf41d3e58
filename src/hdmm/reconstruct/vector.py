"""A vector of counts over all attributes that were measured, and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.matrix import Array
from hdmm.workload import EncodedProduct


@final
@dataclass(frozen=True, eq=False)
class Vector:
    """A count for every cell of some attributes."""

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: Array

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to a product."""
        return product.answers(self.counts, dict(zip(self.axes, self.sizes, strict=True)))
