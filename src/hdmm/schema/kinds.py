"""The kinds of attribute: each a finite, ordered, declared domain that maps every text to a cell or to "outside".

A domain has its declared cells in order, then optionally the cell "other" (any text that is no declared value) and the
cell "missing" (an empty field). Codes are positions in that order; −1 is "outside".
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import SchemaError, WorkloadError, nearest
from hdmm.schema.text import BLANKS, floors

Comparison = Literal["=", "<>", "<", "<=", ">", ">="]
Codes = NDArray[np.int64]
OUTSIDE = -1

_BLANKS = BLANKS.decode()
_EXACT = Context(prec=5000, Emax=10**6, Emin=-(10**6), traps=[])
_TRUE = (b"true", b"t", b"yes", b"1")
_FALSE = (b"false", b"f", b"no", b"0")


@dataclass(frozen=True, kw_only=True)
class Domain(ABC):
    """A finite, ordered, declared set of values, with optional cells for other and for missing values."""

    other: bool = False
    missing: bool = False

    @property
    @abstractmethod
    def declared(self) -> int:
        """How many cells are declared values, before "other" and "missing"."""

    @abstractmethod
    def value(self, code: int) -> Any:
        """The declared value of a cell, as a label: text, an integer or a boolean."""

    @abstractmethod
    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        """Which declared cells satisfy ``attribute operator literal``; refuse what no cell can decide."""

    @abstractmethod
    def _encode(self, texts: Sequence[bytes]) -> Codes:
        """Codes of trimmed texts among the declared values, −1 elsewhere."""

    @property
    def size(self) -> int:
        """How many cells there are in all."""
        return self.declared + self.other + self.missing

    def labels(self) -> list[Any]:
        """The label of every cell: the value, or its text where "other" or "missing" stand beside it."""
        values = [self.value(code) for code in range(self.declared)]
        extra = ["other"] * self.other + ["missing"] * self.missing
        return [str(value) for value in values] + extra if extra else values

    def encode(self, texts: Sequence[bytes]) -> Codes:
        """Map every text to its cell, or to −1: total, and each text by itself."""
        if not len(texts):
            return np.empty(0, np.int64)
        trimmed = [text.strip(BLANKS) for text in texts]
        codes = self._encode(trimmed)
        if self.other:
            codes = np.where(codes == OUTSIDE, self.declared, codes)
        empty = np.fromiter((not text for text in trimmed), bool, len(trimmed))
        if self.missing and empty.any():
            codes = np.where(empty & ((codes == OUTSIDE) | (codes >= self.declared)), self.size - 1, codes)
        return codes

    @abstractmethod
    def _find(self, text: str) -> int:
        """The code of a declared value's text, or −1."""

    @abstractmethod
    def _ends(self, low: str, high: str) -> tuple[int, int]:
        """First and last code of a range, not yet checked for order."""

    def code(self, value: object) -> int:
        """The code of one declared value, as a user writes it; refuse anything else with the nearest one."""
        text = str(value).strip(_BLANKS)
        code = self._find(text)
        if code == OUTSIDE:
            known = [str(self.value(code)) for code in range(min(self.declared, 1000))]
            raise WorkloadError(f"value {text!r} is not in the domain{nearest(text, known)}")
        return code

    def span(self, low: object, high: object) -> tuple[int, int]:
        """First and last code of a range: both ends included, between two edges where the domain is binned."""
        first, last = self._ends(str(low), str(high))
        if first > last:
            raise WorkloadError(f"range ({low}, {high}) is empty: its low end must come before its high end")
        return first, last


