"""Tables as Parquet or CSV files, written some rows at a time.

In Parquet, dictionaries make repeated values almost free: labels, a standard error that all rows of a table share,
answers that are integers. Other answers hardly compress. They are stored plainly, because some readers, Spark's among
them, lack the encodings that would save a few percent.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from hdmm.errors import InputError
from hdmm.files.artefact import write
from hdmm.files.atomic import check_new
from hdmm.releases.present import Digits, present, total_labels
from hdmm.releases.rows import ROWS, Rows
from hdmm.syntax import given

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["parquet", "csv"]


def check_format(format: Format) -> None:
    """Refuse any other format."""
    if format not in get_args(Format):
        raise InputError(f"{given('format', repr(format))}: expected 'parquet' or 'csv'")


def write_table(
    file: io.BufferedIOBase,
    rows: Rows,
    format: Format,
    on_rows: Callable[[int], None],
    *,
    digits: Digits = "meaningful",
    size: int = ROWS,
) -> None:
    """Write a table, ``size`` rows at a time; ``on_rows`` is called with the number of rows just written.

    CSV is for people to read, with these digits and with labels for totals. Parquet has all digits.
    """
    schema = rows.some(0, 0).schema
    batches = rows.batches(size)
    writer: Any
    if format == "csv":
        from pyarrow import csv

        labels = {title: values for columns in rows.labels for title, values in columns.items()}
        shown = partial(present, totals=total_labels(labels), digits=digits)
        writer = csv.CSVWriter(file, shown(rows.some(0, 0)).schema)
        batches = map(shown, batches)
    else:
        from pyarrow import parquet

        varied = () if rows.whole else ("low", "high") if rows.rounded else ("answer", "low", "high")
        repeated = [name for name in schema.names if name not in varied]
        writer = parquet.ParquetWriter(
            file, schema, use_dictionary=repeated, compression="zstd", compression_level=1, store_schema=False
        )
        if schema.metadata:
            writer.add_key_value_metadata(schema.metadata)
    with writer:
        for batch in batches:
            writer.write_batch(batch)
            on_rows(batch.num_rows)


def check_table_path(path: Path) -> None:
    """Refuse a path that no table can be written to."""
    check_new(path)
    if path.suffix not in (".csv", ".parquet"):
        remedy = " (a spreadsheet opens .csv files)" if path.suffix in (".xlsx", ".xls", ".ods") else ""
        raise InputError(f"{path}: expected a name that ends in .csv or .parquet{remedy}")


def save_table(table: pa.Table, path: Path) -> None:
    """Write one table to a new file, whole or not at all; the ending of its name determines the format."""
    check_table_path(path)
    file = io.BytesIO()
    if path.suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(table, file)
    else:
        from pyarrow import parquet

        parquet.write_table(table, file)
    write(path, file.getvalue())
