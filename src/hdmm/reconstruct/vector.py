"""A vector of counts over all attributes that were measured, and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.matrix import Array, Identity, Kron, Total
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
        shape = dict(zip(self.axes, self.sizes, strict=True)) or {-1: 1}
        if product.condition is None:
            return Kron(product.factors.get(axis) or Total(n) for axis, n in shape.items()).apply(self.counts)
        own = {axis: shape[axis] for axis in product.axes}
        table = Kron(Identity(n) if axis in own else Total(n) for axis, n in shape.items()).apply(self.counts)
        return product.matrix(own).apply(table)
