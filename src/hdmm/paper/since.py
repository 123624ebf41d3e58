"""Systems newer than the paper, at ρ = 0.5: Gaussian noise of variance 1 on a strategy of sensitivity 1.

Where another system is a formula it is evaluated here, and measured by the same code as ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np

from hdmm.bounds import svd_bound
from hdmm.estimators.least_squares import exact_least_squares, strategy_loss
from hdmm.matrix import Dense
from hdmm.objective import Objective
from hdmm.operators import Explicit, Residual
from hdmm.operators.base import Operator, Proposal
from hdmm.operators.minimax.prefix import square_root
from hdmm.operators.minimax.search import least_worst
from hdmm.optimise.descent import DEFAULT
from hdmm.paper.rounding import rounded_loss
from hdmm.paper.workloads import one_d, survey_marginals
from hdmm.schema import Schema
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded, marginals


def marginals_error(survey: str, ways: str, prefixes: bool) -> Mapping[str, Any]:
    """The RMSE of residuals for marginals, and the SVD bound if it has a closed form."""
    encoded = survey_marginals(survey, ways, prefixes=prefixes).encoded
    start = perf_counter()
    strategy = _proposed(Residual(), encoded).strategy
    seconds = perf_counter() - start
    squared = strategy_loss(strategy, encoded, 2)
    rounded = rounded_loss(strategy, encoded, 2)
    bound = svd_bound(encoded.gram())
    return {
        "rmse": sqrt(squared / encoded.query_count),
        "rounding": None if rounded is None else sqrt(rounded / squared) - 1,
        "bound": None if bound is None else sqrt(bound / encoded.query_count),
        "seconds": seconds,
    }


def counts_error(d: int) -> Mapping[str, Any]:
    """The largest error of d counts, as the tables of d attributes of two values, ours and with correlated noise."""
    encoded = marginals(Schema({f"a{place}": [False, True] for place in range(d)}), k=1).encoded
    return {**_least_largest(Residual(), encoded), "other": correlated_noise(d)}


def prefix_error(n: int) -> Mapping[str, Any]:
    """The RMSE and the largest error of n prefixes, ours and of the normalised square root."""
    encoded = one_d("prefix", n).encoded
    proposal = _proposed(Explicit(), encoded)
    other = Strategy((n,), (Block((0,), (Dense(square_root(n)),)),), "kron")
    return {
        "rmse": sqrt(strategy_loss(proposal.strategy, encoded, 2) / n),
        "rmse bound": sqrt((proposal.bound or 0.0) / n),
        "other rmse": sqrt(strategy_loss(other, encoded, 2) / n),
        **_least_largest(Explicit(), encoded),
        "other": _largest(other, encoded),
    }


def correlated_noise(d: int) -> float:
    """The standard deviation of d counts under noise of covariance (d + √d)/4·I + (√d + 1)/4·11ᵀ (Lebeda 2025).

    It is divided by the largest length, in the inverse covariance, of what one person adds: any vector of zeros and
    ones, of which only the number of ones matters.
    """
    own, common = (d + sqrt(d)) / 4, (sqrt(d) + 1) / 4
    ones = np.arange(1, d + 1)
    lengths = ones / own - ones**2 * common / (own * (own + d * common))
    return sqrt((own + common) * float(lengths.max()))


def _least_largest(operator: Operator, encoded: Encoded) -> Mapping[str, Any]:
    start = perf_counter()
    proposal = least_worst(operator, encoded, (1.0,) * len(encoded.products), 2, DEFAULT)
    seconds = perf_counter() - start
    assert isinstance(proposal, Proposal)
    bound = None if proposal.bound is None else sqrt(proposal.bound)
    return {"largest": _largest(proposal.strategy, encoded), "bound": bound, "seconds": seconds}


def _largest(strategy: Strategy, encoded: Encoded) -> float:
    """The largest standard error of any answer at unit noise."""
    objective = Objective((1.0,) * len(encoded.products))
    return sqrt(objective.value(exact_least_squares(strategy), encoded, 2))


def _proposed(operator: Operator, encoded: Encoded) -> Proposal:
    proposal = operator.propose(encoded, 2)
    assert isinstance(proposal, Proposal)
    return proposal
