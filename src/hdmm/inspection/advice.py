"""What to write into the spec so that values outside a domain are read.

Every remedy is a change of the attribute's declaration, tried on the values that were found: it is proposed only if the
changed declaration reads some of them. So what is proposed works.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, final

from hdmm.data.findings import ColumnFindings
from hdmm.errors import InputError, closest
from hdmm.numbers import NumberError, decimal
from hdmm.schema import Bins, Boolean, Dates, Domain, Integers, Listed, Times
from hdmm.spec.schema import domain_data, read_domain

_MISSING = {
    *("na", "n/a", "#n/a", "n.a.", "<na>", "nan", "nat", "null", "(null)", "#null!", "none", "nil", "missing"),
    *("nd", "n.d.", "\\n", ".", "..", "?", "-", "--", "–", "—", "*", "-9", "-99", "-999", "-9999"),
}
"""Words and numbers that often stand for a missing value, in lower case."""
_CURRENCIES = ("$", "€", "£", "¥", "USD", "EUR", "GBP", "CHF")
_DATE_FORMATS = (
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y%m%d", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y"),
    *("%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%m/%d/%y", "%d.%m.%y", "%d/%m/%y"),
    *("%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S"),
    *("%Y%m%d%H%M%S", "%Y-%m", "%m/%Y", "%Y"),
)
_TIME_FORMATS = ("%H:%M", "%H:%M:%S", "%H.%M", "%H%M", "%I:%M %p", "%I %p", "%I:%M:%S %p", "%Hh%M", "%H")
_YES_NO = (("n", "y"), ("off", "on"), ("0.0", "1.0"), ("falsch", "wahr"), ("nein", "ja"), ("non", "oui"))

Texts = Sequence[tuple[bytes, int]]


@final
@dataclass(frozen=True)
class Remedy:
    """A change of a declaration, and the values that it makes readable."""

    change: dict[str, Any]
    texts: Texts
    reason: str


@final
@dataclass(frozen=True)
class Advice:
    """What to write for one column, and which of the values that were looked at remain outside."""

    remedies: tuple[Remedy, ...]
    declaration: Any
    """The whole declaration, as plain data."""
    left: Texts


def advise(domain: Domain, findings: ColumnFindings) -> Advice:
    """Remedies for the most frequent values outside a domain, tried one after the other."""
    data = domain_data(domain)
    left: Texts = findings.texts
    remedies: list[Remedy] = []
    for candidate, reason in _candidates(domain, left):
        if not left:
            break
        change = _merged(data, candidate)
        rescued = _read(data | change, left) if change else []
        if rescued:
            data |= change
            left = [item for item in left if item not in rescued]
            remedies.append(Remedy(change, rescued, reason))
    return Advice(tuple(remedies), data, left)


def _candidates(domain: Domain, texts: Texts) -> Iterator[tuple[dict[str, Any], str]]:
    """Changes of a declaration, the most specific first, each with the reason why it may be right."""
    words = [text.decode(errors="replace") for text, _ in texts]
    if any(not word for word in words):
        yield {"missing": True}, "fields are empty"
    absent = [word for word in words if word.casefold() in _MISSING and not _is_negative(word)]
    if absent:
        yield {"missing": absent}, "these often stand for a missing value"
    yield from _by_kind(domain, words)
    codes = [word for word in words if word.casefold() in _MISSING and _is_negative(word)]
    if codes:
        yield {"missing": codes}, "these often stand for a missing value, if the code book says so"
    yield {"other": True}, "these are not among the declared values; a cell counts them together"


def _by_kind(domain: Domain, words: Sequence[str]) -> Iterator[tuple[dict[str, Any], str]]:
    match domain:
        case Listed():
            yield {"ignore_case": True}, "these are declared values in another case"
            aliases = _aliases(domain, words)
            if aliases:
                yield {"aliases": aliases}, "these look like declared values, spelt differently"
            if all(value.lstrip("-").isdigit() for value in domain.values):
                padded = {value: [word for word in words if _same_number(word, value)] for value in domain.values}
                yield {"aliases": {value: same for value, same in padded.items() if same}}, "the same numbers"
        case Boolean():
            for false, true in _YES_NO:
                if any(word.casefold() in (false, true) for word in words):
                    yield (
                        {"values": [false, true], "boolean": None, "ignore_case": True},
                        "these are other words for false and true",
                    )
        case Integers() | Bins():
            yield from _numbers(domain)
        case Dates():
            for form in _DATE_FORMATS:
                yield {"format": form}, f"these are dates written as {form}"
        case Times():
            for form in _TIME_FORMATS:
                yield {"format": form}, f"these are times written as {form}"


def _numbers(domain: Domain) -> Iterator[tuple[dict[str, Any], str]]:
    """Ways to write numbers, the simplest first."""
    whole = isinstance(domain, Integers)
    if whole:
        yield {"decimals": True}, "these are integers, written with a fraction of zeros"
    for thousands, currency in product((None, ",", ".", "'", " "), (None, *_CURRENCIES)):
        if thousands is None and currency is None:
            continue
        change: dict[str, Any] = {} if thousands is None else {"thousands": thousands}
        change |= {} if currency is None else {"currency": currency}
        change |= {"point": ","} if thousands == "." else {}
        yield change, "these are numbers, written for people to read"
        if whole:
            yield change | {"decimals": True}, "these are numbers, written for people to read, with a fraction of zeros"
    if not whole:
        yield {"point": ","}, "these are numbers with a decimal comma"


def _aliases(domain: Listed, words: Sequence[str]) -> dict[str, list[str]]:
    """For words that differ from one declared value in case, blanks and punctuation, or by a letter: that value."""
    plain = {_plain(value): value for value in domain.values}
    aliases: dict[str, list[str]] = {}
    for word in words:
        near = plain.get(_plain(word)) or closest(word, domain.values)
        if near is not None and word and word.casefold() not in _MISSING and near != word:
            aliases.setdefault(near, []).append(word)
    return aliases


def _plain(text: str) -> str:
    return "".join(mark for mark in text.casefold() if mark.isalnum())


def _same_number(word: str, value: str) -> bool:
    try:
        return word != value and decimal(word) == decimal(value)
    except NumberError:
        return False


def _is_negative(word: str) -> bool:
    return word.startswith("-") and word[1:].isdigit()


def _merged(data: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A change on top of what is declared: missing texts and aliases are added, other keys only if they are new."""
    merged: dict[str, Any] = {}
    for key, value in change.items():
        before = data.get(key)
        if key == "missing" and isinstance(value, list):
            merged[key] = [*(before if isinstance(before, list) else []), *value]
        elif key == "aliases" and isinstance(before, dict):
            merged[key] = before | {name: [*before.get(name, []), *texts] for name, texts in value.items()}
        elif before is None or before != value:
            if key in ("thousands", "point", "currency", "format") and before is not None:
                return {}
            merged[key] = value
    return merged


def _read(data: dict[str, Any], texts: Texts) -> list[tuple[bytes, int]]:
    """The texts that a declaration reads; none if it is not valid."""
    declared = {key: value for key, value in data.items() if value is not None}
    try:
        domain = read_domain(declared, ())
    except InputError:
        return []
    codes = domain.encode([text for text, _ in texts])
    return [item for item, code in zip(texts, codes.tolist(), strict=True) if code >= 0]
