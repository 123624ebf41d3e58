"""Predicate sets that follow the domain's order: prefixes and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm import matrix
from hdmm.errors import WorkloadError, is_integer
from hdmm.matrix import Matrix
from hdmm.numbers import shown
from hdmm.schema import Bins, Domain
from hdmm.syntax import either, given
from hdmm.workload.cells import check_cells
from hdmm.workload.predicates import Predicates, check_rows, value_text


@final
@dataclass(frozen=True)
class Prefix(Predicates):
    """Everything up to each value, in the domain's order."""

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return _declared(matrix.Prefix(domain.declared), name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        if isinstance(domain, Bins):
            return [f"{_end(domain, code)} {domain.edges[code + 1]:f}" for code in range(domain.declared)]
        return [f"<= {high}" for high in domain.ends(np.arange(domain.declared))[1]]


@final
@dataclass(frozen=True)
class AllRange(Predicates):
    """Every range of values, in the domain's order."""

    def matrix(self, name: str, domain: Domain) -> Matrix:
        return _declared(matrix.AllRange(domain.declared), name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        lows, highs = np.triu_indices(domain.declared)
        return _range_labels(domain, lows, highs)


@final
@dataclass(frozen=True)
class Width(Predicates):
    """Every range of ``width`` neighbouring values."""

    width: int

    def matrix(self, name: str, domain: Domain) -> Matrix:
        if not is_integer(self.width) or not 1 <= self.width <= domain.declared:
            raise WorkloadError(
                f"{given('width', shown(self.width))}: expected an integer from 1 to {domain.declared}, the size of "
                f"{name!r}"
            )
        return _declared(matrix.Width(domain.declared, self.width), name, domain)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        lows = np.arange(domain.declared - self.width + 1)
        return _range_labels(domain, lows, lows + self.width - 1)


@final
@dataclass(frozen=True)
class Ranges(Predicates):
    """The given ranges, both ends included; for bins, from edge to edge."""

    ranges: tuple[tuple[str, str], ...]

    def __init__(self, ranges: Iterable[Sequence[Any]]) -> None:
        pairs = list(ranges)
        if not pairs or any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
            pairs_of = either(python="Ranges([(0, 17), (18, 64)])", spec="ranges: [[0, 17], [18, 64]]")
            raise WorkloadError(f"{given('ranges', shown(pairs))}: expected pairs, for example {pairs_of}")
        object.__setattr__(self, "ranges", tuple((value_text(low), value_text(high)) for low, high in pairs))

    def matrix(self, name: str, domain: Domain) -> Matrix:
        check_rows(self.written(domain.size), name, domain)
        spans = np.array(self._spans(domain))
        return matrix.sums_over(spans[:, 0], spans[:, 1], domain.size)

    def labels(self, name: str, domain: Domain) -> list[Any]:
        spans = np.array(self._spans(domain))
        return _range_labels(domain, spans[:, 0], spans[:, 1])

    def written(self, cells: int) -> int:
        return 0 if matrix.many_cells(cells) else len(self.ranges)

    def _spans(self, domain: Domain) -> list[tuple[int, int]]:
        return [domain.span(low, high) for low, high in self.ranges]


def _declared(inner: Matrix, name: str, domain: Domain) -> Matrix:
    """Extend over the cells "other" and "missing", which are in no prefix or range."""
    if domain.size == domain.declared:
        return inner
    check_cells(name, domain)
    return matrix.Select(inner, np.arange(domain.declared), domain.size)


def _end(domain: Bins, code: int) -> str:
    return "<=" if domain.closed and code == domain.declared - 1 else "<"


def _range_labels(domain: Domain, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> list[str]:
    spans = zip(lows.tolist(), highs.tolist(), strict=True)
    if isinstance(domain, Bins):
        edges = [f"{edge:f}" for edge in domain.edges]
        close = ["]" if _end(domain, code) == "<=" else ")" for code in range(domain.declared)]
        return [f"[{edges[low]}, {edges[high + 1]}{close[high]}" for low, high in spans]
    codes, places = np.unique(np.concatenate([lows, highs]), return_inverse=True)
    begin, end = domain.ends(codes)
    texts = zip(spans, places[: len(lows)].tolist(), places[len(lows) :].tolist(), strict=True)
    return [
        str(domain.label(low)) if low == high else f"{begin[first]}..{end[last]}" for (low, high), first, last in texts
    ]
