"""OPT_R for the largest error: residuals with the best worst answer, under Gaussian noise.

With the bases of the attributes fixed, an answer r has the variance Σ_a c_ar/τ_a, τ being the shares of the sets of
attributes. The least worst ratio to the limits is a convex problem. Its dual puts weights λ on the answers, of sum 1:
the shares that are best for the weighted sum of all variances are closed forms, τ_a ∝ √(Σ_r c_ar λ_r), and that sum,
(Σ_a √(Σ_r c_ar λ_r))², is a lower bound on the worst. Answers with larger errors get more weight, until both agree. New
bases are then searched for the weighted answers. If one row of an attribute has smaller errors than another, on totals
and on the rest, it is never in the worst answer: such rows are left out. See docs/math.md, section 9.
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
from hdmm.operators.base import Limits, Proposal
from hdmm.operators.minimax.weighted import LimitedProduct, bound_of, initial_weights
from hdmm.operators.residual_search import ResidualSearch
from hdmm.optimise.descent import Effort
from hdmm.parallel import one_blas_thread
from hdmm.strategy import Strategy
from hdmm.syntax import example
from hdmm.workload import Encoded, EncodedProduct

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MAX_ROUNDS = 4
_LEAST_ROUND_GAIN = 1e-3
"""A round of new bases that improves the worst ratio by less than this is the last."""
_MAX_STEPS = 2000
"""The most steps of the weights in a round."""
_GAP = 2e-4
"""The gap between the worst ratio and its bound at which the steps end."""
_LEAST_STEP_GAIN = 1e-5
"""A step that improves the worst ratio by less than this fails."""
_POWER = 1.8
"""λ ← λ·ratio^power, at first: 2 is Newton's step if no two answers share a set."""
_SLOWDOWN = 0.7
"""What the power is multiplied by if nothing improves."""
_LEAST_POWER = 0.2
_PATIENCE = 8
"""How many steps in a row may fail before the power is reduced."""
_ROUNDING = 1e-9
"""Errors of rows that differ by a smaller ratio are taken for equal."""
_FLOOR = 1e-3
"""The share of a row's weight that is the same for all rows of an attribute, so that bases answer every row."""
_MAX_PAIRS = 1 << 24
"""The most pairs of an answer and a set."""


def worst_residuals(workload: Encoded, limits: Limits, effort: Effort) -> Proposal:
    """Residuals with the least worst ratio of a variance to its limit; the bound is on that ratio for any strategy."""
    products = initial_weights(workload, limits)
    best: tuple[float, Strategy] | None = None
    bound = 0.0
    for _ in range(_MAX_ROUNDS):
        terms = tuple(term for product in products for term in product.terms(_FLOOR))
        with one_blas_thread():
            search = ResidualSearch(Gram(workload.sizes, terms))
            search.run(effort)
        answers = _Answers(search, ResidualLeastSquares(search.strategy(workload.sizes)), products)
        value, variances, products = answers.equalised()
        bound = max(bound, bound_of(workload, products))
        if best is not None and value > best[0] * (1 - _LEAST_ROUND_GAIN):
            break
        best = (value, search.strategy(workload.sizes, variances))
        if not search.searched or effort.over:
            break
    assert best is not None
    return Proposal(best[1], bound or None)


@final
@dataclass(frozen=True, eq=False)
class _WorstTypes:
    """The answers of one product that may be its worst: on each attribute some row types, in all combinations."""

    limited: LimitedProduct
    types: Types
    kept: tuple[Array, ...]
    """On each attribute the types that are kept."""
    parts: Mapping[int, Array]
    """For the number of each set c_ar, without the limit, for every combination of types."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of types that are kept on each attribute."""
        return tuple(len(kept) for kept in self.kept)

    @property
    def count(self) -> int:
        """The number of combinations."""
        return prod(self.shape)

    def weighted(self, weights: Array) -> LimitedProduct:
        """The product with weights for its combinations of types."""
        return self.limited.weighted(weights.reshape(self.shape), self.types, self.kept)


