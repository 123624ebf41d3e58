"""Two neighbouring data sets through the same release, without noise: everything that differs and must not is told."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq

import hdmm
from hdmm import Unit, baselines
from hdmm.errors import HdmmError
from hdmm.memory.limit import memory_allowed
from hdmm.schema import Bins, Boolean, Dates, Integers, Listed, Schema, Times
from tests.attack.oracle import (
    AGES,
    CLOSES,
    EDGES,
    FIRST,
    LAST,
    LISTED,
    OPENS,
    OPTIONS,
    SIZES,
    Cell,
    Record,
    added_up,
    counted,
    fields,
)
from tests.attack.records import COLUMNS, MARK
from tests.attack.sources import CannotHold, line_of

UNITS = {
    "1 row": Unit(),
    "3 rows": Unit(3),
    "2 rows per id": Unit(2, id="who"),
    "replace 1 row": Unit(neighbours="replace-one"),
    "replace 2 rows per id": Unit(2, "replace-one", id="who"),
}
TABLES: list[tuple[str, ...]] = [(), ("sex",), ("flag", "age"), ("pay",), ("day",), ("at",), tuple(SIZES)]
BUDGET = hdmm.Budget(epsilon="1")

Held = Callable[[Sequence[Record], Path], Any]


@dataclass(frozen=True)
class Case:
    """Everybody else's records, those of one unit before and after, and how all of them are put into a source."""

    source: str
    unit: str
    item: str
    hold: Held
    others: Sequence[Record]
    before: Sequence[Record]
    after: Sequence[Record]
    cells: bool = False
    """Whether the schema has cells for other and missing values."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Columns that are called something else."""
    at: int = 0
    """Where the records of the unit are among those of the others."""
    loose: bool = False
    """The documentation leaves open what the records of the unit count for."""
    refused: bool = False
    """Both data sets must be refused."""
    full: bool = False
    """Released and published; otherwise only counted, as a release does."""
    memory: str | None = None
    values: tuple[str, ...] = ()
    """Texts of the unit's records that no message may hold."""

    @property
    def privacy(self) -> Unit:
        """The unit, with the name that its column has here."""
        unit = UNITS[self.unit]
        return unit if unit.id is None else Unit(unit.rows, unit.neighbours, self.names.get(unit.id, unit.id))


@dataclass(frozen=True)
class Outcome:
    """What anybody can see of a release, and the counts that it was made from."""

    refusal: str = ""
    charged: bool = False
    said: frozenset[str] = frozenset()
    shape: tuple[object, ...] = ()
    counts: tuple[Counter[Cell], ...] = ()


@cache
def schema_of(names: tuple[tuple[str, str], ...], cells: bool) -> Schema:
    """The schema of the records."""
    called = dict(names)
    more: dict[str, dict[str, Any]] = {
        name: {"other": True, **options.data()} if cells else {} for name, options in OPTIONS.items()
    }
    edges = [str(float(edge)) for edge in EDGES]
    domains = {
        "sex": Listed(LISTED, **more["sex"]),
        "age": Integers(AGES[0], AGES[-1], **more["age"]),
        "pay": Bins(edges, **more["pay"]),
        "flag": Boolean(**more["flag"]),
        "day": Dates(FIRST, LAST, other=cells, missing=cells),
        "at": Times(OPENS, CLOSES, other=cells, missing=cells),
    }
    return Schema({called.get(name, name): domain for name, domain in domains.items()})


@cache
def plan_of(names: tuple[tuple[str, str], ...], cells: bool, unit: Unit) -> hdmm.Plan:
    """A plan that measures every cell: the cheapest to make."""
    workload = hdmm.marginals(schema_of(names, cells), up_to=1)
    return hdmm.select(workload, noise="laplace", operators=[baselines.Identity()], unit=unit)


