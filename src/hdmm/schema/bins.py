"""Binned numbers: intervals between declared edges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import islice, pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import SchemaError, WorkloadError, nearest
from hdmm.numbers import NumberError, decimal, shown
from hdmm.schema.domain import EXACT, OUTSIDE, Codes, Comparison, Missing, number_of, text_of
from hdmm.schema.levels import Groups, read_levels
from hdmm.schema.numerals import Numeric
from hdmm.schema.text import DECIMAL, floors
from hdmm.syntax import either, example

_MAX_EDGES = 1 << 17
"""Conditions are compared with each edge, a decimal, one by one."""
_MAX_SHOWN = 40
"""Edges that a message lists; of more, only some."""


@final
@dataclass(frozen=True)
class Bins(Numeric):
    """Intervals between edges, each closed below and open above; ``closed=True`` closes the last one above too.

    Arguments:
        edges: The edges, in ascending order: decimals as text, or numbers.
        closed: Whether the last bin includes its upper edge.
        thousands: What separates groups of three digits, such as "," in 1,234.5.
        point: The decimal point, if it is not a point.
        currency: A sign that may stand before or after the number, such as "$".
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields; a list of texts, such as ``["NA", "-9"]``, counts these as well.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    edges: tuple[Decimal, ...]
    closed: bool = False
    _decimals: int = field(init=False, repr=False, compare=False)
    _scaled: NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        edges: Iterable[object],
        *,
        closed: bool = False,
        thousands: str | None = None,
        point: str | None = None,
        currency: str | None = None,
        other: bool = False,
        missing: Missing = False,
        levels: Groups | None = None,
    ) -> None:
        entries = list(islice(edges, _MAX_EDGES + 1))
        if len(entries) > _MAX_EDGES:
            raise SchemaError(f"bins: more than {_MAX_EDGES:,} edges; declare fewer and wider bins")
        numbers = tuple(_edge(edge) for edge in entries)
        if len(numbers) < 2:
            raise SchemaError(
                "bins need at least two edges, for example "
                + either(python="Bins([0, 10000, 50000])", spec="{bins: [0, 10000, 50000]}")
            )
        for low, high in pairwise(numbers):
            if not low < high:
                raise SchemaError(f"edges {_plain(low)}, {_plain(high)}: edges must increase")
        decimals = max(max(-int(number.as_tuple().exponent), 0) for number in numbers)
        if decimals > 12 or max(number.copy_abs() for number in numbers) >= 10**18 // 10**decimals:
            raise SchemaError("edges: at most 12 decimals and 18 digits in all; use rounder edges")
        scaled = np.array([int(number.scaleb(decimals, EXACT)) for number in numbers], np.int64)
        self._set(edges=numbers, closed=closed, _decimals=decimals, _scaled=scaled)
        self._set_numerals(thousands, point, currency, decimals=True)
        self._set_cells(other, missing)
        self._set(levels=read_levels(self, levels))

    @property
    def declared(self) -> int:
        return len(self.edges) - 1

    def value(self, code: int) -> str:
        end = "]" if self.closed and code == self.declared - 1 else ")"
        return f"[{self.edges[code]:f}, {self.edges[code + 1]:f}{end}"

    @cached_property
    def _labels(self) -> dict[str, int]:
        return {self.value(code): code for code in range(self.declared)}

    @property
    def _edge_list(self) -> str:
        edges = self.edges if len(self.edges) <= _MAX_SHOWN else (*self.edges[: _MAX_SHOWN // 2], None, self.edges[-1])
        return ", ".join("…" if edge is None else f"{edge:f}" for edge in edges)

    def find(self, text: str) -> int:
        return self._labels.get(text, OUTSIDE)

    def hint(self, text: str) -> str:
        return nearest(text, self._labels)

    def _ends(self, low: str, high: str) -> tuple[int, int]:
        places = []
        for end in (low, high):
            number = number_of(end)
            place = bisect_left(self.edges, number)
            if place == len(self.edges) or self.edges[place] != number:
                raise WorkloadError(f"range end {end} cuts through a bin; use one of the edges {self._edge_list}")
            places.append(place)
        return places[0], places[1] - 1

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        # A cell's values run from its low edge up to its high edge. Its comparison is decided if it holds for every
        # value or for none.
        number = number_of(literal)
        low, high = self.edges[:-1], self.edges[1:]
        above = [lower > number for lower in low]
        some_at_least = [upper > number for upper in high]
        some_at_least[-1] |= self.closed and high[-1] == number
        if operator in ("=", "<>"):
            every, some = [False] * len(low), [a and not b for a, b in zip(some_at_least, above, strict=True)]
        elif operator in (">=", "<"):
            every, some = [lower >= number for lower in low], some_at_least
        else:
            every, some = above, [upper > number for upper in high]
        if every != some:
            raise WorkloadError(f"'{operator} {literal}' cuts through a bin; bins can be cut only at {self._edge_list}")
        return np.array(every) if operator in (">=", ">", "=") else ~np.array(every)

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        valid, floor, exact = floors(self._plain(texts), self._decimals, point=True)
        codes = np.searchsorted(self._scaled, floor, side="right") - 1
        if self.closed:
            codes = np.where((floor == self._scaled[-1]) & exact, self.declared - 1, codes)
        return np.where(valid & (codes >= 0) & (codes < self.declared), codes, OUTSIDE).astype(np.int64)


def _plain(edge: Decimal) -> str:
    """An edge as people write it: 10, not 1E+1."""
    return f"{edge:f}" if abs(edge.adjusted()) < 30 else str(edge)


def _edge(edge: object) -> Decimal:
    try:
        text = text_of(edge)
    except WorkloadError as error:
        raise SchemaError(f"edge: {error}") from None
    if text.lstrip("+-").lower() in ("inf", "infinity", "nan", "snan"):
        raise SchemaError(
            f"edge {shown(edge)}: expected a finite number; "
            f"use {example('other', True)} for values beyond the last edge"
        )
    try:
        number = decimal(text)
    except NumberError as error:
        raise SchemaError(f"edge {shown(edge)}: expected a decimal number, such as 1000 or 0.5; {error}") from None
    if not DECIMAL.fullmatch(text.encode()):  # data cannot hold it either
        raise SchemaError(f"edge {shown(edge)}: expected a decimal number, such as 1000 or 0.5")
    return number.normalize(EXACT) if number else Decimal(0)
