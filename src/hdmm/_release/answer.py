"""New questions after a release: answered from its measurements, with margins, at no further cost of privacy."""

from __future__ import annotations

from hdmm._plan import Plan
from hdmm._release.estimates import Estimates
from hdmm._release.how import How
from hdmm._release.rows import Rows
from hdmm.errors import WorkloadError
from hdmm.memory import check_workload
from hdmm.workload import EncodedProduct, Workload


def answered(plan: Plan, estimates: Estimates, workload: Workload, how: How) -> dict[str, Rows]:
    """The rows of every product of a workload; refused where the measurements do not tell one of them."""
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload over the schema of the release")
    if workload.schema != plan.workload.schema:
        raise WorkloadError("workload: has another schema than the release; build it with release.plan.workload.schema")
    check_workload(workload.encoded)
    supports = (plan.strategy if how.estimator == "local" else plan.estimator).supports
    pairs = list(zip(workload.products, workload.encoded.products, strict=True))
    for product, asked in pairs:
        if not how.biased and not supports(asked):
            raise WorkloadError(f"product {product.name!r}: {_why(plan, asked, how)}")
    return {product.name: estimates.rows(product, asked, how) for product, asked in pairs}


def _why(plan: Plan, asked: EncodedProduct, how: How) -> str:
    """Why the measurements do not tell a product."""
    if how.estimator == "local" and plan.estimator.supports(asked):
        return 'no block of the release tells it by itself; take estimator="global", which asks all of them together'
    names = plan.workload.schema.names
    axes = set(asked.axes)
    blocks = plan.strategy.blocks
    if not any(axes <= set(block.axes) for block in blocks):
        measured = {names[axis] for block in blocks for axis in block.axes}
        never = [names[axis] for axis in asked.axes if names[axis] not in measured]
        if never:
            return f"the release measured nothing about {', '.join(map(repr, never))}; a new plan must ask for it"
        together = " × ".join(names[axis] for axis in asked.axes)
        return f"the release measured no table of {together} together; a new plan must ask for it"
    if plan.estimator.bounded:
        return "no block of the release tells it by itself, and there are too many to try all together; ask a new plan"
    return "the release measured these attributes, but not finely enough for this question; a new plan must ask for it"
