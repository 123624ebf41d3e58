"""From a plan and data to a release: check everything, measure once, write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, final

from hdmm._artefact import check_new
from hdmm._plan import Plan
from hdmm._release import Release
from hdmm.data import Source, open_source
from hdmm.errors import InputError, NotSupportedError
from hdmm.measure import check_measurable, measure
from hdmm.memory import check_memory
from hdmm.privacy.budget import Budget


@final
class _Unsaid:
    """Nothing was said about a ledger; going without one must be said."""


_UNSAID = _Unsaid()


def release(
    plan: Plan,
    data: str | Path | Source,
    budget: Budget,
    *,
    ledger: _Unsaid | None = _UNSAID,
    out: str | Path | None = None,
    format: Literal["parquet", "csv"] = "parquet",
    delimiter: str | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Release:
    """Measure the data once, with noise that gives the budget's privacy, and return consistent answers.

    Everything that can be refused is refused before the data is counted. ``ledger=None`` says that nobody keeps
    account of what was spent on these data; with ``out`` the release is also written to a new directory. Fields of a
    file are separated by commas, or by tabs where its name ends in .tsv or .tab, unless ``delimiter`` says otherwise.
    """
    if not isinstance(plan, Plan):
        raise InputError(f"plan: {type(plan).__name__} is not a plan; make one with hdmm.select(workload)")
    if not isinstance(budget, Budget):
        raise InputError(f'budget={budget!r}: expected a Budget, for example hdmm.Budget(epsilon="1")')
    if isinstance(ledger, _Unsaid):
        raise InputError("ledger: say ledger=None to spend without one: this version keeps no account of the budget")
    if ledger is not None:
        raise NotSupportedError(
            "ledger: this version keeps no ledger; pass ledger=None and account for the budget yourself"
        )
    if format not in ("parquet", "csv"):
        raise InputError(f"format={format!r}: expected 'parquet' or 'csv'")
    noise = plan.calibrate(budget)
    check_measurable(plan)
    check_memory(plan.strategy, plan.workload.encoded)
    if out is not None:
        check_new(Path(out))
    for product in plan.workload.products:  # what needs no data comes first: after counting, only writing can fail
        plan.accuracy(product.name, budget)
    source = open_source(data, delimiter)
    source.columns_check(plan.workload.schema, plan.workload.schema.names)
    answers = measure(plan, source, noise, on_progress=on_progress)
    published = Release(plan, budget, tuple(answers))
    if out is not None:
        published.save(out, format=format)
    return published
