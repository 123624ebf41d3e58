"""From what a user gives as data to the source it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

from hdmm.data.csv import CsvFile, CsvFiles
from hdmm.data.source import Source, check_file
from hdmm.data.table import database_kind, is_server, starts_with, table_names
from hdmm.errors import DataError
from hdmm.syntax import either, given

_PARQUET = (".parquet", ".pq")
_FORMS = (
    "give the path of CSV or Parquet files, a list or a pattern of paths, a DataFrame of pandas, polars or Spark, a "
    "LazyFrame, a pyarrow.Table, a stream or dataset of Arrow, a relation of DuckDB, an ibis table, or "
    "hdmm.DatabaseTable(database, name)"
)


def open_source(data: Any, delimiter: str | None = None, encoding: str | None = None) -> Source:
    """The source that a user's data stands for; delimiter and encoding are those of text files."""
    if isinstance(data, (str, Path)):
        return _files(_paths(data), delimiter, encoding)
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, Path)) for path in data):
        return _files([path for pattern in data for path in _paths(pattern)], delimiter, encoding)
    if delimiter is not None:
        stated = given("delimiter", repr(delimiter))
        raise DataError(f"{stated}: goes with the path of a text file; this source has its own")
    if encoding is not None:
        stated = given("encoding", repr(encoding))
        raise DataError(f"{stated}: goes with the path of a text file; this source has its own")
    if isinstance(data, Source):
        return data
    kind = type(data)
    library = kind.__module__.split(".")[0]
    if (library, kind.__name__) in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        from hdmm.data.frame import Frame

        return Frame(data)
    if (library, kind.__name__) == ("polars", "LazyFrame"):
        from hdmm.data.frame import LazyFrame

        return LazyFrame(data)
    if library == "ibis" and kind.__name__ in ("Table", "CachedTable"):
        from hdmm.data.ibis_tables import Expression

        return Expression(data)
    if library == "pyspark" and kind.__name__ == "DataFrame":
        from hdmm.data.ibis_tables import SparkFrame

        return SparkFrame(data)
    if library in ("duckdb", "_duckdb") and kind.__name__ == "DuckDBPyRelation":
        from hdmm.data.streams import relation

        return relation(data)
    if library == "pyarrow" and kind.__module__ == "pyarrow._dataset" and hasattr(data, "scanner"):
        from hdmm.data.streams import dataset

        return dataset(data)
    if not isinstance(data, type) and hasattr(kind, "__arrow_c_stream__"):
        from hdmm.data.streams import stream

        return stream(data)
    raise DataError(f"data: {kind.__name__} is not supported; {_FORMS}")


def _paths(pattern: str | Path) -> list[Path]:
    """The files of a path or of a pattern, in the order of their names."""
    text = str(pattern)
    scheme, address, _ = text.partition("://")
    if address and is_server(text):
        raise DataError(f"{scheme}://…: is a database; name its table{table_remedy('address')}")
    if address:
        other = either(python="or give an ibis table of them", command="and give their path")
        raise DataError(f"{scheme}://…: files elsewhere are not read; copy them here, {other}")
    path = Path(pattern)
    if any(mark in text for mark in "*?[") and not _exists(path):
        names = sorted(glob(text, recursive=True))
        if not names:
            raise DataError(f"{text}: no file matches this pattern; check it, and the directory that you are in")
        return [Path(name) for name in names]
    return [path]


def table_remedy(database: str) -> str:
    """How to name a table of a database."""
    return either(python=f": hdmm.DatabaseTable({database}, name)", command=", for example --table people")


def check_parquet(path: Path) -> None:
    """Refuse a file that is called a Parquet file and is none."""
    if not starts_with(path, b"PAR1") and not starts_with(path, b"PARE"):  # the latter is encrypted
        raise DataError(
            f"{path}: is not a Parquet file, whatever its name says; if it is text, give it a name that ends in .csv"
        )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a file, but perhaps not for a pattern
        return False


def _files(paths: Sequence[Path], delimiter: str | None, encoding: str | None) -> Source:
    seen: set[tuple[int, int]] = set()
    for path in paths:
        check_file(path)
        status = path.stat()
        if (status.st_dev, status.st_ino) in seen:  # its people would count twice, with half of the protection
            raise DataError(f"{path}: is given twice; give each file once")
        seen.add((status.st_dev, status.st_ino))
    columnar = [path.suffix.lower() in _PARQUET for path in paths]
    if any(columnar) and not all(columnar):
        raise DataError(f"{paths[columnar.index(False)]}: is no Parquet file, others are; give files of one kind")
    if not any(columnar):
        for path in paths:
            if database_kind(path) is not None:
                names = ", ".join(map(repr, table_names(path)[:12]))
                raise DataError(
                    f"{path}: is a database; name its table{table_remedy('path')}"
                    + (f"; its tables are {names}" if names else "")
                )
        files = tuple(CsvFile(path, delimiter, encoding) for path in paths)
        return files[0] if len(files) == 1 else CsvFiles(files)
    if delimiter is not None:
        raise DataError(
            f"{given('delimiter', repr(delimiter))}: goes with the path of a text file, not of Parquet files"
        )
    if encoding is not None:
        raise DataError(f"{given('encoding', repr(encoding))}: goes with the path of a text file, not of Parquet files")
    for path in paths:
        check_parquet(path)
    from hdmm.data.parquet import Parquet

    return Parquet(tuple(paths))
