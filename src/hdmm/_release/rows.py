"""The table of one product, made some rows at a time: labels, answer, standard error and the ends of the interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.accuracy import Accuracy
from hdmm.matrix import Array
from hdmm.schema import Schema
from hdmm.workload import Predicates

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 18
"""Rows that are made at a time, and that a row group of a file holds: large enough to be quick, and about 30 MB."""


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of a table are made from; the answers are in memory, all other columns are made when asked for."""

    labels: Mapping[str, pa.Array]
    """The labels of every attribute's predicates; rows are row-major over the attributes."""
    answers: Array
    predicted: Accuracy
    rounding: float
    """What floating point may have done to answers that are not whole; it widens their intervals."""

    @cached_property
    def whole(self) -> bool:
        """Whether all answers are integers: then they are sums of integers, to which floating point did nothing."""
        starts = range(0, len(self.answers), ROWS)
        parts = (self.answers[start : start + ROWS] for start in starts)
        return all((part == np.rint(part)).all() for part in parts)

    def some(self, start: int, stop: int) -> pa.RecordBatch:
        """The rows from ``start`` to before ``stop``."""
        import pyarrow as pa

        answer = self.answers[start:stop]
        stderr = self.predicted.spread(self.predicted.stderr, start, stop)
        margin = self.predicted.spread(self.predicted.margin, start, stop) + (0.0 if self.whole else self.rounding)
        columns: dict[str, Any] = {}
        if self.labels:
            shape = [len(values) for values in self.labels.values()]
            places = np.unravel_index(np.arange(start, stop), shape)
            pairs = zip(self.labels.items(), places, strict=True)
            columns = {name: values.take(pa.array(place)) for (name, values), place in pairs}
        columns |= {"answer": answer, "stderr": stderr, "low": answer - margin, "high": answer + margin}
        return pa.record_batch(columns)

    def table(self) -> pa.Table:
        """All rows."""
        import pyarrow as pa

        return pa.Table.from_batches([self.some(0, len(self.answers))])

    def batches(self, size: int = ROWS) -> Iterator[pa.RecordBatch]:
        """All rows in order, so many at a time."""
        for start in range(0, len(self.answers), size):
            yield self.some(start, min(start + size, len(self.answers)))


def labels(schema: Schema, predicates: Mapping[str, Predicates]) -> dict[str, pa.Array]:
    """The labels of the predicates on every attribute, in schema order."""
    return {name: _column(predicates[name].labels(name, schema[name])) for name in schema if name in predicates}


def _column(values: list[Any]) -> pa.Array:
    """Labels as one column: typed where all are values of one type, else text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, None if kinds else pa.string())
