"""Listed values, integers and booleans, and how a user's list or range becomes one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR
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
    check_name,
    number_of,
    text_of,
    writable,
)
from hdmm.schema.levels import Groups, read_levels
from hdmm.schema.text import floors

_MAX_LISTED = 1 << 22
"""Values that are listed one by one; each takes some hundred bytes."""
_TRUE = (b"true", b"t", b"yes", b"1")
_FALSE = (b"false", b"f", b"no", b"0")


@final
@dataclass(frozen=True)
class Listed(Domain):
    """Values listed one by one, in the order that ranges and prefixes follow. They match by their exact text.

    Arguments:
        values: The values, in order.
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    values: tuple[str, ...]
    _codes: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self, values: Iterable[object], *, other: bool = False, missing: bool = False, levels: Groups | None = None
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
        for name, extra in (("other", other), ("missing", missing)):
            if extra and name in seen:
                raise SchemaError(f"value {name!r} is both listed and the name of an extra cell; rename one")
        codes = {text.encode(): code for code, text in enumerate(texts)}
        self._set(values=texts, other=other, missing=missing, _codes=codes)
        self._set(levels=read_levels(self, levels))

    @property
    def declared(self) -> int:
        return len(self.values)

    def value(self, code: int) -> str:
        return self.values[code]

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        return COMPARE[operator](np.arange(self.declared), self.code(literal))

    def hint(self, text: str) -> str:
        return nearest(text, self.values)

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        return np.fromiter((self._codes.get(text, OUTSIDE) for text in texts), np.int64, len(texts))


@final
@dataclass(frozen=True)
class Integers(Domain):
    """The integers from ``min`` to ``max``, both included.

    Arguments:
        min: The least value.
        max: The largest value.
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    min: int
    max: int

    def __init__(
        self, min: int, max: int, *, other: bool = False, missing: bool = False, levels: Groups | None = None
    ) -> None:
        for name, bound in (("min", min), ("max", max)):
            if not is_integer(bound) or abs(bound) >= 1 << 60:
                raise SchemaError(
                    f"{name}={shown(bound)}: expected an integer below 2**60, for example Integers(min=0, max=114)"
                )
        if min > max:
            raise SchemaError(f"min={min}, max={max}: the domain is empty; min must not exceed max")
        self._set(min=min, max=max, other=other, missing=missing)
        self._set(levels=read_levels(self, levels))

    @property
    def declared(self) -> int:
        return self.max - self.min + 1

    def value(self, code: int) -> int:
        return self.min + code

    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        # Compared as integers: x < 4.5 is x < 5, x <= 4.5 is x <= 4, x = 4.5 is never.
        number = number_of(literal)
        below = int(number.to_integral_value(ROUND_FLOOR, EXACT))
        cells = np.arange(self.declared) + self.min
        if number == below:
            return COMPARE[operator](cells, below)
        split = {"<": cells <= below, "<=": cells <= below, ">": cells > below, ">=": cells > below}
        return split[operator] if operator in split else np.full(len(cells), operator == "<>")

    def _encode(self, texts: Sequence[bytes]) -> Codes:
        valid, number, _ = floors(texts, 0, point=False)
        return np.where(valid & (number >= self.min) & (number <= self.max), number - self.min, OUTSIDE)

    def hint(self, text: str) -> str:
        return f", which holds the integers {self.min} to {self.max}"


@final
@dataclass(frozen=True)
class Boolean(Domain):
    """False and true, in that order; read from true/false, t/f, yes/no, 1/0 in any case.

    Arguments:
        other: Add a cell that counts all other values; without it, their records are dropped.
        missing: Add a cell that counts empty fields.
        levels: Named groups of values, such as ``{"age group": {"child": [(0, 17)], "adult": [(18, 64)]}}``.
    """

    def __init__(self, *, other: bool = False, missing: bool = False, levels: Groups | None = None) -> None:
        self._set(other=other, missing=missing)
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