def outcome(case: Case, records: Sequence[Record]) -> Outcome:
    """Count some records as a release does, or release them without noise."""
    folder = Path(tempfile.mkdtemp(prefix="hdmm-attack-"))
    try:
        (folder / "data").mkdir()
        with warnings.catch_warnings():  # those of the source's own package
            warnings.simplefilter("ignore")
            data = _held(case, records, folder / "data")
        seen = _Seen()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                (_release if case.full else _count)(case, data, folder, seen)
            except Exception as error:
                kind = f"exit {error.exit_code}" if isinstance(error, HdmmError) else "not an error of hdmm"
                seen.refusal = f"{type(error).__name__} ({kind}): {error}".replace(str(folder), "…")
        heard = {f"{one.category.__name__}: {one.message}" for one in said if one.category is not ResourceWarning}
        sizes = [size + 2 * case.cells for size in SIZES.values()]
        counts = tuple(_cells(table, names, sizes) for table, names in zip(seen.counts, TABLES, strict=False))
        return Outcome(seen.refusal, seen.charged, frozenset(heard), seen.shape, counts)
    finally:
        shutil.rmtree(folder)


@dataclass
class _Seen:
    refusal: str = ""
    charged: bool = False
    shape: tuple[object, ...] = ()
    counts: list[Any] = field(default_factory=list)


def _tables(case: Case) -> list[tuple[str, ...]]:
    return [tuple(case.names.get(name, name) for name in table) for table in TABLES]


def _count(case: Case, data: Any, folder: Path, seen: _Seen) -> None:
    """The part of a release that sees records: what fails after the check of columns has been charged."""
    schema = schema_of(tuple(sorted(case.names.items())), case.cells)
    source = hdmm.data.open_source(data)
    source.columns_check(schema, case.privacy.id)
    seen.charged = True
    with memory_allowed(case.memory):
        seen.counts += hdmm.data.count(source, schema, _tables(case), unit=case.privacy)


def _release(case: Case, data: Any, folder: Path, seen: _Seen) -> None:
    """All of it, without noise, and with more tables counted than the plan needs."""
    plan = plan_of(tuple(sorted(case.names.items())), case.cells, case.privacy)
    count = hdmm.data.count

    def counting(source: Any, schema: Schema, wanted: Any, **options: Any) -> Any:
        counts = count(source, schema, [*wanted, *_tables(case)], **options)
        seen.counts += [np.array(table) for table in counts[len(wanted) :]]
        return counts[: len(wanted)]

    ledger = hdmm.Ledger.create(folder / "budget.db", BUDGET, plan.unit)
    try:
        with (
            patch("hdmm.measure.count", counting),
            patch("hdmm.measure.add_noise", lambda answers, kind, scale: answers),
        ):
            hdmm.release(plan, data, BUDGET, ledger=ledger, out=folder / "out", memory=case.memory)
        seen.shape = _shape(folder / "out")
    finally:
        seen.charged = bool(ledger.entries())


def _held(case: Case, records: Sequence[Record], folder: Path) -> Any:
    try:
        return case.hold(records, folder)
    except Exception as error:
        raise CannotHold(type(error).__name__) from error


def _cells(table: Any, names: tuple[str, ...], sizes: list[int]) -> Counter[Cell]:
    own = [sizes[list(SIZES).index(name)] for name in names]
    grid = table.reshape(own)
    return Counter({tuple(map(int, cell)): int(grid[tuple(cell)]) for cell in np.argwhere(grid)})


def _shape(folder: Path) -> tuple[object, ...]:
    """The files of a release, and the columns and the number of rows of its tables."""
    shapes: list[object] = []
    for path in sorted(folder.rglob("*")):
        known = pq.read_metadata(path) if path.suffix == ".parquet" else None
        rows = None if known is None else (known.num_rows, str(known.schema.to_arrow_schema().remove_metadata()))
        shapes.append((str(path.relative_to(folder)), rows))
    return tuple(shapes)


_BASE: dict[object, Outcome] = {}


