"""Listed values, integers and booleans, and how a user's list or range becomes one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import SchemaError, WorkloadError, is_integer, nearest
from hdmm.numbers import shown
from hdmm.schema.domain import (
    COMPARE,
    EXACT,
    OUTSIDE,
    Codes,
    Comparison,
    Domain,
    Missing,
    check_name,
    number_of,
    text_of,
    writable,
)
from hdmm.schema.levels import Groups, read_levels
from hdmm.schema.numerals import Numeric
from hdmm.schema.spelling import Aliases, Labels, read_aliases, read_labels
from hdmm.schema.text import DECIMAL, floors
from hdmm.syntax import either, given

_MAX_LISTED = 1 << 22
"""Values that are listed one by one; each takes some hundred bytes."""
_PLAIN_INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0", re.ASCII)
_TRUE = (b"true", b"t", b"yes", b"1")
_FALSE = (b"false", b"f", b"no", b"0")


@final
@dataclass(frozen=True)
class Listed(Domain):
    """Values listed one by one, in the order that ranges and prefixes follow. They match by their exact text.

    Arguments:
        values: The values, in order.
        ignore_case: Match texts in any case, by Unicode's rules.
        aliases: Other texts that mean a value, such as ``{"Male": ["M", "man"]}``.
        labels: What tables show for a value, such as ``{"1": "Male", "2": "Female"}``.
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields; a list of texts, such as ``["NA"]``, counts these as well.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    values: tuple[str, ...]
    ignore_case: bool
    aliases: Mapping[str, tuple[str, ...]]
    value_labels: Mapping[str, str]
    _codes: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _label_codes: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        values: Iterable[object],
        *,
        ignore_case: bool = False,
        aliases: Aliases | None = None,
        labels: Labels | None = None,
        other: bool = False,
        missing: Missing = False,
        levels: Groups | None = None,
    ) -> None:
        entries = tuple(islice(values, _MAX_LISTED + 1))
        if len(entries) > _MAX_LISTED:
            raise SchemaError(f"values: more than {_MAX_LISTED:,} are listed; declare a range of integers, or bins")
        texts = tuple(_listed(value) for value in entries)
        if not texts:
            raise SchemaError("values=[]: an attribute needs at least one value; list them, for example ['F', 'M']")
        seen: set[str] = set()
        for text in texts:
            if text in seen:
                raise SchemaError(f"value {shown(text)} is listed twice; list each value once")
            if any(mark in text for mark in "\n\r\0") or not text or not writable(text):
                raise SchemaError(f"value {shown(text)} cannot be listed: a value is not empty and stays on one line")
            seen.add(text)
        fold = str.casefold if ignore_case else str
        codes: dict[str, int] = {}
        for code, text in enumerate(texts):
            first = codes.setdefault(fold(text), code)
            if first != code:
                raise SchemaError(
                    f"values {shown(texts[first])} and {shown(text)} are the same if case is ignored; list one of them"
                )
        spellings = read_aliases(texts, aliases, fold)
        seen.update(text for others in spellings.values() for text in others)
        for name, extra in (("other", other), ("missing", missing is not False)):
            if extra and name in seen:
                raise SchemaError(f"value {name!r} is both listed and the name of an extra cell; rename one")
        for value, others in spellings.items():
            codes.update((fold(text), codes[fold(value)]) for text in others)
        self._set(values=texts, ignore_case=ignore_case, aliases=spellings, _codes=codes, _label_codes={})
        self._set_cells(other, missing)
        shown_labels = read_labels(self, labels, fold)
        label_codes = {fold(label): codes[fold(value)] for value, label in shown_labels.items()}
        self._set(value_labels=shown_labels, _label_codes=label_codes)
        self._set(levels=read_levels(self, levels))

    @property
    def declared(self) -> int:
        return len(self.values)

    def value(self, code: int) -> str:
        return self.values[code]

    def label(self, code: int) -> str:
        return self.value_labels.get(self.values[code], self.values[code])

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        return COMPARE[operator](np.arange(self.declared), self.code(literal))

    def hint(self, text: str) -> str:
        return nearest(text, (*self.values, *self.value_labels.values()))

    def find(self, text: str) -> int:
        folded = self._fold(text)
        return self._codes.get(folded, self._label_codes.get(folded, OUTSIDE))

    @property
    def spellings(self) -> Mapping[str, int] | None:
        """All texts of declared values with their codes; None if case is ignored, so that there are many more."""
        return None if self.ignore_case else self._codes

    def _fold(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        # No value holds a surrogate, so bytes that are not UTF-8 are none.
        codes = (self._codes.get(self._fold(text.decode(errors="surrogateescape")), OUTSIDE) for text in texts)
        return np.fromiter(codes, np.int64, len(texts))

    @cached_property
    def _absent_texts(self) -> frozenset[bytes]:
        return frozenset(self._fold(text).encode() for text in ("", *self.missing_texts))

    def _absent(self, text: bytes) -> bool:
        if self.ignore_case:
            text = self._fold(text.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        return text in self._absent_texts


@final
@dataclass(frozen=True)
class Integers(Numeric):
    """The integers from ``min`` to ``max``, both included.

    Arguments:
        min: The least value.
        max: The largest value.
        decimals: Read decimals whose value is whole as well, such as 45.0.
        thousands: What separates groups of three digits, such as "," in 1,234.
        point: The decimal point, if it is not a point; with ``decimals``.
        currency: A sign that may stand before or after the number, such as "$".
        labels: What tables show for a value, such as ``{"1": "Male", "2": "Female"}``.
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields; a list of texts, such as ``["NA", "-9"]``, counts these as well.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    min: int
    max: int
    decimals: bool
    value_labels: Mapping[str, str]
    _label_codes: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        min: int,
        max: int,
        *,
        decimals: bool = False,
        thousands: str | None = None,
        point: str | None = None,
        currency: str | None = None,
        labels: Labels | None = None,
        other: bool = False,
        missing: Missing = False,
        levels: Groups | None = None,
    ) -> None:
        for name, bound in (("min", min), ("max", max)):
            if not is_integer(bound) or abs(bound) >= 1 << 60:
                raise SchemaError(
                    f"{given(name, shown(bound))}: expected an integer below 2**60, for example "
                    + either(python="Integers(min=0, max=114)", spec="{min: 0, max: 114}")
                )
        if min > max:
            raise SchemaError(
                f"{given('min', str(min))}, {given('max', str(max))}: the domain is empty; min must not exceed max"
            )
        self._set(min=min, max=max, decimals=decimals, _label_codes={})
        self._set_numerals(thousands, point, currency, decimals=decimals)
        self._set_cells(other, missing)
        shown_labels = read_labels(self, labels, str)
        for value, label in shown_labels.items():
            if DECIMAL.fullmatch(label.encode()) and Decimal(label) != int(value):
                raise SchemaError(f"label {label!r} of {value}: is another number; choose a text, such as '{value}: …'")
        label_codes = {label: int(value) - min for value, label in shown_labels.items()}
        self._set(value_labels=shown_labels, _label_codes=label_codes)
        self._set(levels=read_levels(self, levels))

    @property
    def declared(self) -> int:
        return self.max - self.min + 1

    def value(self, code: int) -> int:
        return self.min + code

    def label(self, code: int) -> int | str:
        if not self.value_labels:
            return self.value(code)
        return self.value_labels.get(str(self.value(code)), str(self.value(code)))

    def find(self, text: str) -> int:
        if _PLAIN_INTEGER.fullmatch(text) and self.min <= int(text) <= self.max:  # arrays of one text are slow
            return int(text) - self.min
        number = self._numbers([text.encode(errors="surrogatepass")])[0]
        return int(number) if number != OUTSIDE else self._label_codes.get(text, OUTSIDE)

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        # Compared as integers: x < 4.5 is x < 5, x <= 4.5 is x <= 4, x = 4.5 is never.
        text = text_of(literal)
        number = Decimal(self.value(self._label_codes[text])) if text in self._label_codes else number_of(literal)
        below = int(number.to_integral_value(ROUND_FLOOR, EXACT))
        if number != below and operator in ("=", "<>"):
            return np.full(self.declared, operator == "<>")
        if number != below:
            operator = "<=" if operator in ("<", "<=") else ">"
        first = min(max(below - self.min, 0), self.declared)  # the cells before it are below the number
        last = min(max(below - self.min + 1, 0), self.declared)  # those from here on are above it
        if operator in ("=", "<>"):
            cells = np.full(self.declared, operator == "<>")
            cells[first:last] ^= True
            return cells
        cells = np.full(self.declared, operator in (">", ">="))
        cells[: first if operator in ("<", ">=") else last] ^= True
        return cells

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        return self._numbers(self._plain(texts))

    def _numbers(self, texts: Sequence[bytes]) -> Codes:
        """The codes of integers in plain texts."""
        valid, number, whole = floors(texts, 0, point=self.decimals)
        return np.where(valid & whole & (number >= self.min) & (number <= self.max), number - self.min, OUTSIDE)

    def hint(self, text: str) -> str:
        return f", which holds the integers {self.min} to {self.max}"


@final
@dataclass(frozen=True)
class Boolean(Domain):
    """False and true, in that order; read from true/false, t/f, yes/no, 1/0 in any case.

    Arguments:
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields; a list of texts, such as ``["NA"]``, counts these as well.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    def __init__(self, *, other: bool = False, missing: Missing = False, levels: Groups | None = None) -> None:
        self._set_cells(other, missing)
        self._set(levels=read_levels(self, levels))

    @property
    def declared(self) -> int:
        return 2

    def value(self, code: int) -> bool:
        return bool(code)

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        if operator not in ("=", "<>"):
            raise WorkloadError(f"'{operator}' does not order true and false; write the attribute alone, or = or <>")
        return COMPARE[operator](np.arange(2), self.code(literal))

    def hint(self, text: str) -> str:
        return nearest(text, ("true", "false"))

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        lower = [text.lower() for text in texts]
        codes = ((text in _TRUE) - (text not in _TRUE and text not in _FALSE) for text in lower)
        return np.fromiter(codes, np.int64, len(texts))


def _listed(value: object) -> str:
    try:
        return text_of(value)
    except WorkloadError as error:
        raise SchemaError(str(error)) from None


def named_domain(kind: str, name: str, declared: object) -> Domain:
    """The domain of an attribute or a part; the message of an error begins with its name."""
    check_name(kind, name)
    try:
        return as_domain(declared)
    except SchemaError as error:
        raise SchemaError(f"{kind} {name!r}: {error}") from None


def as_domain(declared: object) -> Domain:
    """The domain that a user means by a list, a range or a domain."""
    if isinstance(declared, Domain):
        return declared
    if isinstance(declared, range):
        if declared.step != 1 or declared.start >= declared.stop:
            raise SchemaError(f"{shown(declared)}: expected a non-empty range with step 1, for example range(115)")
        return Integers(declared.start, declared.stop - 1)
    if isinstance(declared, (list, tuple)):
        if any(isinstance(value, bool) for value in declared):
            if list(declared) != [False, True]:
                raise SchemaError(f"{shown(declared)}: write booleans as [False, True]")
            return Boolean()
        if any(not isinstance(value, (str, int)) for value in declared):
            raise SchemaError(f"{shown(declared)}: listed values are texts or integers; use Bins for other numbers")
        return Listed(declared)
    kinds = "Listed, Integers, Bins, Boolean, Dates, Times, Merged"
    raise SchemaError(f"{shown(declared)}: expected a list of values, a range of integers, or {kinds}")
