"""The predicted error of every product of a plan, beside simple mechanisms and the bound."""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING, Any, final

from hdmm import baselines
from hdmm.accuracy.predict import rmse
from hdmm.bounds import svd_bound
from hdmm.errors import BudgetError
from hdmm.estimators.estimator import LinearEstimator
from hdmm.matrix import AxisGram, Gram
from hdmm.operators.symmetric_search import dual_bound
from hdmm.plans.mechanism import Mechanism
from hdmm.plans.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import Calibration, unit_variance
from hdmm.workload import EncodedProduct

if TYPE_CHECKING:
    import pyarrow as pa

_BASELINES: dict[str, baselines.Identity | baselines.Plain] = {
    "identity": baselines.Identity(),
    "plain": baselines.Plain(),
}
"""What a plan is listed beside."""
_MAX_DUAL_CELLS = 256
"""The most cells of an attribute whose dual is solved: it is at once."""


def error_table(plan: Plan, budget: Budget) -> pa.Table:
    """One row per product; see :meth:`Plan.errors`."""
    import pyarrow as pa

    encoded, noise = plan.workload.encoded, plan.mechanism.calibrate(budget)
    others = {name: _simple(plan, operator, budget) for name, operator in _BASELINES.items()}
    unit = unit_variance(plan.noise, budget, plan.unit.rows)
    bounds = _ProductBounds(encoded.sizes)
    rows = []
    for product, code in zip(plan.workload.products, encoded.products, strict=True):
        predicted = plan.accuracy(product.name, budget)
        bound = bounds.of(code)
        rows.append(
            {
                "product": product.name,
                "queries": code.queries,
                "rmse": rmse(plan.mechanism.estimator, [code], noise, weighted=False),
                "stderr_max": float(predicted.stderr.max()),
                "margin95": float(predicted.margin.max()),
                **{name: other and rmse(other[0], [code], other[1], weighted=False) for name, other in others.items()},
                "bound": None if bound is None else sqrt(unit * bound / code.queries),
            }
        )
    return pa.Table.from_pylist(rows)


@final
class _ProductBounds:
    """Lower bounds on the loss of every strategy for single products; Grams that products share are looked at once."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._duals: dict[int, float | None] = {}

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
        if id(factor) not in self._duals:
            gram = Gram.of(factor)
            small = factor.size <= _MAX_DUAL_CELLS and factor.two_eigenvalues() is None
            self._duals[id(factor)] = dual_bound(gram) if small else svd_bound(gram)
        return self._duals[id(factor)]


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
