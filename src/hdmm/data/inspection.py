"""A look at records: which values are outside their domains, and how often. For `hdmm.check` alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from hdmm.data.fields import Distinct
from hdmm.data.findings import MOST_TEXTS, ColumnFindings, Findings, LineFindings, PeopleFindings, most_frequent
from hdmm.privacy.unit import Unit
from hdmm.schema import OUTSIDE, Domain, Schema
from hdmm.schema.text import BLANKS

_MAX_DISTINCT = 1 << 18
"""Distinct texts that are counted at a time; then the rarer half is forgotten."""


@final
@dataclass(frozen=True)
class RawChunk:
    """Some records as texts: for every column its distinct texts, and which of them each record has."""

    count: int
    columns: Mapping[str, Distinct]
    people: Any = None
    """The person of each record as an Arrow array, null if there is none; None if nobody is identified."""
    lines: LineFindings | None = None


@final
class Inspection:
    """Adds up what is found, chunk by chunk."""

    def __init__(self, schema: Schema, unit: Unit) -> None:
        self._columns = {name: ColumnInspection(domain) for name, domain in schema.columns.items()}
        self._unit = unit
        self._records = self._inside = self._unidentified = 0
        self._people: Counter[str] = Counter()
        self._people_inside: Counter[str] = Counter()
        self._lines: list[LineFindings] = []

    def add(self, chunk: RawChunk) -> None:
        """Look at some records."""
        inside = np.ones(chunk.count, bool)
        for name, column in self._columns.items():
            texts, which = chunk.columns[name]
            inside &= column.add(texts, np.bincount(which, minlength=len(texts)))[which]
        if chunk.people is not None:
            known = chunk.people.is_valid().to_numpy(zero_copy_only=False)
            self._unidentified += int(chunk.count - known.sum())
            self._add_people(chunk.people, known, inside)
        self._records += chunk.count
        self._inside += int(inside.sum())
        if chunk.lines is not None:
            self._lines.append(chunk.lines)

    def findings(self) -> Findings:
        """What was found so far."""
        columns = {name: column.findings() for name, column in self._columns.items()}
        lines = _added(self._lines) if self._lines else None
        if self._unit.id is None:
            return Findings(self._records, self._inside, columns, None, lines)
        rows = self._unit.rows
        used = sum(min(count, rows) for count in self._people_inside.values())
        exceeding = sum(count > rows for count in self._people.values())
        people = PeopleFindings(len(self._people), exceeding, self._unidentified, self._inside - used)
        return Findings(self._records, used, columns, people, lines)

    def _add_people(self, people: Any, known: np.ndarray, inside: np.ndarray) -> None:
        for counts, mask in ((self._people, known), (self._people_inside, known & inside)):
            counted = people.filter(_mask(mask)).value_counts()
            for person, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
                counts[person] += count


@final
@dataclass
class _Texts:
    """Distinct texts, trimmed, and how often each occurs; of very many the most frequent ones."""

    counts: Counter[bytes] = field(default_factory=Counter)
    forgotten: int = 0

    @property
    def distinct(self) -> int:
        return len(self.counts) + self.forgotten

    def add(self, texts: list[bytes], times: np.ndarray, chosen: np.ndarray) -> None:
        for number in np.flatnonzero(chosen & (times > 0)).tolist():
            self.counts[texts[number].strip(BLANKS)] += int(times[number])
        if len(self.counts) > _MAX_DISTINCT:
            kept = Counter(dict(self.counts.most_common(_MAX_DISTINCT // 2)))
            self.forgotten += len(self.counts) - len(kept)
            self.counts = kept

    def add_some(self, texts: list[bytes], times: np.ndarray, chosen: np.ndarray) -> None:
        """Count texts, as long as there are few different ones."""
        if len(self.counts) < MOST_TEXTS:
            for number in np.flatnonzero(chosen & (times > 0))[:MOST_TEXTS].tolist():
                self.counts[texts[number].strip(BLANKS)] += int(times[number])


@final
@dataclass
class ColumnInspection:
    """The values of one column so far."""

    domain: Domain
    texts: _Texts = field(default_factory=_Texts)
    other_texts: _Texts = field(default_factory=_Texts)
    inside_texts: _Texts = field(default_factory=_Texts)
    outside: int = 0
    missing: int = 0
    other: int = 0

    def add(self, texts: list[bytes], times: np.ndarray) -> np.ndarray:
        """Look at texts that occur this many times; which of them are inside the domain."""
        codes = self.domain.encode(texts)
        self.outside += int(times[codes == OUTSIDE].sum())
        if self.domain.other:
            self.other += int(times[codes == self.domain.declared].sum())
            self.other_texts.add(texts, times, codes == self.domain.declared)
        if self.domain.missing:
            self.missing += int(times[codes == self.domain.size - 1].sum())
        self.texts.add(texts, times, codes == OUTSIDE)
        self.inside_texts.add_some(texts, times, (codes != OUTSIDE) & (codes < self.domain.declared))
        return codes != OUTSIDE

    def findings(self) -> ColumnFindings:
        texts, others, inside = (
            most_frequent(some.counts) for some in (self.texts, self.other_texts, self.inside_texts)
        )
        distinct = self.texts.distinct
        return ColumnFindings(self.outside, distinct, texts, self.missing, self.other, others, inside)


def inspected(chunks: Iterator[RawChunk], schema: Schema, unit: Unit) -> Findings:
    """What is found in all chunks."""
    inspection = Inspection(schema, unit)
    for chunk in chunks:
        inspection.add(chunk)
    return inspection.findings()


def _added(lines: list[LineFindings]) -> LineFindings:
    widths: Counter[int] = Counter()
    for found in lines:
        widths.update(found.widths)
    totals = {name: sum(getattr(found, name) for found in lines) for name in ("long", "unbalanced", "undecodable")}
    return LineFindings(lines[0].fields, dict(widths), **totals)


def _mask(inside: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.array(inside)
