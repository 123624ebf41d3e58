"""New questions after a release: answered from its measurements, with margins, at no further cost in privacy."""

from __future__ import annotations

from hdmm.errors import WorkloadError
from hdmm.plans import Plan
from hdmm.plans.footprint import check_workload
from hdmm.releases.estimates import Estimates, no_block
from hdmm.releases.options import TableOptions
from hdmm.releases.rows import Rows
from hdmm.releases.selection import check_counted
from hdmm.workload import EncodedProduct, Workload
from hdmm.workload.products import named_in


def answered(plan: Plan, estimates: Estimates, workload: Workload, options: TableOptions) -> dict[str, Rows]:
    """The rows of every product of a workload; refused if the measurements do not determine one of them."""
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload={workload!r}: expected a Workload over the schema of the release")
    if workload.schema != plan.workload.schema:
        raise WorkloadError("workload: has another schema than the release; build it with release.plan.workload.schema")
    check_workload(workload.encoded, all_tables=True)
    linear = estimates.estimator(options.estimator).linear
    pairs = list(zip(workload.products, workload.encoded.products, strict=True))
    for product, encoded in pairs:
        if not encoded.empty:  # nobody is counted as 0, whatever was read
            names = {*product.asked, *(named_in(product.where, workload.schema) if product.where is not None else ())}
            check_counted(plan, names, f"product {product.name!r}")
        if linear is not None and not linear.supports(encoded):
            raise WorkloadError(f"product {product.name!r}: {_reason(plan, encoded)}")
    return {product.name: estimates.rows(product, encoded, options) for product, encoded in pairs}


def _reason(plan: Plan, product: EncodedProduct) -> str:
    """Why the measurements do not determine a product."""
    mechanism = plan.mechanism
    if mechanism.estimator.supports(product):
        return no_block()
    names = plan.workload.schema.names
    blocks = mechanism.strategy.blocks
    if not any(set(product.axes) <= set(block.axes) for block in blocks):
        measured = {axis for block in blocks for axis in block.axes}
        unmeasured = [repr(names[axis]) for axis in product.axes if axis not in measured]
        if unmeasured:
            return f"the release measured nothing about {', '.join(unmeasured)}; a new plan must ask for it"
        together = " × ".join(names[axis] for axis in product.axes)
        return f"the release measured no table of {together} together; a new plan must ask for it"
    if mechanism.estimator.bounded:
        return "no single block of the release determines it, and there are too many to combine; plan for it anew"
    return "the release measured these attributes, but not finely enough for this question; a new plan must ask for it"
