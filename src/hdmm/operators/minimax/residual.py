"""OPT_R for the largest error: residuals whose worst answer is as good as can be, under Gaussian noise.

With the bases of the attributes fixed, an answer r has the variance Σ_a c_ar/τ_a, τ being the shares of the sets of
attributes. The least worst ratio to the limits is a convex problem. Its dual puts weights λ on the answers, of sum 1:
the shares that are best for the weighted sum of all variances are closed forms, τ_a ∝ √(Σ_r c_ar λ_r), and that sum,
(Σ_a √(Σ_r c_ar λ_r))², is a lower bound on the worst. Answers that err more than others get more weight, until both
agree. Bases are then found anew for the weighted answers. A row on an attribute that errs less than another one, on
totals and on the rest, is never in the worst answer: such rows are left out. See docs/math.md, section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, final

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.estimators.estimator import Types, in_pieces, types_of
from hdmm.estimators.residual import ResidualLeastSquares
from hdmm.estimators.row_types import RowTypes
from hdmm.matrix import Array, Gram
from hdmm.matrix.axes import subsets
from hdmm.operators.base import Proposal
from hdmm.operators.minimax.weighted import Asked, bound_of, start
from hdmm.operators.residual_search import ResidualSearch
from hdmm.optimise.descent import Effort
from hdmm.parallel import one_blas_thread
from hdmm.strategy import Strategy
from hdmm.workload import Encoded, EncodedProduct

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROUNDS = 4
_ENOUGH = 1e-3
"""A round of new bases that improves the worst ratio by less than this is the last."""
_STEPS, _GAP = 2000, 2e-4
"""Steps of the weights, and the gap between the worst ratio and its bound at which they end."""
_LITTLE = 1e-5
_POWER, _SLOWER, _SLOWEST, _PATIENCE = 1.8, 0.7, 0.2, 8
"""λ ← λ·ratio^power: 2 is Newton's step where no two answers share a set; where nothing improves it is slowed down."""
_ALIKE = 1e-9
_FLOOR = 1e-3
"""The share of an attribute's weight that is spread over all its rows, so that the bases see every one of them."""
_MOST = 1 << 24
"""The most pairs of an answer and a set."""


def worst_residuals(workload: Encoded, limits: Sequence[float | None], effort: Effort) -> Proposal:
    """Residuals with the least worst ratio of a variance to its limit; the bound is on that ratio for any strategy."""
    asked = start(workload, limits)
    best: tuple[float, Strategy] | None = None
    bound = 0.0
    for _ in range(_ROUNDS):
        with one_blas_thread():
            search = ResidualSearch(Gram(workload.sizes, tuple(term for one in asked for term in one.terms(_FLOOR))))
            search.run(effort)
        answers = _Answers(search, ResidualLeastSquares(search.strategy(workload.sizes)), asked)
        value, variances, asked = answers.equalised()
        bound = max(bound, bound_of(workload, asked))
        if best is not None and value > best[0] * (1 - _ENOUGH):
            break
        best = (value, search.strategy(workload.sizes, variances))
        if not search.searched or effort.over:
            break
    assert best is not None
    return Proposal(best[1], bound or None)


