"""The least largest error: any operator on weighted answers, the weights moved to where the error is largest.

For residuals under Gaussian noise, over few cells, and for a single product the search is exact up to a gap. For the
others it is a best effort: a few rounds in which every row of every product gets a weight that grows with its error.
See docs/math.md, section 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from hdmm.estimators.estimator import LinearEstimator, Types, types_of, variances, worst_variance
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Array, Norm
from hdmm.operators.base import Aside, Operator, Proposal, WorstCase
from hdmm.operators.minimax.weighted import Asked, bound_of, start
from hdmm.optimise.descent import Effort
from hdmm.strategy import Strategy
from hdmm.workload import Encoded

_POWER = 1.0
_FLOOR = 1e-3
"""The share of an attribute's weight that is spread over all its rows, so that the strategy supports every one."""
_MOST = 1 << 22
"""The most answers of a product, up to types of rows, that are weighted one by one."""
_WORSE = 2
"""How many rounds in a row may fail to improve."""


def least_worst(
    operator: Operator,
    workload: Encoded,
    limits: Sequence[float | None],
    norm: Norm,
    effort: Effort,
    rounds: int = 1,
) -> Proposal | Aside:
    """The strategy of an operator with the least worst ratio of a variance to its limit, and a bound on that ratio.

    More ``rounds`` improve what the operator finds for answers of equal weight.
    """
    workload, limits = _counting(workload, limits)
    if all(limit is None for limit in limits):
        return operator.propose(workload, norm, effort)
    if isinstance(operator, WorstCase):
        exact = operator.propose_worst(workload, limits, norm, effort)
        if exact is not None:
            return exact
    asked = start(workload, limits)
    best: tuple[float, Strategy] | None = None
    bound, idle = 0.0, 0
    reason = ""
    for number in range(rounds):
        floor = _FLOOR if number else 0.0
        weighted = Encoded(workload.sizes, tuple(one.encoded(floor) for one in asked))
        proposal = operator.propose(weighted, norm, effort)
        effort = replace(effort, restarts=min(effort.restarts, 1))
        if isinstance(proposal, Aside):
            reason = proposal.reason
            break
        estimator = local_least_squares(proposal.strategy)
        if not all(estimator.supports(product) for product in workload.products):
            reason = "its strategy for weighted answers does not answer all of them"
            break
        tables = [_table(estimator, one, norm) for one in asked]
        value = max(float(table.max()) / one.limit for (_, table), one in zip(tables, asked, strict=True) if one.counts)
        if norm == 2 and number:
            bound = max(bound, bound_of(workload, asked))
        idle = 0 if best is None or value < best[0] else idle + 1
        if best is None or value < best[0]:
            best = (value, proposal.strategy)
        if idle == _WORSE or effort.over:
            break
        asked = [_moved(one, *table) for one, table in zip(asked, tables, strict=True)]
        total = sum(one.weight for one in asked if one.counts)
        asked = [one.scaled(1 / total) if one.counts else one for one in asked]
    return Aside(reason) if best is None else Proposal(best[1], bound or None)


def _counting(workload: Encoded, limits: Sequence[float | None]) -> tuple[Encoded, tuple[float | None, ...]]:
    """The products that count somebody, with their limits; of multiples of the total, the total with the tightest."""
    pairs = [(product, limit) for product, limit in zip(workload.products, limits, strict=True) if not product.empty]
    if not pairs:
        return workload.sought, (None,)
    tightest = [None if limit is None else limit / float(abs(p.multiples).max()) ** 2 for p, limit in pairs]
    return Encoded(workload.sizes, tuple(product.total for product, _ in pairs)), tuple(tightest)


def _table(estimator: LinearEstimator[Any], asked: Asked, norm: Norm) -> tuple[Types | None, Array]:
    """The variances of a product's answers for all combinations of row types; or only the worst of them."""
    noise = estimator.strategy.unit_noise(norm)
    types = types_of(estimator, asked.product)
    if not asked.counts or asked.product.condition is not None or prod(len(one) for one in types) > _MOST:
        return None, np.array([worst_variance(estimator, asked.product, noise)])
    return types, variances(estimator, asked.product, noise, types)


def _moved(asked: Asked, types: Types | None, table: Array) -> Asked:
    """More weight where the error is large."""
    if not asked.counts:
        return asked
    ratios = (table / asked.limit) ** _POWER
    if types is None:
        return asked.scaled(float(ratios.max()))
    now = np.array(asked.weight)
    for axis, own in zip(asked.product.axes, types, strict=True):
        rows = asked.rows.get(axis, np.full(len(own.labels), 1 / len(own.labels)))
        now = np.multiply.outer(now, np.bincount(own.labels, rows, minlength=len(own)))
    return asked.weighted(now * ratios, types)
