"""Exact counts of records, for several sets of attributes at once: the one entry to every source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdmm.data.source import Advance, CountRequest, Counts, Source, unheard
from hdmm.errors import FaultError, HdmmError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

CAP = 2**40
"""No count exceeds this. It is public, so that exact arithmetic never depends on the number of records."""


def count(
    source: Source,
    schema: Schema,
    tables: Sequence[tuple[str, ...]],
    *,
    unit: Unit | None = None,
    cap: int = CAP,
    on_progress: Advance = unheard,
) -> Counts:
    """Count the records in every cell of every table; a table is a tuple of attributes.

    The counts of a table are in row-major order of its attributes as given; the empty table has one cell for all
    records. A record with a value outside the domain of any attribute of the schema is counted in no table, so that all
    tables count the same records; :attr:`Plan.counted` is the schema of those that a plan uses. If the unit names a
    column that identifies people, each person counts with at most as many records as the unit allows
    (:mod:`hdmm.data.people`). Check the source first (:meth:`Source.columns_check`).

    No count exceeds ``cap``. If the unit adds or removes records, each cell is capped by itself. If it replaces them,
    that would not do: with one table at the cap and another below it, a replacement would look like an addition in one
    of them. So the number of records is capped instead (docs/privacy.md, step 1).
    """
    unit = Unit() if unit is None else unit
    most = cap if unit.neighbours == "replace-one" else None
    try:
        counts = source.count(CountRequest(schema, tables, unit, on_progress, most))
    except HdmmError:
        raise
    except Exception as error:  # its message may hold values of records: only its type is reported
        if _interrupted(error):
            raise KeyboardInterrupt from None
        raise FaultError(f"the records could not be counted ({type(error).__name__}); nothing was published") from None
    for table in counts:
        np.minimum(table, cap, out=table)
    return counts


def _interrupted(error: BaseException | None) -> bool:
    """Whether an engine raised an error because it was interrupted."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "InterruptException":
            return True
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # DuckDB's own words
            return True
        error = error.__cause__ or error.__context__
    return False
