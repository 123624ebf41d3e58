"""The predicted error of every product of a plan, beside simple mechanisms and the bound."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from hdmm import baselines
from hdmm.accuracy.predict import rmse
from hdmm.errors import BudgetError
from hdmm.estimators.estimator import LinearEstimator
from hdmm.operators.lower_bound import ProductBounds
from hdmm.plans.footprint import unlisted
from hdmm.plans.mechanism import Mechanism
from hdmm.plans.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import Calibration, unit_variance

if TYPE_CHECKING:
    import pyarrow as pa

_BASELINES: dict[str, baselines.Identity | baselines.Plain] = {
    "identity": baselines.Identity(),
    "plain": baselines.Plain(),
}
"""What a plan is listed beside."""


def error_table(plan: Plan, budget: Budget) -> pa.Table:
    """One row per product; see :meth:`Plan.errors`."""
    import pyarrow as pa

    encoded, noise = plan.workload.encoded, plan.mechanism.calibrate(budget)
    others = {name: _simple(plan, operator, budget) for name, operator in _BASELINES.items()}
    unit = unit_variance(plan.noise, budget, plan.unit.rows)
    bounds = ProductBounds(encoded.sizes)
    rows = []
    for product, code in zip(plan.workload.products, encoded.products, strict=True):
        predicted = plan.accuracy(product.name, budget) if unlisted(code) is None else None
        bound = bounds.of(code)
        rows.append(
            {
                "product": product.name,
                "queries": code.queries,
                "rmse": rmse(plan.mechanism.estimator, [code], noise, weighted=False),
                "stderr_max": None if predicted is None else float(predicted.stderr.max()),
                "margin95": None if predicted is None else float(predicted.margin.max()),
                **{name: other and rmse(other[0], [code], other[1], weighted=False) for name, other in others.items()},
                "bound": None if bound is None else sqrt(unit * bound / code.queries),
            }
        )
    return pa.Table.from_pylist(rows)


def _simple(
    plan: Plan, operator: baselines.Identity | baselines.Plain, budget: Budget
) -> tuple[LinearEstimator[Any], Calibration] | None:
    """A simple mechanism for the same workload, noise and unit; None if it cannot be calibrated."""
    strategy = operator.propose(plan.workload.encoded, plan.mechanism.norm).strategy
    mechanism = Mechanism(strategy, plan.noise, plan.unit)
    try:
        return mechanism.local, mechanism.calibrate(budget)
    except BudgetError:  # weights that are too far apart
        return None
