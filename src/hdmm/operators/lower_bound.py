"""Lower bounds on the loss of every strategy for a workload, from the duals of docs/math.md, section 13."""

from __future__ import annotations

from math import prod
from typing import final

from hdmm.bounds import MAX_AXIS_CELLS, svd_bound
from hdmm.matrix import AxisGram, Gram
from hdmm.operators.opt0.fourier_root import lower_bound
from hdmm.operators.symmetric_search import dual_bound, sampled_bound
from hdmm.workload import Encoded, EncodedProduct

_MAX_DUAL_CELLS = 256
"""The most cells of an attribute whose dual is solved: it is at once."""


def workload_bound(workload: Encoded) -> float | None:
    """A lower bound for all products together; None if none can be computed.

    If too many cells differ for the dual, it is the better of two others: that of the same questions over some of the
    cells, and the sum of the bounds of all products. The least error of a sum of workloads is at least the sum of their
    least errors, because one strategy serves all of them.
    """
    gram = workload.gram().on(workload.axes)
    bound = dual_bound(gram)
    if bound is not None:
        return bound
    alone = sum_of_bounds(workload)
    if len(workload.products) == 1 and alone:  # its dual is a product over the attributes, and nothing is lost
        return alone
    return max(alone, sampled_bound(gram) or 0.0) or None


def sum_of_bounds(workload: Encoded) -> float:
    """The sum of the bounds of all products, with their weights."""
    bounds = ProductBounds(workload.sizes)
    return sum(float(product.weight) ** 2 * (bounds.of(product) or 0.0) for product in workload.products)


@final
class ProductBounds:
    """Lower bounds on the loss of every strategy for single products; Grams that products share are looked at once."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._duals: dict[int, tuple[AxisGram, float | None]] = {}

    def of(self, product: EncodedProduct) -> float | None:
        """The better of the SVD bound and of the dual, which is a product over the attributes."""
        gram = Gram(self._sizes, product.terms)
        bounds = [svd_bound(gram)]
        if product.condition is not None:
            bounds.append(dual_bound(gram.on(product.axes)))
        elif all(self._dual(factor) is not None for factor in product.grams.values()):
            bounds.append(product.squares * prod(self._dual(factor) or 0.0 for factor in product.grams.values()))
        return max((bound for bound in bounds if bound is not None), default=None)

    def _dual(self, factor: AxisGram) -> float | None:
        """Looked up by identity; the Gram is kept so that its address stays taken."""
        if id(factor) not in self._duals:
            gram = Gram.of(factor)
            if factor.size > MAX_AXIS_CELLS:
                bound = lower_bound(factor) or svd_bound(gram)
            elif factor.size <= _MAX_DUAL_CELLS and factor.two_eigenvalues() is None:
                bound = dual_bound(gram)
            else:
                bound = svd_bound(gram)
            self._duals[id(factor)] = (factor, bound)
        return self._duals[id(factor)][1]