@final
@dataclass(frozen=True, eq=False)
class _Kinds:
    """The answers of one product that may be its worst: on each attribute some types of rows, in all combinations."""

    asked: Asked
    types: Types
    kept: tuple[Array, ...]
    """On each attribute the types that are kept."""
    parts: Mapping[int, Array]
    """For the number of each set c_ar, without the limit, for every combination of types."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(kept) for kept in self.kept)

    def weighted(self, weights: Array) -> Asked:
        """The product with weights for its combinations of types."""
        return self.asked.weighted(weights.reshape(self.shape), self.types, self.kept)


@final
class _Answers:
    """Under bases that are fixed: how the variance of every answer that may be the worst depends on the shares."""

    def __init__(self, search: ResidualSearch, estimator: ResidualLeastSquares, asked: Sequence[Asked]) -> None:
        self._search, self._estimator = search, estimator
        self._norms = search.norms
        self._asked = asked
        self._kinds = [self._read(one) for one in asked if one.counts]
        self._aside = np.zeros(len(search.sets))
        for one in asked:
            if not one.counts:
                for number, mean in self._means(one).items():
                    self._aside[number] += one.weight / one.limit * mean

    def equalised(self) -> tuple[float, Array, list[Asked]]:
        """The least worst ratio found, what is then asked of every set, and the weights of the answers."""
        matrix = self._matrix()
        weights = np.concatenate([np.full(prod(kind.shape), 1 / prod(kind.shape)) for kind in self._kinds])
        weights /= weights.sum()
        best, bound, power, idle = np.inf, 0.0, _POWER, 0
        chosen = asked = weights
        for _ in range(_STEPS):
            pure = matrix @ weights
            bound = max(bound, float(np.sqrt(pure).sum() ** 2))
            roots = np.sqrt(pure + self._aside)
            ratios = roots.sum() * (matrix.T @ np.divide(1, roots, out=np.zeros(len(roots)), where=roots > 0))
            value = float(ratios.max())
            idle = 0 if value < best * (1 - _LITTLE) else idle + 1
            if value < best:
                best, chosen, asked = value, weights, pure + self._aside
            if best <= bound * (1 + _GAP) or power < _SLOWEST:
                break
            if idle == _PATIENCE:
                power, idle = _SLOWER * power, 0
            weights = weights * (ratios / value) ** power
            weights = weights / weights.sum()
        ends = np.cumsum([prod(kind.shape) for kind in self._kinds])
        counting = iter(zip(self._kinds, np.split(chosen, ends[:-1]), strict=True))
        found = [one if not one.counts else _Kinds.weighted(*next(counting)) for one in self._asked]
        return best, asked, found

    def _matrix(self) -> csr_array:
        """c_ar over the limit: a row for every set, a column for every answer that may be the worst."""
        from scipy.sparse import csr_array

        sets, places, values, start = [], [], [], 0
        for kind in self._kinds:
            count = prod(kind.shape)
            for number, part in kind.parts.items():
                sets.append(np.full(count, number))
                places.append(np.arange(start, start + count))
                values.append(part.reshape(-1) / kind.asked.limit)
            start += count
        entries = np.concatenate(values), (np.concatenate(sets), np.concatenate(places))
        return csr_array(entries, shape=(len(self._search.sets), start))

    def _read(self, asked: Asked) -> _Kinds:
        product = asked.product
        types = types_of(self._estimator, product)
        pairs = None if product.condition is not None else [_pair(one) for one in types]
        kept = tuple(np.arange(len(one)) for one in types) if pairs is None else tuple(_worst(*pair) for pair in pairs)
        if prod(len(one) for one in kept) << len(kept) > _MOST:
            raise TooLargeError(
                f"product {product.name!r} has too many different answers for the search of the least largest error; "
                'ask for fewer rows, or plan with objective="total"'
            )
        if pairs is None:
            return _Kinds(asked, types, kept, self._written(product, types))
        own = [(even[rows], rest[rows]) for (even, rest), rows in zip(pairs, kept, strict=True)]
        return _Kinds(asked, types, kept, self._products(product, own))

    def _products(self, product: EncodedProduct, pairs: Sequence[tuple[Array, Array]]) -> dict[int, Array]:
        """c_ar for all combinations, from two numbers for every row on every attribute."""
        parts = {}
        for subset in subsets(product.axes):
            number = self._search.number(subset)
            if number is not None:
                part = np.array(prod(self._norms[axis] ** 2 for axis in subset))
                for axis, pair in zip(product.axes, pairs, strict=True):
                    part = np.multiply.outer(part, pair[axis in subset])
                parts[number] = part
        return parts

    def _written(self, product: EncodedProduct, types: Types) -> dict[int, Array]:
        """The same under a condition across attributes."""
        parts: dict[int, list[Array]] = {}
        ones = [1.0] * len(self._estimator.blocks)
        for piece in in_pieces(self._estimator, product, types):
            for block in self._estimator.coefficients(product, piece, ones):
                axes = self._estimator.blocks[block.block].axes
                number = self._search.number(axes)
                assert number is not None
                scale = prod(self._norms[axis] ** 2 for axis in axes)
                parts.setdefault(number, []).append(scale * block.power_sum(2))
        return {number: np.concatenate([np.atleast_1d(part) for part in pieces]) for number, pieces in parts.items()}

    def _means(self, asked: Asked) -> dict[int, float]:
        """What a product without a limit asks of every set, on average over its answers."""
        product = asked.product
        types = types_of(self._estimator, product)
        often = [np.bincount(one.labels, minlength=len(one)) / len(one.labels) for one in types]
        if product.condition is None:
            pairs = [(even @ share, rest @ share) for (even, rest), share in zip(map(_pair, types), often, strict=True)]
            return {number: float(part) for number, part in self._products(product, pairs).items()}
        means = {}
        for number, part in self._written(product, types).items():
            for share in often:
                part = np.tensordot(share, part, 1)
            means[number] = float(part)
        return means


def _pair(types: RowTypes) -> tuple[Array, Array]:
    """For every type (w·f)² and the sum of the squares of w·G."""
    return types.values[:, 0, 1] ** 2, (types.counts * types.values[:, :, 0] ** 2).sum(axis=1)


def _worst(even: Array, rest: Array) -> Array:
    """The types that no other one exceeds in both numbers."""
    kept, most = [], -1.0
    for place in np.lexsort((-rest, -even)):
        if rest[place] > most * (1 + _ALIKE):
            kept.append(int(place))
            most = float(rest[place])
    return np.array(kept)
