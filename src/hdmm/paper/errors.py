"""The errors of strategies on the paper's workloads, at ε = 1 and, for Gaussian noise, δ = 1e-6."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import prod, sqrt
from time import perf_counter
from typing import Any, cast, get_args

from hdmm import baselines
from hdmm.errors import TooLargeError
from hdmm.estimators.estimator import loss
from hdmm.estimators.least_squares import local_least_squares, strategy_loss
from hdmm.matrix import Norm
from hdmm.operators import Kron
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.paper import census, workloads
from hdmm.paper.rounding import rounded_loss
from hdmm.paper.svd import any_svd_bound
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import gaussian_sigma
from hdmm.workload import Encoded, Workload

Case = tuple[str, str]
"""The names that a row of the paper's tables begins with: workload and domain, or dataset and workload."""
WORKLOADS: dict[Case, Callable[[], Workload]] = {
    ("Census (5D)", "SF1"): census.sf1,
    ("Census (5D)", "SF1+"): census.sf1_plus,
    ("CPS (5D)", "All Marginals"): workloads.cps_marginals,
    ("CPS (5D)", "All Prefix-Marginals"): workloads.cps_prefix,
    ("Adult (14D)", "<= 3D Marginals"): workloads.adult_marginals,
    ("Adult (14D)", "2D Prefix-Marginals"): workloads.adult_prefix,
    ("Loans (12D)", "Small Marginals"): workloads.loans_small,
    ("Loans (12D)", "Small Prefix-Marginals"): workloads.loans_small_prefix,
}
"""The workloads on several attributes, by the names of the paper's tables."""


def strategy_error(case: Case, operator: Operator, norm: Norm) -> Mapping[str, Any]:
    """The squared error of the strategy that an operator proposes, before and after rounding it to integers.

    Without a strategy there is the reason why.
    """
    encoded = encoded_case(case)
    start = perf_counter()
    proposal = operator.propose(encoded, norm)
    if isinstance(proposal, Aside) and operator.name == "Union":  # a workload of one product: one group is all there is
        proposal = Kron().propose(encoded, norm)
    if isinstance(proposal, Aside):
        return {"reason": proposal.reason}
    squared = strategy_loss(proposal.strategy, encoded, norm)
    return {
        "squared": squared,
        "seconds": perf_counter() - start,
        "rounded": rounded_loss(proposal.strategy, encoded, norm),
        "bound": proposal.bound,
        "scale": _scale(encoded, norm),
    }


def published_error(case: Case, operator: Operator, norm: Norm) -> Mapping[str, Any]:
    """The squared error of a mechanism that publishes its answers as they are measured."""
    encoded = encoded_case(case)
    proposal = operator.propose(encoded, norm)
    assert isinstance(proposal, Proposal)
    return {
        "squared": loss(local_least_squares(proposal.strategy), encoded, norm),
        "scale": _scale(encoded, norm),
    }


def plain_error(case: Case, norm: Norm) -> Mapping[str, Any]:
    """The squared error of the plain mechanism; and as the paper has it, with Σ_j ‖W_j‖^p for the norm of the stack."""
    encoded = encoded_case(case)
    products = encoded.products
    norms = sum(float(prod(matrix.norm_power(norm) for matrix in product.factors.values())) for product in products)
    exact = published_error(case, baselines.Plain(), norm)
    return {"squared": encoded.query_count * norms ** (2 / norm), "exact": exact["squared"], "scale": exact["scale"]}


def svd_error(case: Case, norm: Norm) -> Mapping[str, Any]:
    """The SVD bound, if it can be computed."""
    encoded = encoded_case(case)
    try:
        return {"squared": any_svd_bound(encoded.gram()), "scale": _scale(encoded, norm)}
    except TooLargeError:
        return {"reason": "no closed form, and too many different cells for singular values"}


def root_mean_square(outcome: Mapping[str, Any], key: str = "squared") -> float:
    """The RMSE of an outcome."""
    return sqrt(outcome["scale"] * outcome[key])


@cache
def encoded_case(case: Case) -> Encoded:
    """The workload of a row."""
    if case[0] in get_args(workloads.OneD):
        return workloads.one_d(cast(workloads.OneD, case[0]), int(case[1])).encoded
    return WORKLOADS[case]().encoded


def _scale(encoded: Encoded, norm: Norm) -> float:
    """From a total squared error at unit noise to a mean at the budget."""
    return noise_variance(norm) / encoded.query_count


@cache
def noise_variance(norm: Norm) -> float:
    """The variance of unit noise at ε = 1; for Gaussian noise δ = 1e-6."""
    return 2.0 if norm == 1 else gaussian_sigma(Budget(1, "1e-6")) ** 2
