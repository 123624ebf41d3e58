"""Faults planted into the library, one at a time: the replay must find each of them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from hdmm.errors import DataError
from hdmm.text import text_table
from tests.attack.items import items, neighbours
from tests.attack.names import name_cases
from tests.attack.replay import Case, forget, violations
from tests.attack.sources import FILES


@dataclass(frozen=True)
class Fault:
    """A function of the library, what stands in for it, and the case in which it must show."""

    target: str
    change: Callable[..., Any]
    """Called with the original and its arguments."""
    source: str
    unit: str
    item: str
    cells: bool = False

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Put the fault into the library."""
        module, name = self.target.split(":")
        owner: Any = importlib.import_module(module)
        *classes, function = name.split(".")
        for part in classes:
            owner = getattr(owner, part)
        original = getattr(owner, function)

        def faulty(*arguments: Any, **options: Any) -> Any:
            return self.change(original, *arguments, **options)

        with patch.object(owner, function, faulty):
            yield

    @property
    def case(self) -> Case:
        """The neighbours."""
        source = FILES[self.source]
        for item in items():
            if f"{item.name} in {item.column} ({item.type})" == self.item and item.in_source(source):
                return neighbours(source, item, self.unit, self.cells)[0]
        return next(case for case, _ in name_cases(source) if case.item == self.item)


def _one_more(original: Any, self: Any, engine: Any, names: Any, rows: int) -> Any:
    return original(self, engine, names, rows + 1)


def _neighbour_dropped(original: Any, self: Any) -> Any:
    outside = np.any([codes < 0 for codes in self.codes.values()], axis=0)
    kept = np.flatnonzero(~(outside | np.roll(outside, -1)))
    people = None if self.people is None else self.people.take(kept)
    return original(replace(self, count=len(kept), codes={k: v[kept] for k, v in self.codes.items()}, people=people))


def _told(original: Any, value: object, *domain: Any) -> Any:
    if isinstance(value, (dict, set)):
        raise DataError(f"{value!r}: is no value; leave it out")
    return original(value, *domain)


def _aborted(original: Any, value: object, *domain: Any) -> Any:
    if isinstance(value, complex):
        raise ValueError("no number")
    return original(value, *domain)


def _warned(original: Any, value: object, *domain: Any) -> Any:
    if isinstance(value, tuple):
        warnings.warn("a value was skipped", stacklevel=1)
    return original(value, *domain)


def _globbed(original: Any, paths: Any, *options: Any) -> Any:
    return original([Path(name) for path in paths for name in sorted(glob(str(path))) or [path]], *options)


def _folded(original: Any, text: bytes) -> Any:
    known = original(text)
    return known and known.casefold()


def _spread(original: Any, line: Any, *more: Any) -> Any:
    """Quotes that run on over line breaks, as in most readers."""
    marks = original(line, *more)
    quotes = np.cumsum(line == ord('"'))
    return marks[(quotes[marks] % 2 == 0) | (marks == len(line) - 1)]


def _logged(original: Any, self: Any, out: Any, **options: Any) -> Any:
    saved = original(self, out, **options)
    (Path(out) / f"log-{int(sum(abs(one).sum() for one in self.measurements))}.txt").touch()
    return saved


FAULTS = {
    "a person counts one row too many": Fault(
        "hdmm.data.people:Waiting.__init__", _one_more, "csv", "2 rows per id", "ordinary in sex (text)"
    ),
    "a dropped record drops the one before": Fault(
        "hdmm.data.tally:Records.inside", _neighbour_dropped, "sqlite", "1 row", "NULL in sex (text)"
    ),
    "an error holds a value": Fault("hdmm.data.frame:text_of", _told, "pandas", "1 row", "a dict in sex (object)"),
    "a value aborts the release": Fault(
        "hdmm.data.frame:text_of", _aborted, "pandas", "3 rows", "a complex number in sex (object)"
    ),
    "a value is warned of": Fault("hdmm.data.frame:text_of", _warned, "pandas", "1 row", "a tuple in sex (object)"),
    "a pattern is expanded twice": Fault("hdmm.data.open:_files", _globbed, "csv", "1 row", "file 'd[1]'"),
    "people who differ in case are one": Fault(
        "hdmm.data.csv:identifier", _folded, "csv", "2 rows per id", "another case in who (text)"
    ),
    "an open quote runs on": Fault("hdmm.data.csv:separators", _spread, "csv", "1 row", "an open quote in line (line)"),
    "a file is named after a count": Fault(
        "hdmm.releases.publish:Release.save", _logged, "csv", "1 row", "ordinary in sex (text)"
    ),
}


def caught(name: str) -> str | None:
    """What the replay says with the fault and not without it; None where it says nothing new."""
    fault = FAULTS[name]
    case = fault.case
    forget()
    known = violations(case)
    with fault.planted():
        new = [text for text in violations(case) if text not in known]
    forget()
    return new[0] if new else None


def plant_all() -> int:
    """Plant every fault, print what was found, and return how many were missed."""
    said = {name: caught(name) for name in FAULTS}
    print(text_table(("planted fault", "found by"), [(name, text or "NOT CAUGHT") for name, text in said.items()]))
    return sum(text is None for text in said.values())
