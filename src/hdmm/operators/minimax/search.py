"""The least largest error: any operator on weighted answers, with more weight on those whose error is large.

For residuals under Gaussian noise, over few cells, and for a single product the search is exact up to a gap. For other
operators it is a best effort: a few rounds in which the weight of every row of every product grows with its error. See
docs/math.md, section 9.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from hdmm.estimators.estimator import LinearEstimator, Types, types_of, variances, worst_variance
from hdmm.estimators.least_squares import exact_least_squares
from hdmm.matrix import Array, Norm
from hdmm.operators.base import Aside, Limits, Operator, Proposal, WorstCase
from hdmm.operators.minimax.weighted import LimitedProduct, bound_of, initial_weights
from hdmm.optimise.descent import Effort
from hdmm.strategy import Strategy
from hdmm.workload import Encoded

_FLOOR = 1e-3
"""The share of a row's weight that is the same for all rows of an attribute: the strategy then supports every row."""
_MAX_TYPES = 1 << 22
"""The most combinations of row types of a product that are weighted one by one."""
_PATIENCE = 2
"""How many rounds in a row may fail to improve."""


def least_worst(
    operator: Operator, workload: Encoded, limits: Limits, norm: Norm, effort: Effort, rounds: int = 1
) -> Proposal | Aside:
    """The strategy of an operator with the least worst ratio of a variance to its limit, and a bound on that ratio.

    More ``rounds`` improve what the operator finds for answers of equal weight.
    """
    workload, limits = _counting(workload, limits)
    if all(limit is None for limit in limits):  # nothing has a limit, and there is no bound on what counts
        proposal = operator.propose(workload, norm, effort)
        return replace(proposal, bound=None)
    if isinstance(operator, WorstCase):
        exact = operator.propose_worst(workload, limits, norm, effort)
        if exact is not None:
            return exact
    products = initial_weights(workload, limits)
    best: tuple[float, Strategy] | None = None
    bound, idle = 0.0, 0
    reason = ""
    for number in range(rounds):
        floor = _FLOOR if number else 0.0
        weighted = Encoded(workload.sizes, tuple(product.encoded(floor) for product in products), workload.names)
        proposal = operator.propose(weighted, norm, effort)
        effort = replace(effort, restarts=min(effort.restarts, 1))
        if isinstance(proposal, Aside):
            reason = proposal.reason
            break
        estimator = exact_least_squares(proposal.strategy)
        if not all(estimator.supports(product) for product in workload.products):
            reason = "its strategy for weighted answers does not answer all of them"
            break
        tables = [_variance_table(estimator, product, norm) for product in products]
        pairs = zip(tables, products, strict=True)
        value = max(float(table.max()) / product.limit for (_, table), product in pairs if product.counts)
        if norm == 2 and number:
            bound = max(bound, bound_of(workload, products))
        idle = 0 if best is None or value < best[0] else idle + 1
        if best is None or value < best[0]:
            best = (value, proposal.strategy)
        if idle == _PATIENCE or effort.over:
            break
        products = [_reweighted(product, *table) for product, table in zip(products, tables, strict=True)]
        total = sum(product.weight for product in products if product.counts)
        products = [product.scaled(1 / total) if product.counts else product for product in products]
    return Aside(reason) if best is None else Proposal(best[1], bound or None)


def _counting(workload: Encoded, limits: Limits) -> tuple[Encoded, tuple[float | None, ...]]:
    """The products that count somebody, with their limits; multiples of the total become the total."""
    pairs = [(product, limit) for product, limit in zip(workload.products, limits, strict=True) if not product.empty]
    if not pairs:
        return workload.sought, (None,)
    tightest = [None if limit is None else limit / float(abs(p.multiples).max()) ** 2 for p, limit in pairs]
    return Encoded(workload.sizes, tuple(product.total for product, _ in pairs), workload.names), tuple(tightest)


def _variance_table(estimator: LinearEstimator[Any], limited: LimitedProduct, norm: Norm) -> tuple[Types | None, Array]:
    """The variances of a product's answers for all combinations of row types; or only the worst of them."""
    noise = estimator.strategy.unit_noise(norm)
    product = limited.product
    types = types_of(estimator, product)
    if not limited.counts or product.condition is not None or prod(len(part) for part in types) > _MAX_TYPES:
        return None, np.array([worst_variance(estimator, product, noise)])
    return types, variances(estimator, product, noise, types)


def _reweighted(limited: LimitedProduct, types: Types | None, table: Array) -> LimitedProduct:
    """More weight on answers with a large error."""
    if not limited.counts:
        return limited
    ratios = table / limited.limit
    if types is None:
        return limited.scaled(float(ratios.max()))
    weights = np.array(limited.weight)
    for axis, row_types in zip(limited.product.axes, types, strict=True):
        count = len(row_types.labels)
        rows = limited.rows.get(axis, np.full(count, 1 / count))
        weights = np.multiply.outer(weights, np.bincount(row_types.labels, rows, minlength=len(row_types)))
    return limited.weighted(weights * ratios, types)
