"""Exact counts of records, for several sets of attributes at once: the one entry to every source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdmm.data.source import Advance, CountRequest, Counts, Source
from hdmm.errors import FaultError, HdmmError
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema

CAP = 2**40
"""Where counts stop: public, so that exact arithmetic downstream never depends on the number of records."""


def count(
    source: Source,
    schema: Schema,
    tables: Sequence[tuple[str, ...]],
    *,
    unit: Unit | None = None,
    cap: int = CAP,
    on_progress: Advance | None = None,
) -> Counts:
    """Count the records in every cell of every table; a table is a tuple of attributes.

    The counts of a table are in row-major order of its attributes as given; the empty table has one cell for all
    records. A record with a value outside the domain of any attribute of the schema is counted in no table, so that all
    tables count the same records. Where the unit names the column that tells people apart, each counts with as many
    records as it allows (:mod:`hdmm.data.people`). The source has been checked (:meth:`Source.columns_check`).

    No count exceeds ``cap``. Where records are added or removed, each cell stops there by itself. Where they are
    replaced, that would not do: of two tables one may have stopped and the other not, and a replacement would then look
    like an addition in one of them. So it is the number of records that stops there (docs/privacy.md, step 1).
    """
    request = CountRequest(schema, tables, Unit() if unit is None else unit, on_progress)
    replaced = request.unit.neighbours == "replace-one"
    try:
        counts = source.count(request)
        if replaced and any(int(table.sum()) > cap for table in counts[:1]):  # every table counts all records
            counts = source.count(replace(request, most=cap))
    except HdmmError:
        raise
    except Exception as error:  # its message might tell something about the records: only its kind goes on
        if _interrupted(error):
            raise KeyboardInterrupt from None
        raise FaultError(f"the records could not be counted ({type(error).__name__}); nothing was published") from None
    for table in counts:
        np.minimum(table, cap, out=table)
    return counts


def _interrupted(error: BaseException | None) -> bool:
    """Whether an error is what an engine made of an interrupt."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "InterruptException":
            return True
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # DuckDB's own words
            return True
        error = error.__cause__ or error.__context__
    return False
