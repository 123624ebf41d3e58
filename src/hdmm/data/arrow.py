"""Arrow tables made safe for an engine: no text, whatever it holds, can stop or change how the others are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hdmm.schema.text import LONGEST_TEXT, NO_VALUE


def readable(table: Any) -> Any:
    """The table with plain columns instead of dictionaries, and without texts that are too long or not UTF-8."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if _is_text(column.type):
            kind = pa.large_string() if pa.types.is_string_view(column.type) else column.type
            column = pa.chunked_array([_text(chunk) for chunk in column.chunks], kind)
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
