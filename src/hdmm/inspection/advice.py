"""What to write into the spec so that values outside a domain are read.

Every remedy is a change of the attribute's declaration, tried on the values that were found: it is proposed only if the
changed declaration reads some of them. So what is proposed works. Among changes that exclude each other, such as two
formats of dates, the one that reads most records is proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, final
from unicodedata import normalize

from hdmm.data.findings import ColumnFindings
from hdmm.errors import InputError
from hdmm.numbers import NumberError, decimal
from hdmm.schema import Bins, Boolean, Dates, Domain, Integers, Listed, Times
from hdmm.spec.schema import domain_data, read_domain

_MISSING = {
    *("na", "n/a", "#n/a", "n.a.", "<na>", "nan", "nat", "null", "(null)", "#null!", "none", "nil", "missing"),
    *("nd", "n.d.", "\\n", ".", "..", "?", "-", "--", "–", "—", "*", "-9", "-99", "-999", "-9999"),
}
"""Words and numbers that often stand for a missing value, in lower case."""
_CURRENCIES = ("$", "€", "£", "¥", "USD", "EUR", "GBP", "CHF")
_FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"thousands": ","},
    {"point": ","},
    {"thousands": ".", "point": ","},
    {"thousands": "'"},
    {"thousands": " "},
    {"thousands": "'", "point": ","},
    {"thousands": " ", "point": ","},
)
"""Ways to write a number; of `1,234`, read by two of them, the first is more frequent."""
_DATE_FORMATS = (
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y%m%d", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y"),
    *("%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%m/%d/%y", "%d.%m.%y", "%d/%m/%y"),
    *("%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S"),
    *("%Y%m%d%H%M%S", "%Y-%m", "%m/%Y", "%Y"),
)
_TIME_FORMATS = ("%H:%M", "%H:%M:%S", "%H.%M", "%H%M", "%I:%M %p", "%I %p", "%I:%M:%S %p", "%Hh%M", "%H")
_YES_NO = (("n", "y"), ("off", "on"), ("0.0", "1.0"), ("falsch", "wahr"), ("nein", "ja"), ("non", "oui"))

_COMPARED_WORDS = 100
"""So many of the most frequent words are compared with the declared values,"""
_COMPARED_VALUES = 1000
"""of these so many,"""
_LONGEST_WORD = 100
"""and no longer ones."""
_SHORTEST_WORD = 4
"""Letters of a word that may have a letter wrong: of a shorter one too much would change."""

Texts = Sequence[tuple[bytes, int]]
Candidate = tuple[dict[str, Any], str]
Candidates = Sequence[Candidate]


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
    regained: tuple[Remedy, ...] = ()
    """Remedies for values that count as other, although they look like declared or missing ones."""


def advise(domain: Domain, findings: ColumnFindings) -> Advice:
    """Remedies for the most frequent values outside a domain, or in its cell "other", tried one after the other."""
    data = domain_data(domain)
    inside = findings.inside_texts
    remedies, data, left = _remedies(domain, data, _outside(domain, findings.texts), inside)
    if not domain.other:
        return Advice(remedies, data, left)
    strict = {key: value for key, value in data.items() if key != "other"}
    texts = _outside(read_domain(strict, ()), findings.other_texts)
    regained, strict, _ = _remedies(domain, strict, texts, inside)
    return Advice(remedies, strict | {"other": True}, left, regained)


def _remedies(
    domain: Domain, data: dict[str, Any], left: Texts, inside: Texts
) -> tuple[tuple[Remedy, ...], dict[str, Any], Texts]:
    remedies: list[Remedy] = []
    for candidates in _candidates(domain, left):
        if not left:
            break
        remedy = _best(data, candidates, left, inside)
        if remedy is not None:
            data = data | remedy.change
            rescued = set(remedy.texts)
            left = [item for item in left if item not in rescued]
            remedies.append(remedy)
    return tuple(remedies), data, left


def _best(data: dict[str, Any], candidates: Candidates, texts: Texts, inside: Texts) -> Remedy | None:
    """Of changes that exclude each other, the one that reads most records; of equally good ones the first.

    What was read before must still be read, or at least most of it.
    """
    best: Remedy | None = None
    most = 0
    rivals: list[str] = []
    for candidate, reason in candidates:
        change = _merged(data, _only(candidate, texts))
        rescued = _read(data | change, texts) if change else []
        lost = _lost(data, data | change, inside) if rescued else []
        records = _records(rescued) - _records(lost)
        if records > most:
            remark = f"; but these are then read no longer, or as other values: {_listed(lost)}" if lost else ""
            best, most, rivals = Remedy(change, rescued, reason + remark), records, []
        elif best is not None and records == most and set(rescued) == set(best.texts) and "format" in change:
            rivals.append(change["format"])
    if best is None or not rivals:
        return best
    return replace(
        best, reason=f"{best.reason}, or as {' or '.join(rivals)}, which reads as many: find out which it is"
    )


def _lost(before: dict[str, Any], after: dict[str, Any], inside: Texts) -> Texts:
    """The texts that a changed declaration reads no longer, or as another value."""
    words = [text for text, _ in inside]
    old, new = (domain.encode(words).tolist() for domain in map(_declaration, (before, after)))
    return [item for item, one, other in zip(inside, old, new, strict=True) if one != other]


def _records(texts: Texts) -> int:
    return sum(count for _, count in texts)


def _listed(texts: Texts) -> str:
    shown = ", ".join(repr(text.decode(errors="replace")) for text, _ in texts[:3])
    return shown + (" and others" if len(texts) > 3 else "")


def _candidates(domain: Domain, texts: Texts) -> Iterator[Candidates]:
    """Changes of a declaration, the most specific first, each with the reason why it may be right.

    Those of one list exclude each other; the simplest comes first.
    """
    words = [text.decode(errors="replace") for text, _ in texts]
    if any(not word for word in words):
        yield [({"missing": True}, "fields are empty")]
    absent = [word for word in words if word.casefold() in _MISSING and not _is_negative(word)]
    if absent:
        yield [({"missing": absent}, "these often stand for a missing value")]
    yield from _by_kind(domain, words)
    codes = [word for word in words if word.casefold() in _MISSING and _is_negative(word)]
    if codes:
        yield [({"missing": codes}, "these often stand for a missing value, if the code book says so")]
    if not domain.other:
        yield [({"other": True}, "these are not among the declared values; a cell counts them together")]


def _by_kind(domain: Domain, words: Sequence[str]) -> Iterator[Candidates]:
    match domain:
        case Listed():
            yield [({"ignore_case": True}, "these are declared values in another case")]
            aliases = _aliases(domain, words)
            if aliases:
                yield [({"aliases": aliases}, "these look like declared values, spelt differently")]
            if all(value.lstrip("-").isdigit() for value in domain.values):
                padded = {value: [word for word in words if _same_number(word, value)] for value in domain.values}
                yield [({"aliases": {value: same for value, same in padded.items() if same}}, "the same numbers")]
        case Boolean():
            yield [
                (
                    {"values": [false, true], "boolean": None, "ignore_case": True},
                    "these are other words for false and true",
                )
                for false, true in _YES_NO
            ]
        case Integers() | Bins():
            yield list(_numbers(domain))
        case Dates():
            yield [({"format": form}, f"these are dates written as {form}") for form in _DATE_FORMATS]
        case Times():
            yield [({"format": form}, f"these are times written as {form}") for form in _TIME_FORMATS]


def _numbers(domain: Domain) -> Iterator[Candidate]:
    """Ways to write numbers, the simplest first."""
    whole = isinstance(domain, Integers)
    if whole:
        yield {"decimals": True}, "these are integers, written with a fraction of zeros"
    for currency, form in product((None, *_CURRENCIES), _FORMS):
        if currency is None and not form:
            continue
        change = form if currency is None else form | {"currency": currency}
        if not whole:
            comma = form == {"point": ","}
            yield change, f"these are numbers{' with a decimal comma' if comma else ', written for people to read'}"
            continue
        if "thousands" in form or (currency is not None and not form):
            yield {k: v for k, v in change.items() if k != "point"}, "these are numbers, written for people to read"
        fraction = "these are numbers, written for people to read, with a fraction of zeros"
        yield change | {"decimals": True}, fraction


def _aliases(domain: Listed, words: Sequence[str]) -> dict[str, list[str]]:
    """For words that differ from one declared value alone, in case, blanks, points and accents or by a letter: it."""
    plain: dict[str, list[str]] = {}
    for value in domain.values[:_COMPARED_VALUES]:
        plain.setdefault(_plain(value), []).append(value)
    aliases: dict[str, list[str]] = {}
    for word in words[:_COMPARED_WORDS]:
        if word and len(word) <= _LONGEST_WORD and word.casefold() not in _MISSING and word not in domain.values:
            near = _declared(word, plain)
            if near is not None:
                aliases.setdefault(near, []).append(word)
    return aliases


def _declared(word: str, plain: Mapping[str, Sequence[str]]) -> str | None:
    """The one declared value that a word is another spelling of; None if there is none, or could be several."""
    near = plain.get(_plain(word)) or [
        value for key, values in plain.items() if _one_letter_apart(_plain(word), key) for value in values
    ]
    same = [value for value in near if _signs(value) == _signs(word)]
    return same[0] if len(same) == 1 else None


def _plain(text: str) -> str:
    """A text without its case, accents, blanks and signs."""
    return "".join(mark for mark in normalize("NFKD", text.casefold()) if mark.isalnum())


def _signs(text: str) -> str:
    """The signs of a text that mean something: those of comparisons, and plus and minus at an end (A+, A-, -1)."""
    ends = text.strip()[:1] + text.strip()[-1:]
    return "".join(mark for mark in text if mark in "<>=≤≥") + "".join(mark for mark in ends if mark in "+-−")


def _one_letter_apart(word: str, other: str) -> bool:
    """Whether one letter is added, left out or another one, or two neighbours are exchanged. Digits are codes."""
    shorter, longer = sorted((word, other), key=len)
    if len(longer) - len(shorter) > 1 or len(shorter) < _SHORTEST_WORD:
        return False
    start = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    a, b = shorter[start:], longer[start:]
    if len(a) < len(b):
        return b[0].isalpha() and a == b[1:]
    if a[1:] == b[1:]:
        return (a[:1] + b[:1]).isalpha()
    return a[:2] == b[1::-1] and a[:2].isalpha() and a[2:] == b[2:]


def _same_number(word: str, value: str) -> bool:
    try:
        return word != value and decimal(word) == decimal(value)
    except NumberError:
        return False


def _is_negative(word: str) -> bool:
    return word.startswith("-") and word[1:].isdigit()


def _only(change: dict[str, Any], texts: Texts) -> dict[str, Any]:
    """A change without the aliases that are read already."""
    if "aliases" not in change:
        return change
    words = {text.decode(errors="replace") for text, _ in texts}
    aliases = {value: [word for word in same if word in words] for value, same in change["aliases"].items()}
    return {"aliases": {value: same for value, same in aliases.items() if same}}


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


def _outside(domain: Domain, texts: Texts) -> Texts:
    inside = set(_inside(domain, texts))
    return [item for item in texts if item not in inside]


def _inside(domain: Domain, texts: Texts) -> list[tuple[bytes, int]]:
    codes = domain.encode([text for text, _ in texts])
    return [item for item, code in zip(texts, codes.tolist(), strict=True) if code >= 0]


def _read(data: dict[str, Any], texts: Texts) -> list[tuple[bytes, int]]:
    """The texts that a declaration reads; none if it is not valid."""
    try:
        return _inside(_declaration(data), texts)
    except InputError:
        return []


def _declaration(data: dict[str, Any]) -> Domain:
    return read_domain({key: value for key, value in data.items() if value is not None}, ())
