"""New questions after a release: answered from its measurements, with margins, at no further cost of privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdmm._release.rows import Rows
from hdmm.accuracy import accuracy
from hdmm.errors import WorkloadError
from hdmm.workload import EncodedProduct, Workload

if TYPE_CHECKING:
    from hdmm._plan import Plan
    from hdmm._release.release import Release


def answered(release: Release, workload: Workload, level: float) -> dict[str, Rows]:
    """The rows of every product of a workload; refused where the measurements do not tell one of them."""
    plan = release.plan
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload over the schema of the release")
    if workload.schema != plan.workload.schema:
        raise WorkloadError("workload: has another schema than the release; build it with release.plan.workload.schema")
    noise = plan.calibrate(release.budget)
    encoded = workload.encoded.products
    for product, asked in zip(workload.products, encoded, strict=True):
        if not plan.strategy.supports(asked):
            raise WorkloadError(f"product {product.name!r}: {_why(plan, asked)}")
    return {
        product.name: release.rows_of(product, asked, accuracy(plan.strategy, asked, noise, level))
        for product, asked in zip(workload.products, encoded, strict=True)
    }


def _why(plan: Plan, asked: EncodedProduct) -> str:
    """Why the measurements do not tell a product."""
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
    return "the release measured these attributes, but not finely enough for this question; a new plan must ask for it"
