"""Least squares over all blocks at once (paper, section 10): one population for all tables, so that they add up.

The best linear answer uses all blocks, each weighted by its noise; by Gauss and Markov no answer has a larger variance
than from one block. It is found by iteration in coordinates that all blocks share (see `equations`); no vector of the
full domain is needed.

How answers depend on the noise is written out if there are few coordinates; else, on request, by one solve for every
answer. Without that, errors are those of answers from one block: upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.estimators.blockwise import BlockLeastSquares
from hdmm.estimators.coefficients import Coefficients, Written, written_rows, written_size, written_types
from hdmm.estimators.coordinates import Coordinates
from hdmm.estimators.equations import NEGLIGIBLE, Equations, block_lengths, equation_variances
from hdmm.estimators.estimator import LinearEstimator, Noise
from hdmm.estimators.footprint import NUMBER
from hdmm.estimators.latest import Latest
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array, Gram
from hdmm.workload import EncodedProduct

_MAX_COORDINATES = 1 << 10
"""The most coordinates for which the inverse is written out."""
_MAX_INVERSE = 1 << 22
"""The most entries of an inverse that is written out."""
_LSMR_VECTORS = 8
"""Vectors of unknowns, and of answers, while least squares is iterated."""


@final
class JointLeastSquares(LinearEstimator[Array]):
    """Least squares over all blocks. The state is the coordinates that fit all answers best.

    ``local`` answers products from one block alone; its errors are the upper bounds. With ``solved``, exact errors are
    worth one solve for every answer.
    """

    def __init__(self, local: LinearEstimator[Any], *, solved: bool = False) -> None:
        self.strategy = local.strategy
        self.local = local
        self._solved = solved
        self._equations = Latest(self._weighed)

    @property
    def bounded(self) -> bool:
        return not (self._solved or self._inverse_fits)

    @cached_property
    def _inverse_fits(self) -> bool:
        count = self._coordinates.count
        return count <= _MAX_COORDINATES and count * self.strategy.queries <= _MAX_INVERSE

    @cached_property
    def _coordinates(self) -> Coordinates:
        return Coordinates(self.strategy.sizes, (block.axes for block in self.blocks))

    def exact(self) -> LinearEstimator[Any]:
        return JointLeastSquares(self.local, solved=True) if self.bounded else self

    def supports(self, product: EncodedProduct) -> bool:
        """Whether one block determines the product; or all of them together, if the inverse is written out."""
        if not self._coordinates.holds(product.axes):
            return False
        if self._from_one_block(product).supports(product):
            return True
        if not self._inverse_fits:
            return False
        everything = max(Gram(self.strategy.sizes, product.terms).on(product.axes).trace(), 1.0)
        return not self._unseen.size or self._square_sum(product, self._unseen) <= NEGLIGIBLE * everything

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        """Exact if the inverse is written out, else those of answers from one block, which are not smaller.

        They are not solved for: a sum over all answers would take as many solves.
        """
        if not self._inverse_fits:
            covering = self._covering(noise)
            return np.array([self._from_one_block(product).squared_error(product, covering) for product in products])
        deviations = np.repeat(np.sqrt(noise), [block.queries for block in self.blocks])
        columns = self._equations(tuple(noise)).inverse * deviations
        return np.array([self._square_sum(product, columns) for product in products])

    def covering(self, noise: Noise) -> Noise:
        """If errors are bounds, no variance is below the one that weighs its block: no answer errs more than that."""
        return self._covering(noise) if self.bounded else noise

    def _covering(self, noise: Noise) -> Noise:
        """The variances by which blocks are weighed: those of the noise, or more.

        Under these no block alone does better than all together, so answers have no larger variance than from one block
        under these.
        """
        variances = equation_variances(self.blocks, noise)
        scale = max(variance / weighed for variance, weighed in zip(noise, variances, strict=True))
        return [max(variance, scale * weighed) for variance, weighed in zip(noise, variances, strict=True)]

    def _from_one_block(self, product: EncodedProduct) -> LinearEstimator[Any]:
        """How a product is answered from one block: by the local estimator, or by that block's least squares."""
        return self.local if self.local.supports(product) else self._blockwise

    @cached_property
    def _blockwise(self) -> BlockLeastSquares:
        return BlockLeastSquares(self.strategy)

    def _square_sum(self, product: EncodedProduct, columns: Array) -> float:
        """The sum of the squares of a product's answers to columns of coordinates."""
        return product.square_sum(self._coordinates.table(columns, product.axes), self.strategy.sizes)

    @cached_property
    def _unseen(self) -> Array:
        """Directions that no block sees, whatever the noise and the weights."""
        return Equations(self._coordinates, self.blocks, block_lengths(self.blocks)).unseen()

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        if self.bounded:
            return self._from_one_block(product).row_types(product, axis)
        return written_types(product, axis)

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        if self.bounded:
            return self._from_one_block(product).row_size(product, types)
        return written_size(product, types, self.strategy.queries)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if self.bounded:
            yield from self._from_one_block(product).coefficients(product, types, noise)
            return
        rows, equations = written_rows(product, types), self._equations(tuple(noise))
        if self._inverse_fits:
            values = rows @ self._coordinates.table(equations.inverse, product.axes)
        else:
            values = np.stack([equations.dual(product.axes, row) for row in rows])
        for index, part in enumerate(np.split(values, equations.ends, axis=1)):
            yield Written.rows(index, part, types)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> Array:
        return self._equations(tuple(noise)).solve(answers)

    def answer(self, product: EncodedProduct, state: Array) -> Array:
        sizes = self.strategy.sizes_of(product.axes)
        return product.matrix(sizes).apply(self._coordinates.table(state, product.axes))

    def state_bytes(self) -> Sequence[int]:
        tables = [NUMBER * block.cells for block in self.blocks]  # of places; one more of counts
        unknowns, answers = sum(tables), NUMBER * self.strategy.queries
        return [*tables, max(tables), *[unknowns] * _LSMR_VECTORS, *[answers] * _LSMR_VECTORS]

    def _weighed(self, noise: tuple[float, ...]) -> Equations:
        return Equations(self._coordinates, self.blocks, equation_variances(self.blocks, noise))