_COMPARE = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@final
@dataclass(frozen=True)
class Listed(Domain):
    """Values listed one by one, in the order that ranges and prefixes follow. They match by their exact text."""

    values: tuple[str, ...]
    _codes: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __init__(self, values: Iterable[object], *, other: bool = False, missing: bool = False) -> None:
        texts = tuple(str(value).strip(_BLANKS) for value in values)
        if not texts:
            raise SchemaError("values=[]: an attribute needs at least one value; list them, for example ['F', 'M']")
        seen: set[str] = set()
        for text in texts:
            if text in seen:
                raise SchemaError(f"value {text!r} is listed twice; list each value once")
            if any(mark in text for mark in "\n\r\0") or not text or not writable(text):
                raise SchemaError(f"value {text!r} cannot be listed: a value is not empty and stays on one line")
            seen.add(text)
        reserved = seen & ({"other"} if other else set()) | seen & ({"missing"} if missing else set())
        if reserved:
            raise SchemaError(f"value {reserved.pop()!r} is both listed and the name of an extra cell; rename one")
        object.__setattr__(self, "values", texts)
        object.__setattr__(self, "other", other)
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "_codes", {text.encode(): code for code, text in enumerate(texts)})

    @property
    def declared(self) -> int:
        return len(self.values)

    def value(self, code: int) -> str:
        return self.values[code]

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        return _COMPARE[operator](np.arange(self.declared), self.code(literal))

    def _find(self, text: str) -> int:
        return self._codes.get(text.encode(errors="surrogatepass"), OUTSIDE)

    def _ends(self, low: str, high: str) -> tuple[int, int]:
        return self.code(low), self.code(high)

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        return np.fromiter((self._codes.get(text, OUTSIDE) for text in texts), np.int64, len(texts))


@final
@dataclass(frozen=True)
class Integers(Domain):
    """The integers from ``min`` to ``max``, both included."""

    min: int
    max: int

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            bound = getattr(self, name)
            if isinstance(bound, bool) or not isinstance(bound, int) or abs(bound) >= 1 << 60:
                raise SchemaError(f"{name}={bound!r}: expected an integer, for example Integers(min=0, max=114)")
        if self.min > self.max:
            raise SchemaError(f"min={self.min}, max={self.max}: the domain is empty; min must not exceed max")

    @property
    def declared(self) -> int:
        return self.max - self.min + 1

    def value(self, code: int) -> int:
        return self.min + code

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        # Compared as integers: x < 4.5 is x < 5, x <= 4.5 is x <= 4, x = 4.5 is never.
        number = _number(literal)
        below = int(number.to_integral_value(ROUND_FLOOR, _EXACT))
        cells = np.arange(self.declared) + self.min
        if number == below:
            return _COMPARE[operator](cells, below)
        split = {"<": cells <= below, "<=": cells <= below, ">": cells > below, ">=": cells > below}
        return split[operator] if operator in split else np.full(len(cells), operator == "<>")

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        valid, number, _ = floors(texts, 0, point=False)
        return np.where(valid & (number >= self.min) & (number <= self.max), number - self.min, OUTSIDE)

    def _find(self, text: str) -> int:
        return int(self._encode([text.encode(errors="surrogatepass")])[0])

    def _ends(self, low: str, high: str) -> tuple[int, int]:
        return self.code(low), self.code(high)


@final
@dataclass(frozen=True)
class Boolean(Domain):
    """False and true, in that order; read from true/false, t/f, yes/no, 1/0 in any case."""

    @property
    def declared(self) -> int:
        return 2

    def value(self, code: int) -> bool:
        return bool(code)

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        if operator not in ("=", "<>"):
            raise WorkloadError(f"'{operator}' does not order true and false; write the attribute alone, or = or <>")
        return _COMPARE[operator](np.arange(2), self.code(literal))

    def _find(self, text: str) -> int:
        return int(self._encode([text.encode(errors="surrogatepass")])[0])

    def _ends(self, low: str, high: str) -> tuple[int, int]:
        return self.code(low), self.code(high)

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        lower = [text.lower() for text in texts]
        codes = ((text in _TRUE) - (text not in _TRUE and text not in _FALSE) for text in lower)
        return np.fromiter(codes, np.int64, len(texts))