def violations(case: Case, key: object = None) -> list[str]:
    """What is wrong about a pair of neighbours; ``key`` identifies the first of them, which is then released once."""
    first = _BASE.get(key) if key is not None else None
    if first is None:
        first = outcome(case, _mixed(case, case.before))
        if key is not None:
            _BASE[key] = first
    second = outcome(case, _mixed(case, case.after))
    wrong = [*_public(case, first, second)]
    if not first.refusal and not second.refusal:
        wrong += _private(case, first, second)
    return wrong


def forget() -> None:
    """Release first neighbours again: the library has changed."""
    _BASE.clear()


def _mixed(case: Case, own: Sequence[Record]) -> list[Record]:
    return [*case.others[: case.at], *own, *case.others[case.at :]]


def _public(case: Case, first: Outcome, second: Outcome) -> list[str]:
    """What an onlooker could tell the two apart by."""
    wrong = []
    if first.refusal != second.refusal:
        wrong.append(f"existence: {_short(first.refusal)} / {_short(second.refusal)}")
    if any(one.refusal and one.charged for one in (first, second)):
        wrong.append(f"charged and then failed: {_short(second.refusal or first.refusal)}")
    if any("not an error of hdmm" in one.refusal for one in (first, second)):
        wrong.append(f"an error that is not hdmm's: {_short(second.refusal or first.refusal)}")
    if case.refused and not (first.refusal and second.refusal):
        wrong.append("released what must be refused")
    for one in (first, second):
        texts = [one.refusal, *one.said]
        if any(value in text for value in (MARK, *case.values) for text in texts):
            wrong.append(f"a message holds a value: {_short(one.refusal)} {[_short(text) for text in one.said]}")
    if not first.refusal and not second.refusal:
        if first.said != second.said:
            wrong.append(f"warnings: {[_short(text) for text in first.said ^ second.said]}")
        if first.shape != second.shape:
            wrong.append("the shape of what is published")
    return wrong


def _private(case: Case, first: Outcome, second: Outcome) -> list[str]:
    """Counts that differ by more than the unit allows, or are not those of the records."""
    rows, replaced = case.privacy.rows, case.privacy.neighbours == "replace-one"
    limit = None if case.privacy.id is None else rows
    everybody = [read(case.source, record) for record in case.others]
    others = counted(filter(None, everybody), limit, case.cells)
    wrong = []
    for at, table in enumerate(TABLES):
        ours, theirs = first.counts[at], second.counts[at]
        known = added_up(others, table)
        changes = [abs(theirs[cell] - ours[cell]) for cell in {*ours, *theirs}]
        if sum(changes) > (2 if replaced else 1) * rows or max(changes, default=0) > rows:
            wrong.append(f"table {table}: changed by {sum(changes)}, at most {max(changes)} in a cell")
        for name, counts, own in (("before", ours, case.before), ("after", theirs, case.after)):
            more = {cell: counts[cell] - known[cell] for cell in {*counts, *known}}
            if min(more.values(), default=0) < 0 or sum(more.values()) > rows:
                wrong.append(f"table {table}, {name}: records of others count differently: {_few(more)}")
            elif not case.loose:
                records = [*everybody, *(read(case.source, record) for record in own)]
                expected = added_up(counted(filter(None, records), limit, case.cells), table)
                if expected != +counts:
                    off = {cell: counts[cell] - expected[cell] for cell in {*counts, *expected}}
                    wrong.append(f"table {table}, {name}: counts differ from the documentation's: {_few(off)}")
    return wrong


def read(source: str, record: Record) -> Record | None:
    """The fields of a record; of a text file those of its line, None where it is not a record."""
    if source == "pandas":  # where bytes are no text
        return {name: object() if isinstance(value, bytes) else value for name, value in record.items()}
    if not source.startswith("csv"):
        return record
    parts = fields(line_of(record), len(COLUMNS))
    return None if parts is None else dict(zip(COLUMNS, parts, strict=True))


def _short(text: str) -> str:
    line = text.replace("\n", " ") or "released"
    return line if len(line) < 160 else line[:160] + "…"


def _few(changes: Mapping[Cell, int]) -> str:
    shown = {cell: change for cell, change in sorted(changes.items()) if change}
    return str(dict(list(shown.items())[:4]))
