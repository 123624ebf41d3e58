"""A plan in words: what it measures and the error to expect, per product and in all."""

from __future__ import annotations

from typing import Any

from hdmm._plan.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.strategy import UnionStrategy
from hdmm.texttable import text_table

_LEGEND = """\
rmse, stderr_max, margin95: of this plan's answers; 95% of them lie within their margin of the truth
identity, plain: the rmse of counting every cell, and of noise on each answer as it is asked
bound: no plan for this product alone can have a lower rmse"""


def describe(plan: Plan, budget: Budget) -> str:
    """The predicted error of every product at a budget, beside Identity, the plain mechanism and the bound."""
    errors = plan.errors(budget)
    rows = errors.to_pylist()
    blocks = plan.strategy.blocks
    queries = sum(block.queries for block in blocks)
    lines = [
        f"{plan.noise.capitalize()} noise, {budget}, {plan.unit}",
        f"{plan.operator}: {queries:,} noisy measurements in {len(blocks)} block{'s' if len(blocks) > 1 else ''}",
        *_local(plan),
        *_others(plan),
        "",
        text_table(errors.column_names, [list(row.values()) for row in rows]),
        "",
        _LEGEND,
        "",
        *_overall(plan, budget),
        *_worse(rows),
    ]
    return "\n".join(lines)


def _local(plan: Plan) -> list[str]:
    if not isinstance(plan.strategy, UnionStrategy):
        return []
    return ["each table is answered from one block alone; tables from different blocks need not add up to each other"]


def _others(plan: Plan) -> list[str]:
    """By how much the chosen operator won."""
    ranked = sorted(plan.tried, key=lambda one: one.rmse)
    behind = [one for one in ranked if one.operator != plan.operator]
    if not behind or not ranked[0].rmse:
        return []
    ratios = ", ".join(f"{one.operator} {one.rmse / ranked[0].rmse:,.2f}" for one in behind)
    return [f"the RMSE of the other candidates, as a multiple of its own: {ratios}"]


def _overall(plan: Plan, budget: Budget) -> list[str]:
    rmse, bound = plan.rmse(budget), plan.bound(budget)
    known = f", {rmse / bound:.2f} times the lower bound {bound:,.2f}" if bound else ", no lower bound known"
    total = f"RMSE over all {plan.workload.query_count:,} answers: "
    if all(product.weight == 1 for product in plan.workload.products):
        return [f"{total}{rmse:,.2f}{known}"]
    return [
        f"{total}{plan.unweighted_rmse(budget):,.2f}",
        f"with weights, which the plan minimises: {rmse:,.2f}{known}",
    ]


def _worse(rows: list[dict[str, Any]]) -> list[str]:
    """Which products would do better under a simpler plan: their weights are the way to say that they matter."""
    names = [row["product"] for row in rows if row["rmse"] > 1.05 * min(row["identity"], row["plain"])]
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return [f"worse here than under a simpler plan, for the good of the others: {shown}; a larger weight helps them"]
