"""Sources that are tables of an engine: it encodes and counts the records, and only the counts come here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

from hdmm.data.encode_query import check_types, coded
from hdmm.data.engine import Engine
from hdmm.data.findings import Findings
from hdmm.data.grouping import cover
from hdmm.data.inspect_query import inspect_columns, people_in
from hdmm.data.packing import Packing
from hdmm.data.people import EVERYBODY, chosen
from hdmm.data.source import Advance, CountRequest, Counts, Source, check_columns, needed_columns, unheard
from hdmm.data.tally import Tally
from hdmm.errors import DataError, HdmmError
from hdmm.privacy.unit import Unit
from hdmm.schema import Domain, Schema

Needed = Mapping[str, Domain | None]
"""The columns that are read, with the domain of each; the one that identifies people has none."""


@final
@dataclass(frozen=True)
class View:
    """An open table: its engine, the names of its columns, and a function that selects some of them.

    The function takes the names with their domains, and whether records are wanted or none of them. Without names it
    may select anything.
    """

    engine: Engine
    columns: Sequence[object]
    table: Callable[[Needed, bool], Any]


def view_of(engine: Engine, table: Any) -> View:
    """The view of a table of ibis."""

    def selected(columns: Needed, records: bool) -> Any:
        chosen = table.select(*columns) if columns else table
        return chosen if records else chosen.limit(0)

    return View(engine, table.columns, selected)


class Relation(Source):
    """A table of an engine that ibis knows."""

    @property
    def place(self) -> str:
        """The name of the table in messages: by default, that of the argument."""
        return "data"

    @abstractmethod
    def opened(self) -> AbstractContextManager[View]:
        """The table, while it is counted."""

    @final
    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        with self._tried(), self.opened() as view:
            check_columns(self.place, view.columns, schema, id)
            _check_case(self.place, needed_columns(schema, id))
            table = _needed(view, schema, id, records=False)
            try:
                check_types(table, schema, id)
            except DataError as error:
                raise DataError(f"{self.place}: {error}") from None
            _rehearse(view.engine, table, schema, id)

    @final
    def count(self, request: CountRequest) -> Counts:
        with self.opened() as view:
            return _count(view.engine, _needed(view, request.schema, request.unit.id, records=True), request)

    @final
    def column_names(self) -> list[str]:
        with self._tried(), self.opened() as view:
            return [str(column) for column in view.columns]

    @final
    def inspect(self, schema: Schema, unit: Unit, on_progress: Advance = unheard) -> Findings:
        with self._tried(), self.opened() as view:
            table = _needed(view, schema, unit.id, records=True)  # once: a stream cannot be read again

            def count(part: Schema, of: Unit) -> int:
                ((counted,),) = _count(view.engine, table, CountRequest(part, [()], of))
                return int(counted)

            everything = Unit(rows=unit.rows, neighbours=unit.neighbours)
            records, inside = count(schema.only([]), everything), count(schema, everything)
            columns = inspect_columns(view.engine, table, schema, on_progress)
            if unit.id is None:
                return Findings(records, inside, columns)
            people, used = people_in(view.engine, table, unit), count(schema, unit)
            return Findings(records, used, columns, replace(people, uncounted=inside - used))

    @contextmanager
    def _tried(self) -> Iterator[None]:
        """Report the type of an engine's errors only: their messages may hold records or passwords."""
        try:
            yield
        except HdmmError:
            raise
        except Exception as error:
            raise DataError(
                f"{self.place}: cannot be read ({type(error).__name__}); check that it exists and is what its name "
                "says, and that you may read it and create temporary tables"
            ) from None


def _check_case(place: str, columns: Iterable[str]) -> None:
    """Refuse names that an engine which ignores case would confuse."""
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.casefold(), column)
        if other != column:
            raise DataError(f"{place}: columns {other!r} and {column!r} differ in case only; rename one, or give a CSV")


def _needed(view: View, schema: Schema, id: str | None, *, records: bool) -> Any:
    return view.table(needed_columns(schema, id), records)


def _rehearse(engine: Engine, table: Any, schema: Schema, id: str | None) -> None:
    """Count no records at all: what an engine cannot do must show before anything is charged."""
    packing = Packing(schema)
    with _kept(engine, table, schema, id, 1, packing) as records:
        list(packing.counted(engine, records, schema.names))


@contextmanager
def _kept(engine: Engine, table: Any, schema: Schema, id: str | None, rows: int, packing: Packing) -> Iterator[Any]:
    """The records that count, packed: encoded once, then, if people are identified, chosen once.

    They are stored in temporary tables, so that the source is read once, and every count sees the same records.
    """
    codes = {name: f"c{at}" for at, name in enumerate(schema.names)} or {"": EVERYBODY}
    with ExitStack() as stack:
        records = coded(engine, table, schema, id, stack)
        if id is not None:
            records = chosen(engine, stack.enter_context(records.cache()), list(codes.values()), rows)
        yield stack.enter_context(packing.packed(records, codes).cache())


def _count(engine: Engine, table: Any, request: CountRequest) -> Counts:
    """Store the records once, then count groups of attributes from which tables add up."""
    schema, unit = request.schema, request.unit
    packing = Packing(schema)
    groups = cover(request.tables, dict(zip(schema.names, schema.sizes, strict=True)))
    tallies = [Tally(names, schema) for names in request.tables]
    with _kept(engine, table, schema, unit.id, unit.rows, packing) as records:
        if request.most is not None and records.count().to_pyarrow().as_py() > request.most:
            records = records.order_by(records.columns).limit(request.most)
        for done, group in enumerate(groups, 1):
            for counted in packing.counted(engine, records, group.names):
                for at in group.tables:
                    tallies[at].add(counted)
            request.on_progress(done / len(groups))
    return [tally.counts for tally in tallies]
