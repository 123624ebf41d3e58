"""Random records as texts, what they count for, and where they may be stored."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from random import Random

from hdmm.data.people import salt
from tests.fuzz.schemas import Attribute, clock, days
from tests.fuzz.workloads import Schema

Record = dict[str, str]
PERSON = "person id"
_OUTSIDE = ("", " ", "zzz", "nan", "5.0", "-99", "1e3", "f f", "other", "missing", "NULL", "100000000000000000000")


def random_records(rng: Random, schema: Schema, people: bool) -> tuple[Record, ...]:
    """Up to forty records, some with values outside their domains."""
    columns = [column for attribute in schema for column in attribute.columns]
    found = []
    for _ in range(rng.choice((0, 1, 5, 20, 40))):
        record = {column.name: _text(rng, column) for column in columns}
        if people:
            record[PERSON] = rng.choice(("", "7", "07", "ann", " ann", "bob", "eve", *(str(n) for n in range(20))))
        found.append(record)
    return tuple(found)


def _text(rng: Random, column: Attribute) -> str:
    if rng.random() < 0.08:
        return rng.choice(_OUTSIDE)
    if rng.random() < 0.15 and column.options.unusual:
        return rng.choice(column.options.unusual)
    match column.kind:
        case "listed":
            text = column.options.spelt(rng, "listed", rng.choice(column.values))
        case "integers":
            number = rng.randint(int(column.values[0]), int(column.values[1]))
            text = rng.choice((str(number), str(number), f"{number:03d}", f"+{number}" if number >= 0 else str(number)))
            text = rng.choice((text, column.options.spelt(rng, "integers", str(number))))
        case "boolean":
            text = rng.choice(("true", "false", "T", "f", "YES", "No", "1", "0"))
        case "dates":
            text = _date(rng, column)
        case "times":
            text = _time(rng, column)
        case _:
            text = rng.choice((*column.values, rng.choice(column.values) + ("5" if rng.random() < 0.5 else "")))
            text = rng.choice((text, f"{text}e0", column.options.spelt(rng, "bins", text)))
    return rng.choice((text, text, text, f" {text}", f"{text}\t"))


def _date(rng: Random, column: Attribute) -> str:
    """A date in the range or beside it, mostly in the format of the column."""
    day = rng.choice(days(column.values)) + timedelta(rng.choice((0, 0, 0, -40, 40)))
    if rng.random() < 0.1:
        return rng.choice(("2020-02-30", "2019-12", "2020", "2020-W01", "2020-Q1", "31.12.2019", "20200101", "1/2020"))
    if column.format:
        plain = day.strftime(column.format)
        return plain.lstrip("0") if rng.random() < 0.3 else plain
    return rng.choice((str(day), str(day), f"{day}T08:30", f"{day} 23:59:59.5+01:00", f"{day} 24:00"))


def _time(rng: Random, column: Attribute) -> str:
    """A time in the range or beside it, mostly in the format of the column."""
    minute = (rng.choice(rng.choice(clock(column.values, column.by))) + rng.choice((0, 0, 0, -90, 90))) % 1440
    hour, rest = divmod(minute, 60)
    if rng.random() < 0.1:
        return rng.choice(("24:00", "8:30", "2400", "860", "08:60", "noon", "5"))
    if column.format:
        return rng.choice((f"{hour:02}{rest:02}", f"{hour:02}{rest:02}", str(hour * 100 + rest)))
    return rng.choice((f"{hour:02}:{rest:02}", f"{hour:02}:{rest:02}:59", f"2020-02-28 {hour:02}:{rest:02}Z"))


def counts(schema: Schema, records: Sequence[Record], rows: int, people: bool) -> Counter[tuple[int, ...]]:
    """How many records count in each cell of the attributes that are read, by the rules of docs/data.md."""
    kept: list[tuple[str, tuple[int, ...]]] = []
    for record in records:
        cells = [attribute.combine([c.read(record[c.name]) for c in attribute.columns]) for attribute in schema]
        person = record.get(PERSON, "").strip(" \t\r")
        if None not in cells and (person or not people):
            kept.append((person, tuple(cells)))  # type: ignore[arg-type]
    if not people:
        return Counter(cells for _, cells in kept)
    chosen: Counter[tuple[int, ...]] = Counter()
    for person in {person for person, _ in kept}:
        own = Counter(cells for other, cells in kept if other == person)
        keyed = [(_key(person, cells, copy), cells) for cells, often in own.items() for copy in range(1, often + 1)]
        chosen.update(cells for _, cells in sorted(keyed)[:rows])
    return chosen


def _key(person: str, cells: tuple[int, ...], copy: int) -> str:
    key = hashlib.sha256((salt() + person).encode()).hexdigest()[:32]
    return hashlib.sha256(",".join([key, *map(str, cells), str(copy)]).encode()).hexdigest()[:32]


SOURCES = (
    *("csv",) * 8,
    *("tsv", "csv.gz", "csv.zst", "sqlite", "parquet", "pandas", "polars", "lazy", "arrow", "typed", "duckdb"),
    *("stream", "dataset", "relation"),
)


def source_code(kind: str, schema: Schema, people: bool, path: str = "data") -> list[str]:
    """Lines of Python that make ``source`` of ``records`` and ``columns``."""
    match kind:
        case "csv" | "tsv" | "csv.gz" | "csv.zst":
            mark = "\\t" if kind == "tsv" else ","
            packed = {"csv.gz": "gzip", "csv.zst": "zstd"}.get(kind)
            return [
                "quote = lambda text: '\"' + text.replace('\"', '\"\"') + '\"'",
                "lines = [columns, *([record[c] for c in columns] for record in records)]",
                f"source = str(folder / '{path}.{kind}')",
                f"text = ''.join('{mark}'.join(map(quote, line)) + '\\n' for line in lines)",
                "import pyarrow",
                f"with pyarrow.output_stream(source, compression={packed!r}) as file: file.write(text.encode())",
            ]
        case "pandas":
            return ["import pandas", "source = pandas.DataFrame(list(records), columns=columns, dtype=object)"]
        case "polars" | "lazy":
            return [
                "import polars",
                "source = polars.DataFrame({c: [r[c] for r in records] for c in columns}, "
                "schema={c: polars.String for c in columns})" + ".lazy()" * (kind == "lazy"),
            ]
        case "sqlite":
            return [
                "import sqlite3",
                f"base = sqlite3.connect(folder / '{path}.sqlite')",
                "base.execute('CREATE TABLE t (' + ', '.join(f'\"{c}\"' for c in columns) + ')')",
                "base.executemany('INSERT INTO t VALUES (' + ', '.join('?' * len(columns)) + ')', "
                "[[r[c] or None for c in columns] for r in records])",
                "base.commit()",
                "base.close()",
                f"source = hdmm.DatabaseTable(str(folder / '{path}.sqlite'), 't')",
            ]
    lines = [
        "import pyarrow",
        "source = pyarrow.table({c: pyarrow.array([r[c] for r in records], 'string') for c in columns})",
    ]
    match kind:
        case "stream":
            return [
                *lines,
                "table = source",
                "class Stream:",
                "    def __arrow_c_stream__(self, requested_schema=None):",
                "        return table.to_reader().__arrow_c_stream__(requested_schema)",
                "source = Stream()",
            ]
        case "dataset":
            return [*lines, "import pyarrow.dataset", "source = pyarrow.dataset.dataset(source)"]
        case "relation":
            return [*lines, "import duckdb", "source = duckdb.connect().from_arrow(source)"]
        case "typed":
            names = [c.name for a in schema for c in a.columns if c.kind == "integers"]
            dates = [c.name for a in schema for c in a.columns if c.kind == "dates" and not c.format]
            return [
                "import pyarrow, datetime, re",
                "def typed(column):",
                "    texts = [r[column].strip() for r in records]",
                f"    if column in {names!r} and all(t.lstrip('+-').isdigit() and len(t) < 9 or not t for t in texts):",
                "        return pyarrow.array([int(t) if t else None for t in texts], 'int32')",
                "    iso = r'20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])'",
                f"    if column in {dates!r} and all(re.fullmatch(iso, t) or not t for t in texts):",
                "        days = [datetime.date.fromisoformat(t) if t else None for t in texts]",
                "        return pyarrow.array(days, 'date32')",
                "    return pyarrow.array([r[column] or None for r in records], 'string')",
                "source = pyarrow.table({c: typed(c) for c in columns})",
            ]
        case "parquet":
            return [
                *lines,
                "import pyarrow.parquet",
                f"pyarrow.parquet.write_table(source, folder / '{path}.parquet')",
                f"source = str(folder / '{path}.parquet')",
            ]
        case "duckdb":
            return [
                *lines,
                "import duckdb",
                f"base = duckdb.connect(str(folder / '{path}.duckdb'))",
                "base.register('given', source)",
                "base.execute('CREATE TABLE t AS SELECT * FROM given')",
                "base.close()",
                f"source = hdmm.DatabaseTable(str(folder / '{path}.duckdb'), 't')",
            ]
    return lines


def column_names(schema: Schema, people: bool) -> list[str]:
    """The columns of the data."""
    return [column.name for attribute in schema for column in attribute.columns] + [PERSON] * people
