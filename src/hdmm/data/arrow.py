"""Arrow tables made safe for an engine: no value, whatever it is, can stop or change how the others are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any

from hdmm.schema.text import LONGEST_TEXT, NO_VALUE


def readable(table: Any) -> Any:
    """The table with plain columns instead of dictionaries, and without values that an engine fails on.

    These are texts that are too long or not UTF-8, and dates beyond the years 1 to 9999.
    """
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if _is_text(column.type):
            kind = pa.large_string() if pa.types.is_string_view(column.type) else column.type
            column = pa.chunked_array([_text(chunk) for chunk in column.chunks], kind)
        elif pa.types.is_temporal(column.type):
            column = _moments(column)
        columns.append(column)
    return pa.table(columns, table.column_names)


def readable_batches(batches: Iterator[Any], schema: Any) -> Any:
    """The same for batches, one after the other."""
    import pyarrow as pa

    def read() -> Iterator[Any]:
        for batch in batches:
            yield from readable(pa.Table.from_batches([batch])).to_batches()

    return pa.RecordBatchReader.from_batches(readable(schema.empty_table()).schema, read())


def _is_text(type: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _moments(column: Any) -> Any:
    """Dates and times in units that DuckDB reads; what does not fit becomes a date after all others."""
    import pyarrow as pa

    type = column.type
    if pa.types.is_timestamp(type) and type.unit in ("s", "ms"):
        factor = {"s": 1_000_000, "ms": 1_000}[type.unit]
        limits = tuple(day * 86_400 * 1_000_000 // factor for day in _DAYS)
        return _numbers(column, lambda n: _scaled(n, limits, factor), pa.int64(), pa.timestamp("us", type.tz))
    if pa.types.is_date64(type):
        return _numbers(column, _whole_days, pa.int32(), pa.date32())
    if pa.types.is_time64(type) and type.unit == "ns":
        return _numbers(column, lambda n: n // 1_000, pa.int64(), pa.time64("us"))
    return column


_DAYS = (date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal() + 1 - date(1970, 1, 1).toordinal())
"""The first day that a schema may hold, and the one after the last, counted from 1970-01-01."""


def _numbers(column: Any, change: Callable[[Any], Any], storage: Any, type: Any) -> Any:
    """A column whose numbers are changed by a function of numpy."""
    import numpy as np
    import pyarrow as pa

    chunks = []
    for chunk in column.chunks:
        blank = chunk.is_null().to_numpy(zero_copy_only=False)
        numbers = chunk.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        changed = change(numbers).astype(np.dtype(storage.to_pandas_dtype()))
        chunks.append(pa.array(changed, storage, mask=blank).view(type))
    return pa.chunked_array(chunks, type)


def _scaled(numbers: Any, limits: Sequence[int], factor: int) -> Any:
    import numpy as np

    low, high = limits
    return np.where((numbers >= low) & (numbers < high), numbers, high) * factor


def _whole_days(milliseconds: Any) -> Any:
    import numpy as np

    days = milliseconds // (86_400 * 1_000)
    return np.where((days >= _DAYS[0]) & (days < _DAYS[1]), days, _DAYS[1])


def _text(chunk: Any) -> Any:
    """Replace texts that are too long or not UTF-8 by one that no domain holds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(chunk.type):  # few of Arrow's functions take views
        chunk = chunk.cast(pa.large_string())
    sizes = pc.binary_length(chunk)
    if (pc.max(sizes).as_py() or 0) > LONGEST_TEXT:
        chunk = pc.if_else(pc.greater(sizes, LONGEST_TEXT), pa.scalar(NO_VALUE, chunk.type), chunk)
    try:
        chunk.validate(full=True)
    except pa.ArrowInvalid:
        chunk = pa.array([_valid(value) for value in chunk], chunk.type)
    return chunk


def _valid(value: Any) -> str | None:
    """The text of a value, read from its bytes."""
    try:
        return str(value.as_buffer().to_pybytes().decode()) if value.is_valid else None
    except UnicodeDecodeError:
        return NO_VALUE