@final
@dataclass(frozen=True)
class Bins(Domain):
    """Intervals between edges, each closed below and open above; ``closed=True`` closes the last one above too."""

    edges: tuple[Decimal, ...]
    closed: bool = False
    _decimals: int = field(init=False, repr=False, compare=False)
    _scaled: NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __init__(
        self, edges: Iterable[object], *, closed: bool = False, other: bool = False, missing: bool = False
    ) -> None:
        numbers = tuple(_edge(edge) for edge in edges)
        if len(numbers) < 2:
            raise SchemaError("bins need at least two edges, for example Bins([0, 10000, 50000])")
        for low, high in pairwise(numbers):
            if not low < high:
                raise SchemaError(f"edges {low}, {high}: edges must increase")
        decimals = max(max(-int(number.as_tuple().exponent), 0) for number in numbers)
        if decimals > 12 or max(number.copy_abs() for number in numbers) >= 10**18 // 10**decimals:
            raise SchemaError("edges: at most 12 decimals and 18 digits in all; use rounder edges")
        object.__setattr__(self, "edges", numbers)
        object.__setattr__(self, "closed", closed)
        object.__setattr__(self, "other", other)
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "_decimals", decimals)
        object.__setattr__(
            self, "_scaled", np.array([int(number.scaleb(decimals, _EXACT)) for number in numbers], np.int64)
        )

    @property
    def declared(self) -> int:
        return len(self.edges) - 1

    def value(self, code: int) -> str:
        end = "]" if self.closed and code == self.declared - 1 else ")"
        return f"[{self.edges[code]:f}, {self.edges[code + 1]:f}{end}"

    def _find(self, text: str) -> int:
        return next((code for code in range(self.declared) if text == self.value(code)), OUTSIDE)

    def _ends(self, low: str, high: str) -> tuple[int, int]:
        places = []
        for end in (low, high):
            number = _number(end)
            if number not in self.edges:
                edges = ", ".join(f"{edge:f}" for edge in self.edges)
                raise WorkloadError(f"range end {end} cuts through a bin; use one of the edges {edges}")
            places.append(self.edges.index(number))
        return places[0], places[1] - 1

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        number = _number(literal)
        low, high = self.edges[:-1], self.edges[1:]
        last = [self.closed and code == self.declared - 1 for code in range(self.declared)]
        reached = [upper > number or (upper == number and end) for upper, end in zip(high, last, strict=True)]
        at_least = [lower >= number for lower in low]
        above = [lower > number for lower in low]
        # A cell's values run from its low edge up to its high edge: undecided where the literal lies between them.
        some_at_least = reached
        some_above = [upper > number for upper in high]
        every, some = (at_least, some_at_least) if operator in (">=", "<") else (above, some_above)
        if operator in ("=", "<>"):
            every, some = [False] * len(low), [a and not b for a, b in zip(reached, above, strict=True)]
        if every != some:
            edges = ", ".join(f"{edge:f}" for edge in self.edges)
            raise WorkloadError(f"'{operator} {literal}' cuts through a bin; bins can be cut only at {edges}")
        return np.array(every) if operator in (">=", ">", "=") else ~np.array(every)

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        valid, floor, exact = floors(texts, self._decimals, point=True)
        codes = np.searchsorted(self._scaled, floor, side="right") - 1
        if self.closed:
            codes = np.where((floor == self._scaled[-1]) & exact, self.declared - 1, codes)
        return np.where(valid & (codes >= 0) & (codes < self.declared), codes, OUTSIDE).astype(np.int64)


def writable(text: str) -> bool:
    """Whether a text can stand in a file at all: lone surrogates cannot."""
    return not any("\ud800" <= mark <= "\udfff" for mark in text)


def as_domain(given: object) -> Domain:
    """The domain that a user means by a list, a range or a domain."""
    if isinstance(given, Domain):
        return given
    if isinstance(given, range):
        if given.step != 1 or not len(given):
            raise SchemaError(f"{given!r}: expected a non-empty range with step 1, for example range(115)")
        return Integers(given.start, given.stop - 1)
    if isinstance(given, (list, tuple)):
        if any(isinstance(value, bool) for value in given):
            if list(given) != [False, True]:
                raise SchemaError(f"{given!r}: write booleans as [False, True]")
            return Boolean()
        if any(not isinstance(value, (str, int)) for value in given):
            raise SchemaError(f"{given!r}: listed values are texts or integers; use Bins for other numbers")
        return Listed(given)
    raise SchemaError(f"{given!r}: expected a list of values, a range of integers, or Listed, Integers, Bins, Boolean")


_PLAIN = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def _number(text: str) -> Decimal:
    if not _PLAIN.fullmatch(text.strip()):
        raise WorkloadError(f"{text!r} is not a number")
    return Decimal(text.strip())


def _edge(edge: object) -> Decimal:
    try:
        number = Decimal(str(edge).strip())
    except InvalidOperation:
        raise SchemaError(f"edge {edge!r}: expected a decimal number") from None
    if not number.is_finite():
        raise SchemaError(f"edge {edge!r}: expected a finite number; use other=True for values beyond the last edge")
    return number.normalize(_EXACT) if number else Decimal(0)
