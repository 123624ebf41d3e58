"""Hostile names of files, folders, tables and columns: the records that are meant must count, and no others.

Beside every file there are others, which a name that is taken for a pattern or an address would mean too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from hdmm.data import DatabaseTable
from tests.attack.oracle import Record
from tests.attack.records import base, ordinary
from tests.attack.replay import UNITS, Case
from tests.attack.sources import (
    Place,
    Source,
    arrow_table,
    quoted,
    write_csv,
    write_duckdb,
    write_sqlite,
)

FILES = (
    *(
        "d[1]",
        "d[!x]",
        "d*",
        "d?",
        "**",
        "it's",
        'say "hi"',
        "a b",
        " a",
        "a#b",
        "%41",
        "a%20b",
        "back\\slash",
        "{a,b}",
    ),
    *("line\nfeed", "a;b", "~", "-o", "é", "e\u0301", "$HOME", "a?mode=memory", "md:x", ":memory:", "file:x", "s3:x"),
)
FOLDERS = ("sex=F", "who=7", "age=3", "other=1", "x[1]", "x*")
DECOYS = ("d1", "dx", "a", "b", "A", "aAb", "x", "a b c", "d[1]x")
TABLES = (
    *("people.csv", "d1.parquet", "a.b", "main.people", 'x"y', "it's", "records", "batch", "batches", "given", "hdmm"),
    *(
        "select",
        "order",
        "table",
        "PEOPLE",
        "a b",
        "a;b",
        "%",
        "?",
        "é",
        "read_csv",
        "sqlite_people",
        "pg_class x",
        "$1",
    ),
)
COLUMNS = (
    *("filename", "file_row_number", "file_index", "rowid", "_rowid_", "oid", "ctid", "xmin", "tableoid", "_metadata"),
    *("a.b", "a`b", "a'b", "a b", "é", "%", "?", ":x", "{x}", "$1", "%s", "\\", "#", "--", "/*", "a;b", "0", "True"),
    *("select", "order", "from", "group", "user", "index", "columns", "count", "schema", "dtypes", "__index_level_0__"),
    *("r0", "c0", "c1", "d0", "m0", "k0", "w0", "person", "key", "copy", "mark", "many", "place", "times", "records"),
)
DECOY = [{**ordinary(3), "who": "decoy"}] * 10
"""Records that nobody means."""
_UNITS = ("1 row", "2 rows per id")

Write = Callable[[Sequence[Record], Path], object]


def name_cases(source: Source, every: int = 1) -> Iterator[tuple[Case, object]]:
    """The neighbours of every hostile name, or of one in so many."""
    held = [*_files(source), *_folders(source), *_links(source), *_tables(source)]
    for at, (item, hold, refused) in enumerate(held):
        if at % every == 0:
            yield _case(source, _UNITS[at % 2], item, hold, {}, refused), None
    for at, name in enumerate(COLUMNS):
        if at % every == 0:
            yield _column(source, name, COLUMNS[at - 7])
    if not source.name.startswith(("csv", "spark")):
        for column in ("rowid", "ctid", "oid", "filename", "file_row_number"):
            hold = partial(_plain, source, {})
            yield _case(source, "1 row", f"no column {column}", hold, {"sex": column}, True), None


def _case(source: Source, unit: str, item: str, hold: Any, names: dict[str, str], refused: bool = False) -> Case:
    person = UNITS[unit].id is not None
    after = [ordinary(at) for at in range(4 if person else 1)]
    return Case(source.name, unit, item, hold, base(), [], after, names=names, refused=refused)


def _plain(source: Source, names: dict[str, str], records: Sequence[Record], folder: Path) -> Any:
    return source.hold(records, {}, Place(folder, names=names))


def _column(source: Source, name: str, other: str) -> tuple[Case, object]:
    """One name for an attribute and another for the column of identifiers."""
    names = {"sex": name, "who": other}
    return _case(source, "2 rows per id", f"columns {name!r}, {other!r}", partial(_plain, source, names), names), None


def _write(source: Source) -> tuple[Write, str] | None:
    """How a file of a source is written, and how its name ends."""
    writes: dict[str, tuple[Write, str]] = {
        "csv": (write_csv, ".csv"),
        "parquet": (
            lambda records, path: pq.write_table(arrow_table(records, {}, Place(path.parent)), path),
            ".parquet",
        ),
        "duckdb": (lambda records, path: write_duckdb(records, {}, Place(path.parent), path, "people"), ".db"),
        "sqlite": (lambda records, path: write_sqlite(records, {}, Place(path.parent), path, "people"), ".db"),
    }
    return writes.get(source.name.removesuffix(" files"))


def _given(source: Source, path: str | list[str]) -> Any:
    if source.name in ("duckdb", "sqlite"):
        return DatabaseTable(path if isinstance(path, str) else path[0], "people")
    return path


Held = tuple[str, Any, bool]


def _files(source: Source) -> Iterator[Held]:
    made = _write(source)
    if made is None:
        return
    write, ending = made
    several = source.name.endswith(" files")

    def hold(name: str, records: Sequence[Record], folder: Path) -> Any:
        for decoy in DECOYS:
            write(DECOY, folder / f"{decoy}{ending}")
        half = len(records) // 2 if several else len(records)
        names = [f"{name}{ending}", *([f"{name} 2{ending}"] if several else [])]
        for file, part in zip(names, (records[:half], records[half:]), strict=False):
            write(part, folder / "new")
            os.replace(folder / "new", folder / file)
        places = [str(folder / file) for file in names]
        return _given(source, places if several else places[0])

    for name in FILES:
        yield f"file {name!r}", partial(hold, name), False


def _folders(source: Source) -> Iterator[Held]:
    made = _write(source)
    if made is None or source.name.endswith(" files"):
        return
    write, ending = made

    def hold(name: str, records: Sequence[Record], folder: Path) -> Any:
        for inner in (name, "x1", "xx"):
            (folder / inner).mkdir(exist_ok=True)
        write(DECOY, folder / "x1" / f"people{ending}")
        write(records, folder / name / f"people{ending}")
        return _given(source, str(folder / name / f"people{ending}"))

    for name in FOLDERS:
        yield f"folder {name!r}", partial(hold, name), False


def _links(source: Source) -> Iterator[Held]:
    """The same file under two names: its people would count twice."""
    made = _write(source)
    if made is None or not source.name.endswith(" files"):
        return
    write, ending = made

    def hold(link: Callable[[Path, Path], None], records: Sequence[Record], folder: Path) -> Any:
        paths = [folder / f"a{ending}", folder / f"b{ending}"]
        write(records, paths[0])
        link(*paths)
        return [str(path) for path in paths]

    def pattern(records: Sequence[Record], folder: Path) -> Any:
        write(records, folder / f"a{ending}")
        return [str(folder / f"a{ending}"), str(folder / f"*{ending}")]

    yield "a symbolic link", partial(hold, lambda old, new: new.symlink_to(old)), True
    yield "a hard link", partial(hold, lambda old, new: new.hardlink_to(old)), True
    yield "a file and its pattern", pattern, True


def _tables(source: Source) -> Iterator[Held]:
    if source.name not in ("duckdb", "sqlite", "postgres"):
        return

    def hold(name: str, records: Sequence[Record], folder: Path) -> Any:
        write_csv(DECOY, folder / "people.csv")
        pq.write_table(arrow_table(DECOY, {}, Place(folder)), folder / "d1.parquet")
        given = source.hold(records, {}, Place(folder, table=name))
        if source.name == "duckdb" and name != "main.people":
            write_duckdb(DECOY, {}, Place(folder), folder / "people.duckdb", "people2")
        return given

    def ambiguous(records: Sequence[Record], folder: Path) -> Any:
        path = folder / "people.duckdb"
        write_duckdb(records, {}, Place(folder), path, quoted("main.people"))
        write_duckdb(DECOY, {}, Place(folder), path, "people")
        return DatabaseTable(path, "main.people")

    def schemas(name: str, records: Sequence[Record], folder: Path) -> Any:
        path = folder / "people.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE SCHEMA other")
        write_duckdb(records, {}, Place(folder), path, "people" if name == "people" else "other.people")
        write_duckdb(DECOY, {}, Place(folder), path, "other.people" if name == "people" else "people")
        return DatabaseTable(path, name)

    def view(records: Sequence[Record], folder: Path) -> Any:
        path = folder / "people.duckdb"
        write_duckdb(records, {}, Place(folder), path, "people")
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE VIEW people_view AS SELECT * FROM people")
        return DatabaseTable(path, "people_view")

    def outside(records: Sequence[Record], folder: Path) -> Any:
        path = folder / "people.duckdb"
        write_duckdb(DECOY, {}, Place(folder), path, "people")
        write_csv(records, folder / "people.csv")
        return DatabaseTable(path, str(folder / "people.csv"))

    for name in TABLES:
        yield f"table {name!r}", partial(hold, name), False
    if source.name == "duckdb":
        yield "a table called main.people beside people", ambiguous, False
        yield "the same name in two schemas", partial(schemas, "people"), False
        yield "the same name in two schemas, with the schema", partial(schemas, "other.people"), False
        yield "a view", view, False
        yield "a file for a table", outside, True
