"""Domains, the base of every kind of attribute: finite, ordered, declared; they map every text to a cell or "outside".

A domain has its declared cells in order, then optionally the cell "other" (any text that is no declared value) and the
cell "missing" (an empty field). Codes are positions in that order; −1 is "outside". Levels of a domain are coarser
domains over the same cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import SchemaError, WorkloadError
from hdmm.numbers import NumberError, decimal, shown
from hdmm.schema.text import BLANKS, DECIMAL
from hdmm.syntax import given

if TYPE_CHECKING:
    from hdmm.schema.levels import Level

Comparison = Literal["=", "<>", "<", "<=", ">", ">="]
Codes = NDArray[np.int64]
Missing: TypeAlias = bool | Sequence[object]
"""Whether there is a cell for missing values, or the texts that count as missing, beside empty fields."""
OUTSIDE = -1

BLANK_TEXT = BLANKS.decode()
EXACT = Context(prec=5000, Emax=10**6, Emin=-(10**6), traps=[])
"""Decimal arithmetic that never rounds, whatever context the program has set."""

COMPARE = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, kw_only=True)
class Domain(ABC):
    """A finite, ordered, declared set of values, with optional cells for other and for missing values."""

    other: bool = False
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    """Texts that are counted in the cell "missing", as empty fields are."""
    levels: Mapping[str, Level] = field(init=False, repr=False)

    @property
    @abstractmethod
    def declared(self) -> int:
        """How many cells are declared values, before "other" and "missing"."""

    @abstractmethod
    def value(self, code: int) -> Any:
        """The declared value of a cell, as records hold it: text, an integer or a boolean."""

    @abstractmethod
    def compare(self, operator: Comparison, literal: str) -> NDArray[np.bool_]:
        """Which declared cells satisfy ``attribute operator literal``; refuse what no cell can decide."""

    @abstractmethod
    def hint(self, text: str) -> str:
        """What to write instead of a value that is not in the domain."""

    @abstractmethod
    def _encode(self, texts: Sequence[bytes]) -> Codes:
        """The codes of trimmed texts among the declared values, −1 for others."""

    @property
    def implied(self) -> tuple[str, ...]:
        """The levels that come by themselves: other attributes may have levels of these names. Default: none."""
        return ()

    @property
    def size(self) -> int:
        """How many cells there are in all."""
        return self.declared + self.other + self.missing

    def columns(self, name: str) -> Mapping[str, Domain]:
        """The columns that an attribute is read from, with the domain of each. Default: one of the same name."""
        return {name: self}

    def combine(self, codes: Sequence[NDArray[np.signedinteger]]) -> NDArray[np.signedinteger]:
        """The codes of records from their codes in each column; −1 if any of these is −1. Default: of one column."""
        (column,) = codes
        return column

    def label(self, code: int) -> Any:
        """What tables show for a declared cell. Default: its value."""
        return self.value(code)

    def labels(self) -> list[Any]:
        """The label of every cell: all as texts if there are "other" or "missing"."""
        return self._with_extra([self.label(code) for code in range(self.declared)])

    def labels_of(self, cells: Codes) -> list[Any]:
        """The labels of some cells, as :meth:`labels` has them."""
        extra = [*["other"] * self.other, *["missing"] * self.missing]
        labels = [self.label(cell) if cell < self.declared else extra[cell - self.declared] for cell in cells.tolist()]
        return [str(label) for label in labels] if extra else labels

    def ends(self, codes: Codes) -> tuple[list[str], list[str]]:
        """The texts with which the label of a range begins and ends at some declared cells. Default: their labels."""
        labels = [str(self.label(code)) for code in codes.tolist()]
        return labels, labels

    def records(self) -> list[Any]:
        """What records that hdmm makes up hold for every cell. Default: the values."""
        return self._with_extra([self.value(code) for code in range(self.declared)])

    def _with_extra(self, cells: list[Any]) -> list[Any]:
        """Declared cells, and those for other and missing values: then all as texts."""
        extra = ["other"] * self.other + ["missing"] * self.missing
        return [str(cell) for cell in cells] + extra if extra else cells

    def encode(self, texts: Sequence[bytes]) -> Codes:
        """Map every text to its cell, or to −1; each text by itself, and none is refused."""
        if not len(texts):
            return np.empty(0, np.int64)
        trimmed = [text.strip(BLANKS) for text in texts]
        codes = self._encode(trimmed)
        outside = codes == OUTSIDE
        if self.other:
            codes = np.where(outside, self.declared, codes)
        if self.missing and outside.any():
            places = [place for place in np.flatnonzero(outside).tolist() if self._absent(trimmed[place])]
            codes[places] = self.size - 1
        return codes

    def number_text(self, number: str) -> str:
        """The text by which records write a number, from its plain decimal text. Default: the same."""
        return number

    @cached_property
    def _absent_texts(self) -> frozenset[bytes]:
        return frozenset(text.encode() for text in ("", *self.missing_texts))

    def _absent(self, text: bytes) -> bool:
        """Whether a text that is no value stands for a missing one. Default: if it is exactly one of the texts."""
        return text in self._absent_texts

    def find(self, text: str) -> int:
        """The code of a declared value's text, or −1. Default: as the same text in data."""
        return int(self._encode([text.encode(errors="surrogatepass")])[0])

    def _ends(self, low: str, high: str) -> tuple[int, int]:
        """First and last code of a range, not yet checked for order. Default: the codes of both values."""
        return self.code(low), self.code(high)

    def _set_cells(self, other: bool, missing: Missing) -> None:
        """Set the extra cells, once texts can be encoded: a text for missing values must not be a declared value."""
        texts = () if isinstance(missing, bool) else _missing_texts(missing)
        self._set(other=other, missing=missing is not False, missing_texts=texts)
        for text in texts:
            code = int(self._encode([text.encode()])[0])
            if code != OUTSIDE:
                raise SchemaError(
                    f"{given('missing', shown(text))}: is also the value {shown(self.value(code))}; "
                    "keep one of the two meanings"
                )

    def _set(self, **fields: object) -> None:
        """Set fields while the domain is built."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def code(self, value: object) -> int:
        """The code of one declared value, as a user writes it; refuse anything else with the nearest one."""
        text = text_of(value)
        code = self.find(text)
        if code == OUTSIDE:
            raise WorkloadError(f"value {shown(text)} is not in the domain{self.hint(text)}")
        return code

    def span(self, low: object, high: object) -> tuple[int, int]:
        """First and last code of a range: both ends included, or for bins between two edges."""
        first, last = self._ends(text_of(low), text_of(high))
        if first > last:
            raise WorkloadError(
                f"range ({text_of(low)}, {text_of(high)}) is empty: its low end must come before its high end"
            )
        return first, last


def text_of(value: object) -> str:
    """A value as the text that a domain knows it by, whether it came from Python or from a file."""
    try:
        return str(value).strip(BLANK_TEXT)
    except ValueError:  # an integer has more digits than Python prints
        raise WorkloadError(f"value {shown(value)} is too long; a value is a text or a short number") from None


def declared_text(kind: str, value: object) -> str:
    """A text that a schema declares, trimmed; refuse one that no field of a file can hold."""
    try:
        text = text_of(value)
    except WorkloadError as error:
        raise SchemaError(f"{kind}: {error}") from None
    if any(mark in text for mark in "\n\r\0") or not text or not writable(text):
        raise SchemaError(f"{kind} {shown(text)}: expected a text that is not empty and stays on one line")
    return text


def _missing_texts(missing: object) -> tuple[str, ...]:
    """The texts that a user declares for missing values."""
    if not isinstance(missing, (list, tuple)) or not missing:
        raise SchemaError(
            f"{given('missing', shown(missing))}: expected true, or a list of texts that mean a missing value, "
            "such as ['NA']"
        )
    texts: list[str] = []
    for value in missing:
        text = declared_text("missing", value)
        if text in texts:
            raise SchemaError(f"{given('missing', shown(text))}: is listed twice; list each text once")
        texts.append(text)
    return tuple(texts)


def writable(text: str) -> bool:
    """Whether a text can be written to a file: lone surrogates cannot."""
    return not any("\ud800" <= mark <= "\udfff" for mark in text)


def check_name(kind: str, name: object) -> None:
    """Refuse a name that an attribute, a part or a level cannot have."""
    text = name if isinstance(name, str) else ""
    if not text or text != text.strip() or not writable(text) or any(mark in text for mark in '\n\r\0"'):
        raise SchemaError(f"{kind} {name!r}: a name is a column's header: text on one line, without quotes")


def declared_once(kind: str, mapping: Mapping[str, object] | None, keywords: Mapping[str, object]) -> dict[str, object]:
    """What a mapping and keyword arguments declare together; refuse a name that is in both."""
    declared = dict(mapping or {})
    for name in keywords:
        if name in declared:
            raise SchemaError(f"{kind} {name!r} is declared twice; declare it once")
    return declared | dict(keywords)


def number_of(text: str) -> Decimal:
    """The number that a user wrote in a condition or as the end of a range."""
    try:
        number = decimal(text)
    except NumberError as error:
        raise WorkloadError(f"{shown(text)} is not a number that a value is compared with: {error}") from None
    if not DECIMAL.fullmatch(text.strip().encode()):  # data cannot hold it either
        raise WorkloadError(f"{shown(text)} is not a number")
    return number
