"""Periods, the base of dates and times: cells that are neighbouring intervals of days or of minutes.

Days and minutes are integers. A domain reaches from a first one to a last one, both included, and a cell holds those of
its period that lie in this range. A literal in a condition is an interval too: ``2021-03`` is a month, ``2021-03-15`` a
day. A comparison is decided for a cell if it holds for all days of the cell or for none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import WorkloadError
from hdmm.numbers import shown
from hdmm.schema.domain import OUTSIDE, Codes, Comparison, Domain
from hdmm.schema.levels import Groups, Level, Named, read_levels
from hdmm.schema.moments import Form, Format, Span


@dataclass(frozen=True)
class Periods(Domain):
    """Neighbouring intervals of days or minutes, from a first to a last one."""

    levels: Mapping[str, Level] = field(init=False, repr=False, compare=False)
    _own: Named[Level] = field(init=False, repr=False)
    """The levels that a user declares."""
    _form: Form = field(init=False, repr=False, compare=False)
    """How texts of records are read."""
    _limits: Span = field(init=False, repr=False, compare=False)
    """The first and the last day or minute, both included."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Codes, Codes]:
        """The first and the last day or minute of every declared cell."""

    @abstractmethod
    def number(self, places: Codes) -> Codes:
        """The cells of days or minutes that lie in the range."""

    @abstractmethod
    def part(self, name: str) -> Codes:
        """SQL's ``EXTRACT(name FROM attribute)`` of every declared cell; refuse a field that cells do not decide."""

    @abstractmethod
    def build_level(self, name: str) -> Level:
        """A level that comes by itself."""

    @abstractmethod
    def _literal(self, text: str) -> Span | None:
        """The interval that a text in a condition stands for; None if it has another form."""

    @abstractmethod
    def _read(self, text: bytes) -> Span | None:
        """The interval that a text of a record stands for; None if it has another form."""

    @property
    @abstractmethod
    def _example(self) -> str:
        """How to write a value: the end of a message."""

    @property
    @abstractmethod
    def _noun(self) -> str:
        """What a cell is called."""

    @property
    @abstractmethod
    def _unit(self) -> str:
        """What cells consist of."""

    @abstractmethod
    def _place(self, place: int) -> str:
        """A day or a minute as a text."""

    @property
    @final
    def implied(self) -> tuple[str, ...]:
        return tuple(name for name in self.levels if name not in self._own)

    @property
    @final
    def numeric(self) -> bool:
        """Whether integers are values, by their decimal texts: the declared format has nothing but digits."""
        return isinstance(self._form, Format) and self._form.numeric

    @final
    def _set_levels(self, declared: Groups | None, implied: Sequence[str]) -> None:
        """Set the levels while the domain is built, after everything else."""
        own = read_levels(self, declared)
        self._set(_own=own, levels=PeriodLevels(self, own, [name for name in implied if name not in own]))

    @final
    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        start, end = self._interval(literal)
        first, last = self._limits
        # "< 2025-01-01" is how people write "up to the end of 2024", so the neighbours of the range are admitted.
        beyond = 1 if operator in ("<", "<=", ">", ">=") else 0
        if end < first - beyond or start > last + beyond:
            raise WorkloadError(f"'{operator} {literal}': {shown(literal)} is outside the domain{self.hint(literal)}")
        lows, highs = self.bounds
        match operator:
            case "=" | "<>":
                every, some = (lows >= start) & (highs <= end), (highs >= start) & (lows <= end)
            case "<" | ">=":
                every, some = lows >= start, highs >= start
            case _:
                every, some = lows > end, highs > end
        if (cut := every != some).any():
            raise WorkloadError(f"'{operator} {literal}' cuts through {self._shown(int(np.argmax(cut)))}")
        return every if operator in (">=", ">", "=") else ~every

    @final
    def find(self, text: str) -> int:
        interval = self._literal(text)
        if interval is None:
            return OUTSIDE
        (first, last), (lows, highs) = self._limits, self.bounds
        start, end = max(interval[0], first), min(interval[1], last)
        if start > end:
            return OUTSIDE
        code = int(np.searchsorted(lows, start, side="right")) - 1
        return code if lows[code] == start and highs[code] == end else OUTSIDE

    @final
    def _ends(self, low: str, high: str) -> tuple[int, int]:
        (first, last), (lows, highs) = self._limits, self.bounds
        for end in (low, high):
            interval = self._interval(end)
            if interval[1] < first or interval[0] > last:
                raise WorkloadError(f"range end {shown(end)} is outside the domain{self.hint(end)}")
        start, stop = max(self._interval(low)[0], first), min(self._interval(high)[1], last)
        at, to = (int(np.searchsorted(lows, place, side="right")) - 1 for place in (start, stop))
        for end, code, whole in ((low, at, lows[at] == start), (high, to, highs[to] == stop)):
            if not whole:
                raise WorkloadError(f"range end {end} cuts through {self._shown(code)}")
        return at, to

    @final
    def _interval(self, text: str) -> Span:
        interval = self._literal(text)
        if interval is None:
            raise WorkloadError(f"{shown(text)} is not a value that this attribute is compared with; {self._example}")
        return interval

    @final
    def _shown(self, code: int) -> str:
        """A cell that a comparison cuts through, and what to write instead."""
        low, high = (self._place(int(ends[code])) for ends in self.bounds)
        return f"the {self._noun} {self.value(code)}; write its first or last {self._unit}, {low} or {high}"

    @final
    def _encode(self, texts: Sequence[bytes]) -> Codes:
        first, last = self._limits
        nowhere = (last + 1, last)
        starts = np.fromiter(
            (
                max(start, first) if end >= first else last + 1
                for start, end in (self._read(t) or nowhere for t in texts)
            ),
            np.int64,
            len(texts),
        )
        inside = starts <= last
        return np.where(inside, self.number(np.where(inside, starts, first)), OUTSIDE)


@final
class PeriodLevels(Mapping[str, Level]):
    """The levels that a user declares, then those that come by themselves, each built on the first request."""

    def __init__(self, domain: Periods, declared: Named[Level], implied: Sequence[str]) -> None:
        self._domain = domain
        self._names = (*declared, *implied)
        self._levels: dict[str, Level] = dict(declared)

    def __getitem__(self, name: str) -> Level:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._levels:
            self._levels[name] = self._domain.build_level(name)
        return self._levels[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def level_over(coarse: Domain, codes: Codes) -> Level:
    """A level from the codes of the declared cells; the cells "other" and "missing" go into its own."""
    return Level(coarse, np.concatenate([codes, np.arange(coarse.declared, coarse.size)]))