@final
class _Answers:
    """How the variance of every answer that may be the worst depends on the shares, with the bases fixed."""

    def __init__(
        self, search: ResidualSearch, estimator: ResidualLeastSquares, products: Sequence[LimitedProduct]
    ) -> None:
        self._search, self._estimator = search, estimator
        self._norms = search.norms
        self._products = products
        self._worst_types = [self._find_worst_types(limited) for limited in products if limited.counts]
        self._unlimited = np.zeros(len(search.sets))
        for limited in products:
            if not limited.counts:
                for number, mean in self._means(limited.product).items():
                    self._unlimited[number] += limited.weight / limited.limit * mean

    def equalised(self) -> tuple[float, Array, list[LimitedProduct]]:
        """The least worst ratio found, what is then asked of every set, and the weights of the answers."""
        matrix = self._matrix()
        weights = np.concatenate([np.full(types.count, 1 / types.count) for types in self._worst_types])
        weights /= weights.sum()
        best, bound, power, idle = np.inf, 0.0, _POWER, 0
        best_weights = best_asked = weights
        for _ in range(_MAX_STEPS):
            limited = matrix @ weights
            bound = max(bound, float(np.sqrt(limited).sum() ** 2))
            asked = limited + self._unlimited
            roots = np.sqrt(asked)
            ratios = roots.sum() * (matrix.T @ np.divide(1, roots, out=np.zeros(len(roots)), where=roots > 0))
            value = float(ratios.max())
            idle = 0 if value < best * (1 - _LEAST_STEP_GAIN) else idle + 1
            if value < best:
                best, best_weights, best_asked = value, weights, asked
            if best <= bound * (1 + _GAP) or power < _LEAST_POWER:
                break
            if idle == _PATIENCE:
                power, idle = _SLOWDOWN * power, 0
            weights = weights * (ratios / value) ** power
            weights = weights / weights.sum()
        ends = np.cumsum([types.count for types in self._worst_types])
        pairs = zip(self._worst_types, np.split(best_weights, ends[:-1]), strict=True)
        weighted = iter([types.weighted(part) for types, part in pairs])
        return best, best_asked, [next(weighted) if product.counts else product for product in self._products]

    def _matrix(self) -> csr_array:
        """c_ar over the limit: a row for every set, a column for every answer that may be the worst."""
        from scipy.sparse import csr_array

        sets, places, values, start = [], [], [], 0
        for types in self._worst_types:
            for number, part in types.parts.items():
                sets.append(np.full(types.count, number))
                places.append(np.arange(start, start + types.count))
                values.append(part.reshape(-1) / types.limited.limit)
            start += types.count
        entries = np.concatenate(values), (np.concatenate(sets), np.concatenate(places))
        return csr_array(entries, shape=(len(self._search.sets), start))

    def _find_worst_types(self, limited: LimitedProduct) -> _WorstTypes:
        product = limited.product
        types = types_of(self._estimator, product)
        pairs = None if product.condition is not None else [_errors(row_types) for row_types in types]
        if pairs is None:
            kept = tuple(np.arange(len(row_types)) for row_types in types)
        else:
            kept = tuple(_not_exceeded(*pair) for pair in pairs)
        if prod(len(numbers) for numbers in kept) << len(kept) > _MAX_PAIRS:
            raise TooLargeError(
                f"product {product.name!r} has too many different answers for the search of the least largest error; "
                f"ask for fewer rows, or plan with {example('objective', 'total')}"
            )
        if pairs is None:
            return _WorstTypes(limited, types, kept, self._written(product, types))
        kept_pairs = [(on_total[rows], rest[rows]) for (on_total, rest), rows in zip(pairs, kept, strict=True)]
        return _WorstTypes(limited, types, kept, self._outer_products(product, kept_pairs))

    def _outer_products(self, product: EncodedProduct, pairs: Sequence[tuple[Array, Array]]) -> dict[int, Array]:
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

    def _means(self, product: EncodedProduct) -> dict[int, float]:
        """What a product asks of every set, on average over its answers."""
        types = types_of(self._estimator, product)
        shares = [np.bincount(part.labels, minlength=len(part)) / len(part.labels) for part in types]
        if product.condition is None:
            errors = zip(map(_errors, types), shares, strict=True)
            pairs = [(on_total @ share, rest @ share) for (on_total, rest), share in errors]
            return {number: float(part) for number, part in self._outer_products(product, pairs).items()}
        means = {}
        for number, part in self._written(product, types).items():
            for share in shares:
                part = np.tensordot(share, part, 1)
            means[number] = float(part)
        return means


def _errors(types: RowTypes) -> tuple[Array, Array]:
    """For every type (w·f)², on totals, and on the rest the sum of the squares of w·G."""
    return types.values[:, 0, 1] ** 2, (types.counts * types.values[:, :, 0] ** 2).sum(axis=1)


def _not_exceeded(on_total: Array, rest: Array) -> Array:
    """The types that no other one exceeds in both errors."""
    kept, largest = [], -1.0
    for place in np.lexsort((-rest, -on_total)):
        if rest[place] > largest * (1 + _ROUNDING):
            kept.append(int(place))
            largest = float(rest[place])
    return np.array(kept)
