"""What a plan does not do, and what to do about it: attributes too large to be optimised, tables too long to list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdmm.matrix import Identity, Spiked, Total, many_cells
from hdmm.plans.footprint import unlisted
from hdmm.schema import Bins, Dates, Domain, Integers, Times
from hdmm.strategy import Strategy
from hdmm.syntax import either
from hdmm.text import count_text
from hdmm.workload import Encoded

if TYPE_CHECKING:
    from hdmm.plans.plan import Plan

_NEAR = 0.05
"""A plan with a lower certificate leaves nothing to be said about larger errors than need be."""


def counted_values(strategy: Strategy, workload: Encoded) -> list[int]:
    """The attributes of many values that are counted value by value, although the questions add values up."""
    asked = {
        axis
        for product in workload.products
        for axis, gram in product.grams.items()
        if many_cells(gram.size) and gram.two_eigenvalues() is None
    }
    for block in strategy.blocks:
        if block.joint:
            asked -= set(block.axes)
        else:
            pairs = zip(block.axes, block.factors, strict=True)
            asked -= {axis for axis, factor in pairs if not isinstance(factor, (Identity, Spiked, Total))}
    return sorted(asked)


def counted_reason(axes: list[int], workload: Encoded) -> str | None:
    """What a candidate is listed with if it counts attributes value by value."""
    if not axes:
        return None
    named = ", ".join(f"{workload.attribute(axis)} ({count_text(workload.sizes[axis])} values)" for axis in axes)
    return f"counted value by value, because no better queries are found for this many: {named}"


def notes(plan: Plan) -> list[str]:
    """One line for each attribute that was too large to be optimised, and for each product without a table."""
    workload, lines = plan.workload.encoded, []
    if plan.certificate is None or plan.certificate > _NEAR:
        for axis in counted_values(plan.mechanism.strategy, workload):
            name = plan.workload.schema.names[axis]
            lines.append(
                f"attribute {name!r} is counted value by value: no better queries were found for its "
                f"{count_text(workload.sizes[axis])} values and these questions; {_remedy(plan.workload.schema[name])}"
            )
    return lines + unlisted_notes(workload)


def unlisted_notes(workload: Encoded) -> list[str]:
    """One line for each product without a table."""
    reasons = ((product.name, unlisted(product)) for product in workload.products)
    return [f"product {name!r} {reason}" for name, reason in reasons if reason is not None]


def _remedy(domain: Domain) -> str:
    """What to declare instead of this many values."""
    if isinstance(domain, (Dates, Times)):
        return f"declare coarser cells ({either(python='by=', command='by:')}), or ask about a level"
    if isinstance(domain, (Integers, Bins)):
        wider = "wider bins" if isinstance(domain, Bins) else "bins"
        return f"declare {wider}, or groups of values as a level and ask about these"
    return "declare groups of values as a level, and ask about these"
