"""A plan in words: what it measures and the error to expect, per product and in all."""

from __future__ import annotations

from typing import Any

from hdmm.accuracy.predict import rmse
from hdmm.plans.notes import notes
from hdmm.plans.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.text import text_table

_LEGEND = """\
rmse, stderr_max, margin95: of this plan's answers; 95% of them lie within their margin of the truth
identity, plain: the rmse of counting every cell, and of noise on each answer as it is asked
bound: no plan for this product alone can have a lower rmse"""
_MAX_TARGETS = 20
"""The most targets that are listed."""
_MAX_PROVED = 0.02
"""The largest certificate at which a plan counts as proved to be the best."""
_NEAR = 0.05
"""An error that is above its bound by less than this ratio is shown with the difference."""
_LEAST_CERTIFICATE = 1e-4
"""A smaller difference is not claimed: the printed digits do not show it."""


def describe(plan: Plan, budget: Budget) -> str:
    """The predicted error of every product at a budget, beside Identity, the plain mechanism and the bound."""
    errors = plan.errors(budget)
    rows = errors.to_pylist()
    blocks, queries = plan.mechanism.blocks, plan.mechanism.strategy.queries
    lines = [
        f"{plan.noise.capitalize()} noise, {budget}, {plan.unit}",
        f"{plan.operator}: {queries:,} noisy measurements in {len(blocks)} block{'s' if len(blocks) > 1 else ''}",
        *_rounding_lines(plan),
        *_sensitivity_lines(plan),
        *_estimator_lines(plan),
        *_candidate_lines(plan),
        *(f"note: {note}" for note in notes(plan)),
        "",
        text_table(errors.column_names, [list(row.values()) for row in rows]),
        "",
        _LEGEND,
        "",
        *_overall_lines(plan, budget),
        *(_worse_lines(rows) if _totals(plan) else []),
    ]
    return "\n".join(lines)


def _totals(plan: Plan) -> bool:
    """Whether the plan makes the total error small."""
    return plan.goal.aim == "total" and not plan.targets


def _measure(plan: Plan) -> str:
    """What the plan makes small, in words."""
    return "RMSE" if _totals(plan) else "largest error"


def rounding_cost(plan: Plan) -> float:
    """What rounding the strategy's queries to integers added to the RMSE, as a share of it."""
    candidates = [tried for tried in plan.search if tried.operator == plan.operator and tried.error is not None]
    return min(candidates, key=lambda tried: (tried.error, tried.rounding)).rounding if candidates else 0.0


def _rounding_lines(plan: Plan) -> list[str]:
    rounding = rounding_cost(plan)
    if not rounding:
        return []
    return [f"its queries are integers; rounding changed the {_measure(plan)} by {100 * rounding:+.2g}%, counted below"]


def _sensitivity_lines(plan: Plan) -> list[str]:
    if plan.mechanism.change.exact:
        return []
    return ["the sensitivity is an upper bound, not exact; the noise covers it"]


def _estimator_lines(plan: Plan) -> list[str]:
    estimator = plan.mechanism.estimator
    if estimator.totals_bounded:
        return ["answers are least squares over all blocks; their errors are at most those shown, of single blocks"]
    if estimator.bounded:
        return ["answers are least squares over all blocks; the margins of single answers are at most those shown"]
    if estimator.consistent or len(plan.mechanism.blocks) == 1:
        return []
    return ["each table is answered from one block alone; tables from different blocks need not add up to each other"]


def _candidate_lines(plan: Plan) -> list[str]:
    """By how much the chosen operator won."""
    errors: dict[str, float] = {}
    for tried in plan.search:
        if tried.error is not None:
            errors[tried.operator] = min(tried.error, errors.get(tried.operator, tried.error))
    best = errors.pop(plan.operator, None)
    if not errors or not best:
        return []
    others = sorted(errors.items(), key=lambda pair: pair[1])
    ratios = ", ".join(f"{name} {error / best:,.2f}" for name, error in others)
    measure = _measure(plan)
    return [f"the {measure} of the other candidates, as a multiple of its own: {ratios}"]


def _overall_lines(plan: Plan, budget: Budget) -> list[str]:
    if plan.targets:
        return [*_rmse_lines(plan, budget, ""), *target_lines(plan, budget)]
    if plan.goal.aim == "max":
        worst, weighted = plan.worst(budget), "" if _unweighted(plan) else "weighted "
        return [
            *_rmse_lines(plan, budget, ""),
            f"largest {weighted}standard error, which the plan minimises: "
            f"{worst:,.2f}{_bound_text(worst, plan.bound(budget))}",
        ]
    return _rmse_lines(plan, budget, _bound_text(plan.rmse(budget), plan.bound(budget)))


def _unweighted(plan: Plan) -> bool:
    return all(product.weight == 1 for product in plan.workload.products)


def _unweighted_rmse(plan: Plan, budget: Budget) -> float:
    """The predicted root mean squared error of the published answers, without weights."""
    products, noise = plan.workload.encoded.products, plan.mechanism.calibrate(budget)
    return rmse(plan.mechanism.estimator, products, noise, weighted=False)


def _bound_text(error: float, bound: float | None) -> str:
    """How far an error is from its lower bound: if they are close, as the certificate that it is."""
    if not bound:
        return ", no lower bound known"
    above = error / bound - 1
    if above < _NEAR:
        return f", proved to be within {max(above, _LEAST_CERTIFICATE):.2%} of the lower bound {bound:,.2f}"
    return f", {error / bound:.2f} times the lower bound {bound:,.2f}"


def target_lines(plan: Plan, budget: Budget) -> list[str]:
    """The targets, their margins at a budget, and which of them drive it."""
    rows = plan.target_margins(budget).to_pylist()
    shown = sorted(rows, key=lambda row: -row["margin"] / row["wanted"])[:_MAX_TARGETS]
    table = [
        [row["product"], f"{row['wanted']:,.6g}@{100 * row['level']:.6g}%", row["margin"], "*" if row["drives"] else ""]
        for row in shown
    ]
    met = all(row["margin"] <= row["wanted"] for row in rows)
    more = f", and {len(rows) - len(shown)} more that are met with more room" if len(rows) > len(shown) else ""
    proof = "found by a search: another plan might need less"
    if plan.certificate is not None and plan.certificate < _MAX_PROVED:
        proof = f"proved: no plan could bear noise of a {100 * plan.certificate:.2g}% larger variance"
    return [
        "",
        text_table(["product", "target", "margin", "drives"], table) + more,
        f"all targets are {'met' if met else 'NOT met'} at this budget; * drives it ({proof})",
    ]


def _rmse_lines(plan: Plan, budget: Budget, bound_text: str) -> list[str]:
    weighted = plan.rmse(budget)
    most = "at most " if plan.mechanism.estimator.totals_bounded else ""
    total = f"RMSE over all {plan.workload.query_count:,} answers: {most}"
    if _unweighted(plan):
        return [f"{total}{weighted:,.2f}{bound_text}"]
    return [
        f"{total}{_unweighted_rmse(plan, budget):,.2f}",
        f"with weights{', which the plan minimises' if bound_text else ''}: {weighted:,.2f}{bound_text}",
    ]


def _worse_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Which products would do better under a simpler plan: their weights are the way to say that they matter."""
    simpler = [min(row[name] for name in ("identity", "plain") if row[name] is not None) for row in rows]
    names = [row["product"] for row, least in zip(rows, simpler, strict=True) if row["rmse"] > 1.05 * least]
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return [f"worse here than under a simpler plan, for the good of the others: {shown}; a larger weight helps them"]
