"""A plan in words: what it measures and the error to expect, per product and in all."""

from __future__ import annotations

from hdmm._plan.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.texttable import text_table


def describe(plan: Plan, budget: Budget) -> str:
    """The predicted error of every product at a budget, beside Identity, the plain mechanism and the bound."""
    errors = plan.errors(budget)
    blocks = plan.strategy.blocks
    queries = sum(block.queries for block in blocks)
    rmse, bound = plan.rmse(budget), plan.bound(budget)
    lines = [
        f"{plan.noise.capitalize()} noise, {budget}, {plan.unit}",
        f"{plan.operator}: {queries:,} noisy measurements in {len(blocks)} block{'s' if len(blocks) > 1 else ''}",
        "",
        text_table(errors.column_names, [list(row.values()) for row in errors.to_pylist()]),
        "",
        f"RMSE over all {plan.workload.query_count:,} queries: {rmse:,.2f}"
        + (f", {rmse / bound:.2f} times the lower bound {bound:,.2f}" if bound else ", no lower bound known"),
    ]
    return "\n".join(lines)
