"""The table of one product, computed some rows at a time: labels, answer, standard error and interval.

Estimates that are never negative are biased: small counts come out too large on average, and so do sums of many of
them. So their tables have no standard errors and no intervals, and name their estimator in every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from hdmm.accuracy.predict import Accuracy
from hdmm.matrix import Array
from hdmm.schema import Schema
from hdmm.workload import Predicates

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "biased: counts are kept from being negative, so small ones are too large on average; no interval is claimed"
BOUND = "standard errors and intervals are upper bounds: those of answers from one block each, which err no less"
Labels: TypeAlias = Sequence[Mapping[str, "pa.Array"]]
"""For each attribute the columns of labels of its predicates: mostly one, several if it is grouped in several ways."""
ROWS = 1 << 18
"""Rows computed at a time, and rows of a row group in a file: enough to be quick, and about 30 MB."""


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table. Its answers are in memory; all other columns are computed when they are asked for."""

    labels: Labels
    """The labels of every attribute's predicates; rows are row-major over the attributes."""
    answers: Array
    predicted: Accuracy | None
    """None if the answers are biased: then no error is stated."""
    rounding: float
    """Upper bound on the rounding errors of answers that are not whole; it widens their intervals."""
    estimator: str | None = None
    """The estimator that the table names; None for the usual one."""
    estimates: Array | None = None
    """The answers before they were rounded to whole numbers, if they were: intervals are about these."""

    @property
    def rounded(self) -> bool:
        """Whether the answers are whole numbers in place of estimates."""
        return self.estimates is not None

    @cached_property
    def whole(self) -> bool:
        """Whether all estimates are integers: then they are sums of integers, without rounding errors."""
        estimates = self.answers if self.estimates is None else self.estimates
        return all((part == np.rint(part)).all() for part in pieces(estimates))

    def some(self, start: int, stop: int) -> pa.RecordBatch:
        """The rows from ``start`` to before ``stop``."""
        import pyarrow as pa

        columns: dict[str, Any] = label_columns(self.labels, start, stop)
        columns["answer"] = self.answers[start:stop]
        if self.predicted is not None:
            estimate = columns["answer"] if self.estimates is None else self.estimates[start:stop]
            margin = self.predicted.expand(self.predicted.margin, start, stop) + (0.0 if self.whole else self.rounding)
            if self.estimates is None:  # rounding changes the standard error
                columns["stderr"] = self.predicted.expand(self.predicted.stderr, start, stop)
            columns |= {"low": estimate - margin, "high": estimate + margin}
        if self.estimator is not None:
            names = pa.array([self.estimator])
            columns["estimator"] = pa.DictionaryArray.from_arrays(np.zeros(stop - start, np.int8), names)
        return pa.record_batch(columns).replace_schema_metadata(self.metadata)

    @property
    def metadata(self) -> dict[str, str] | None:
        """Notes about the table in its file."""
        notes = {} if self.estimator is None else {"hdmm.estimator": self.estimator}
        if self.predicted is None:
            notes["hdmm.note"] = NOTE
        elif self.predicted.bounded:
            notes["hdmm.note"] = BOUND
        return notes or None

    def table(self) -> pa.Table:
        """All rows."""
        import pyarrow as pa

        return pa.Table.from_batches([self.some(0, len(self.answers))])

    def batches(self, size: int = ROWS) -> Iterator[pa.RecordBatch]:
        """All rows in order, ``size`` at a time."""
        for start in range(0, len(self.answers), size):
            yield self.some(start, min(start + size, len(self.answers)))


def pieces(array: Array) -> Iterator[Array]:
    """An array in pieces of as many elements as rows are computed at a time."""
    return (array[start : start + ROWS] for start in range(0, len(array), ROWS))


def labels(schema: Schema, predicates: Mapping[str, Predicates]) -> Labels:
    """The labels of the predicates on every attribute, in schema order."""
    columns = []
    for name in schema:
        if name in predicates:
            chosen = predicates[name]
            pairs = zip(chosen.titles(name), chosen.columns(name, schema[name]), strict=True)
            columns.append({title: _column(values) for title, values in pairs})
    return columns


def label_columns(labels: Labels, start: int, stop: int) -> dict[str, pa.Array]:
    """The columns of labels of the rows from ``start`` to before ``stop``, row-major over the attributes."""
    import pyarrow as pa

    if not labels:
        return {}
    sizes = [len(next(iter(columns.values()))) for columns in labels]
    places = np.unravel_index(np.arange(start, stop), sizes)
    pairs = zip(labels, places, strict=True)
    return {name: values.take(pa.array(place)) for columns, place in pairs for name, values in columns.items()}


def _column(values: list[Any]) -> pa.Array:
    """Labels as one column: of their type if they have one in common, else text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, None if kinds else pa.string())
