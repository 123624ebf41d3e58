"""The table of one product, made some rows at a time: labels, answer, standard error and the ends of the interval.

Estimates that keep counts from being negative are biased: small counts come out too large on average, and with them
sums of many. So their tables have no standard errors and no intervals, and name their estimator in every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hdmm.accuracy.predict import Accuracy
from hdmm.matrix import Array
from hdmm.schema import Schema
from hdmm.workload import Predicates

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "biased: counts are kept from being negative, so small ones are too large on average; no interval is claimed"
BOUND = "standard errors and intervals are upper bounds: those of answers from one block each, which err no less"
ROWS = 1 << 18
"""Rows that are made at a time, and that a row group of a file holds: large enough to be quick, and about 30 MB."""


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of a table are made from; the answers are in memory, all other columns are made when asked for."""

    labels: Mapping[str, pa.Array]
    """The labels of every attribute's predicates; rows are row-major over the attributes."""
    answers: Array
    predicted: Accuracy | None
    """None where the answers are biased: then no error is told."""
    rounding: float
    """What floating point may have done to answers that are not whole; it widens their intervals."""
    estimator: str | None = None
    """What the table says of where its answers are from; None for the usual ones."""
    estimates: Array | None = None
    """Where answers were rounded to whole numbers, what they were before: intervals are about these."""

    @property
    def rounded(self) -> bool:
        """Whether the answers are whole numbers in place of estimates."""
        return self.estimates is not None

    @cached_property
    def whole(self) -> bool:
        """Whether all answers are integers: then they are sums of integers, to which floating point did nothing."""
        found = self.answers if self.estimates is None else self.estimates
        parts = (found[start : start + ROWS] for start in range(0, len(found), ROWS))
        return all((part == np.rint(part)).all() for part in parts)

    def some(self, start: int, stop: int) -> pa.RecordBatch:
        """The rows from ``start`` to before ``stop``."""
        import pyarrow as pa

        columns: dict[str, Any] = label_columns(self.labels, start, stop)
        columns["answer"] = self.answers[start:stop]
        if self.predicted is not None:
            estimate = columns["answer"] if self.estimates is None else self.estimates[start:stop]
            margin = self.predicted.expand(self.predicted.margin, start, stop) + (0.0 if self.whole else self.rounding)
            if self.estimates is None:  # the error of a rounded answer is another one
                columns["stderr"] = self.predicted.expand(self.predicted.stderr, start, stop)
            columns |= {"low": estimate - margin, "high": estimate + margin}
        if self.estimator is not None:
            named = pa.array([self.estimator])
            columns["estimator"] = pa.DictionaryArray.from_arrays(np.zeros(stop - start, np.int8), named)
        return pa.record_batch(columns).replace_schema_metadata(self.metadata)

    @property
    def metadata(self) -> dict[str, str] | None:
        """What a file says about its table, beside its columns."""
        said = {} if self.estimator is None else {"hdmm.estimator": self.estimator}
        if self.predicted is None:
            said["hdmm.note"] = NOTE
        elif self.predicted.bounded:
            said["hdmm.note"] = BOUND
        return said or None

    def table(self) -> pa.Table:
        """All rows."""
        import pyarrow as pa

        return pa.Table.from_batches([self.some(0, len(self.answers))])

    def batches(self, size: int = ROWS) -> Iterator[pa.RecordBatch]:
        """All rows in order, ``size`` at a time."""
        for start in range(0, len(self.answers), size):
            yield self.some(start, min(start + size, len(self.answers)))


def labels(schema: Schema, predicates: Mapping[str, Predicates]) -> dict[str, pa.Array]:
    """The labels of the predicates on every attribute, in schema order."""
    return {name: _column(predicates[name].labels(name, schema[name])) for name in schema if name in predicates}


def label_columns(labels: Mapping[str, pa.Array], start: int, stop: int) -> dict[str, pa.Array]:
    """The columns of labels of the rows from ``start`` to before ``stop``, row-major over the attributes."""
    import pyarrow as pa

    if not labels:
        return {}
    places = np.unravel_index(np.arange(start, stop), [len(values) for values in labels.values()])
    pairs = zip(labels.items(), places, strict=True)
    return {name: values.take(pa.array(place)) for (name, values), place in pairs}


def _column(values: list[Any]) -> pa.Array:
    """Labels as one column: typed where all are values of one type, else text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, None if kinds else pa.string())
