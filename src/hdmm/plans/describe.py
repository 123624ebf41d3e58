"""A plan in words: what it measures and the error to expect, per product and in all."""

from __future__ import annotations

from typing import Any

from hdmm.accuracy.predict import rmse
from hdmm.plans.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.text import text_table

_LEGEND = """\
rmse, stderr_max, margin95: of this plan's answers; 95% of them lie within their margin of the truth
identity, plain: the rmse of counting every cell, and of noise on each answer as it is asked
bound: no plan for this product alone can have a lower rmse"""


_TARGETS = 20
"""The most targets that are listed."""
_PROVED = 0.02


def describe(plan: Plan, budget: Budget) -> str:
    """The predicted error of every product at a budget, beside Identity, the plain mechanism and the bound."""
    errors = plan.errors(budget)
    rows = errors.to_pylist()
    blocks, queries = plan.mechanism.blocks, plan.mechanism.strategy.queries
    lines = [
        f"{plan.noise.capitalize()} noise, {budget}, {plan.unit}",
        f"{plan.operator}: {queries:,} noisy measurements in {len(blocks)} block{'s' if len(blocks) > 1 else ''}",
        *_rounded(plan),
        *_bounded(plan),
        *_local(plan),
        *_others(plan),
        "",
        text_table(errors.column_names, [list(row.values()) for row in rows]),
        "",
        _LEGEND,
        "",
        *_overall(plan, budget),
        *(_worse(rows) if _totals(plan) else []),
    ]
    return "\n".join(lines)


def _totals(plan: Plan) -> bool:
    """Whether the plan makes the total error small."""
    return plan.goal.aim == "total" and not plan.targets


def rounding_cost(plan: Plan) -> float:
    """What rounding the strategy's queries to integers added to the RMSE, as a share of it."""
    candidates = [one for one in plan.search if one.operator == plan.operator and one.error is not None]
    return min(candidates, key=lambda one: (one.error, one.rounding)).rounding if candidates else 0.0


def _rounded(plan: Plan) -> list[str]:
    rounding = rounding_cost(plan)
    if not rounding:
        return []
    return [f"its queries are integers; rounding them changed the RMSE by {100 * rounding:+.2g}%, counted below"]


def _bounded(plan: Plan) -> list[str]:
    if plan.mechanism.change.exact:
        return []
    return ["the sensitivity is an upper bound, not exact; the noise covers it"]


def _local(plan: Plan) -> list[str]:
    estimator = plan.mechanism.estimator
    if estimator.bounded:
        return ["answers are least squares over all blocks; their errors are at most those shown, of single blocks"]
    if estimator.consistent or len(plan.mechanism.blocks) == 1:
        return []
    return ["each table is answered from one block alone; tables from different blocks need not add up to each other"]


def _others(plan: Plan) -> list[str]:
    """By how much the chosen operator won."""
    errors: dict[str, float] = {}
    for one in plan.search:
        if one.error is not None:
            errors[one.operator] = min(one.error, errors.get(one.operator, one.error))
    own = errors.pop(plan.operator, None)
    if not errors or not own:
        return []
    ratios = ", ".join(f"{name} {error / own:,.2f}" for name, error in sorted(errors.items(), key=lambda pair: pair[1]))
    what = "RMSE" if _totals(plan) else "largest error"
    return [f"the {what} of the other candidates, as a multiple of its own: {ratios}"]


def _overall(plan: Plan, budget: Budget) -> list[str]:
    if plan.targets:
        return [*_rmse(plan, budget, ""), *target_lines(plan, budget)]
    if plan.goal.aim == "max":
        worst, bound = plan.worst(budget), plan.bound(budget)
        weighted = "" if all(product.weight == 1 for product in plan.workload.products) else "weighted "
        return [
            *_rmse(plan, budget, ""),
            f"largest {weighted}standard error, which the plan minimises: {worst:,.2f}{_known(worst, bound)}",
        ]
    rmse, bound = plan.rmse(budget), plan.bound(budget)
    return _rmse(plan, budget, _known(rmse, bound))


def _unweighted_rmse(plan: Plan, budget: Budget) -> float:
    """The predicted root mean squared error of the published answers, without weights."""
    products, noise = plan.workload.encoded.products, plan.mechanism.calibrate(budget)
    return rmse(plan.mechanism.estimator, products, noise, weighted=False)


def _known(found: float, bound: float | None) -> str:
    return f", {found / bound:.2f} times the lower bound {bound:,.2f}" if bound else ", no lower bound known"


def target_lines(plan: Plan, budget: Budget) -> list[str]:
    """The targets, what the margins are at a budget, and which of them drive it."""
    rows = plan.target_margins(budget).to_pylist()
    shown = sorted(rows, key=lambda row: -row["margin"] / row["wanted"])[:_TARGETS]
    table = [
        [row["product"], f"{row['wanted']:,.6g}@{100 * row['level']:.6g}%", row["margin"], "*" if row["drives"] else ""]
        for row in shown
    ]
    met = all(row["margin"] <= row["wanted"] for row in rows)
    more = f", and {len(rows) - len(shown)} more that are met with more room" if len(rows) > len(shown) else ""
    proof = "found by a search: another plan might need less"
    if plan.certificate is not None and plan.certificate < _PROVED:
        proof = f"proved: no plan could bear noise of a {100 * plan.certificate:.2g}% larger variance"
    return [
        "",
        text_table(["product", "target", "margin", "drives"], table) + more,
        f"all targets are {'met' if met else 'NOT met'} at this budget; * drives it ({proof})",
    ]


def _rmse(plan: Plan, budget: Budget, known: str) -> list[str]:
    rmse = plan.rmse(budget)
    most = "at most " if plan.mechanism.estimator.bounded else ""
    total = f"RMSE over all {plan.workload.query_count:,} answers: {most}"
    if all(product.weight == 1 for product in plan.workload.products):
        return [f"{total}{rmse:,.2f}{known}"]
    return [
        f"{total}{_unweighted_rmse(plan, budget):,.2f}",
        f"with weights{', which the plan minimises' if known else ''}: {rmse:,.2f}{known}",
    ]


def _worse(rows: list[dict[str, Any]]) -> list[str]:
    """Which products would do better under a simpler plan: their weights are the way to say that they matter."""
    simpler = [min(row[name] for name in ("identity", "plain") if row[name] is not None) for row in rows]
    names = [row["product"] for row, least in zip(rows, simpler, strict=True) if row["rmse"] > 1.05 * least]
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return [f"worse here than under a simpler plan, for the good of the others: {shown}; a larger weight helps them"]
