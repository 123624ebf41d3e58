"""The interface of a source of records: it checks its columns before anything is charged, then counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.data.findings import Findings
from hdmm.errors import DataError, NotSupportedError
from hdmm.privacy.unit import Unit
from hdmm.schema import Domain, Schema

_CANNOT_LOOK = "data: this source can be counted, but not looked at; check a file, a table or a DataFrame"

Counts = list[NDArray[np.int64]]
Advance = Callable[[float], None]


def unheard(done: float) -> None:
    """Report progress to nobody."""


@final
@dataclass(frozen=True)
class CountRequest:
    """A request to count the records in every cell of every table; a table is a tuple of attributes."""

    schema: Schema
    tables: Sequence[tuple[str, ...]]
    unit: Unit = field(default_factory=Unit)
    on_progress: Advance = unheard
    most: int | None = None
    """If there are more records than this, count only the first, in an order in which no record changes the place of
    two others."""


class Source(ABC):
    """Something that holds records of a schema."""

    @abstractmethod
    def columns_check(self, schema: Schema, id: str | None = None) -> None:
        """Refuse a source that does not have each of the schema's columns exactly once; the schema may be empty.

        ``id`` is one more column, which identifies people. A column whose type cannot be read is refused as well.
        """

    @abstractmethod
    def count(self, request: CountRequest) -> Counts:
        """Count the records in every cell of every table, as :func:`hdmm.data.count` describes, without the cap."""

    def column_names(self) -> list[str]:
        """The names of all columns, as they are. Default: the source cannot be looked at."""
        raise NotSupportedError(_CANNOT_LOOK)

    def inspect(self, schema: Schema, unit: Unit, on_progress: Advance = unheard) -> Findings:
        """What the records hold outside the domains of a schema whose columns are all there: private.

        It is for :func:`hdmm.check` alone; nothing that is published may depend on it. Default: refused.
        """
        raise NotSupportedError(_CANNOT_LOOK)


def check_file(path: Path) -> None:
    """Refuse a path that is not the path of a file."""
    try:
        if not path.exists():
            raise DataError(f"{path}: there is no such file; check the path")
    except OSError as error:
        raise DataError(f"{path}: cannot be a file: {error.strerror}; check the path") from None
    if path.is_dir():
        raise DataError(f"{path}: this is a directory; give the path of a file, or a pattern such as 'people-*.csv'")
    if not path.is_file():
        raise DataError(f"{path}: this is not a regular file; write the records to a file first")


def check_columns(
    place: str,
    columns: Sequence[object],
    schema: Schema,
    id: str | None,
    remedy: str = "name the columns exactly as the schema does",
) -> None:
    """Refuse columns that lack a needed one, or hold it twice. Messages name needed columns only, never others."""
    owners = {column: name for name, domain in schema.items() for column in domain.columns(name)}
    if id is not None:
        owners[id] = id
    counts = {column: sum(other == column for other in columns) for column in owners}
    missing = ", ".join(_shown(column, owners[column]) for column in owners if not counts[column])
    if missing:
        raise DataError(f"{place}: there is no column for {missing}; {remedy}")
    repeated = ", ".join(_shown(column, owners[column]) for column in owners if counts[column] > 1)
    if repeated:
        raise DataError(f"{place}: there is more than one column for {repeated}; keep one of each name")


def needed_columns(schema: Schema, id: str | None) -> dict[str, Domain | None]:
    """The columns that are read, with their domains: those of the schema, then the one that identifies people."""
    return {**schema.columns, **({} if id is None else {id: None})}


def _shown(column: str, attribute: str) -> str:
    return repr(column) if column == attribute else f"{column!r} (a part of {attribute!r})"
