"""Domains for texts: all values listed, or the most frequent ones; spellings of one value are put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from hdmm.proposal.attribute import Attribute, LeftOut, Proposal, extra_cells
from hdmm.proposal.gaps import gaps
from hdmm.proposal.summary import ColumnSummary

MAX_LISTED = 400
"""Values that are all listed."""
_MOST_FREQUENT = 50
"""Values that are listed if there are more."""
_COVERED = 0.5
"""Share of the records that these must cover."""
_FREE_TEXT = 40
"""Texts that are longer than this on average, in characters, are free text."""
_RARE = 0.25
"""A single letter in another case is a slip if it is at most this much as frequent; otherwise it is another code."""
_SYNONYMS = (
    {"f": "female", "m": "male"},
    {"f": "female", "m": "male", "o": "other"},
    {"w": "woman", "m": "man"},
    {"y": "yes", "n": "no"},
)
_TRUE_FALSE = {"true", "false", "t", "f", "yes", "no"}
_ORDERS = [
    text.split()
    for text in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "monday tuesday wednesday thursday friday saturday sunday",
        "mon tue wed thu fri sat sun",
        "none low medium high",
        "low moderate high",
        "low middle high",
        "small medium large",
        "xs s m l xl xxl",
        "never rarely sometimes often always",
        "poor fair good excellent",
        "fair good ideal",
        "no yes",
        "n y",
    )
] + [["fair", "good", "very good", "premium", "ideal"], ["poor", "fair", "good", "very good", "excellent"]]
_BELOW = ("<", "under", "less", "below", "up to")
_ABOVE = (">", "over", "more", "above", "+", "and older", "or more")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")


@final
@dataclass(frozen=True)
class Spellings:
    """The values among some texts, and the other texts that mean them."""

    counts: Mapping[str, int]
    """The number of records of each value, in all its spellings."""
    ignore_case: bool
    aliases: Mapping[str, list[str]]

    @property
    def options(self) -> dict[str, Any]:
        """The keys of the domain that put the spellings together."""
        case = {"ignore_case": True} if self.ignore_case else {}
        return {**case, **({"aliases": dict(self.aliases)} if self.aliases else {})}


def is_boolean(summary: ColumnSummary) -> bool:
    """Whether a column holds true and false."""
    texts = {text.lower() for text in summary.counts} - {text.lower() for text in gaps(summary).texts}
    return bool(texts & _TRUE_FALSE) and texts <= _TRUE_FALSE | {"0", "1"} and len(texts) > 1


def propose_boolean(summary: ColumnSummary) -> Attribute:
    """True and false."""
    options = {key: value for key, value in gaps(summary).options.items() if key == "missing"}
    domain = {"boolean": True, **options}
    return Attribute(summary.column.name, domain, 2 + extra_cells(domain))


def propose_listed(summary: ColumnSummary) -> Proposal:
    """All values if there are few, otherwise the most frequent ones if they cover most records."""
    gap = gaps(summary)
    name, missing = summary.column.name, {key: gap.options[key] for key in ("missing",) if key in gap.options}
    if summary.mean_length > _FREE_TEXT:
        return LeftOut(name, "it holds free text")
    found = spellings({text: count for text, count in summary.counts.items() if text not in gap.texts and _sane(text)})
    options: dict[str, Any] = {**found.options, **missing}
    notes: list[str] = []
    values = list(found.counts)
    if found.ignore_case:
        notes.append("Some values occur in capital and in small letters.")
    if not summary.complete or len(values) > MAX_LISTED:
        values = sorted(values, key=lambda value: -found.counts[value])[:_MOST_FREQUENT]
        covered = sum(found.counts[value] for value in values)
        if covered < _COVERED * max(summary.filled, 1):
            return LeftOut(name, f"it holds about {summary.distinct:,} different texts, none of them frequent")
        aliases = {value: texts for value, texts in found.aliases.items() if value in values}
        options = {**({"ignore_case": True} if found.ignore_case else {}), **({"aliases": aliases} if aliases else {})}
        options |= {"other": True, **missing}
        notes.append(
            f"The {_MOST_FREQUENT} most frequent of about {summary.distinct:,} texts; the rest count as other."
        )
    elif any(not _sane(text) for text in summary.counts):
        options["other"] = True
        notes.append("Some texts cannot be listed, and count as other.")
    taken = {name for name in ("other", "missing") if options.get(name)}
    ordered, values = in_order(value for value in values if value.lower() not in taken)
    if not values:
        return LeftOut(name, "it holds no values that can be listed")
    domain = {"values": values, **options}
    return Attribute(name, domain, len(values) + extra_cells(domain), ordered, (*notes, *gap.notes))


def spellings(counts: Mapping[str, int]) -> Spellings:
    """Put texts together that differ in case, in the blanks between words or in a full stop at the end."""
    groups: dict[str, list[str]] = {}
    letters = {text for text in counts if len(text) == 1}
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        key = normal(text)
        other = groups.get(key)
        if other and text in letters and counts[text] > _RARE * counts[other[0]]:
            key = text  # a and A are both frequent: two codes
        groups.setdefault(key, []).append(text)
    for short in _SYNONYMS:
        pairs = [(initial, word) for initial, word in short.items() if initial in groups and word in groups]
        if pairs and set(groups) <= {*short, *short.values()}:
            for initial, word in pairs:
                groups[word] += groups.pop(initial)
    totals, aliases = {}, {}
    ignore_case = any(_lower(text) == _lower(texts[0]) for texts in groups.values() for text in texts[1:])
    for texts in groups.values():
        first = texts[0]
        totals[first] = sum(counts[text] for text in texts)
        known = {_lower(first) if ignore_case else first}
        others: list[str] = []
        for text in texts[1:]:
            form = _lower(text) if ignore_case else text
            if form not in known:
                known.add(form)
                others.append(text)
        if others:
            aliases[first] = others
    return Spellings(totals, ignore_case, aliases)


def normal(text: str) -> str:
    """The form that all spellings of a value share.

    >>> normal("New_York"), normal(" new  york."), normal("A-")
    ('new york', 'new york', 'a-')
    """
    joined = re.sub(r"(?<=[^\W_])[\s_]+(?=[^\W_])|(?<=[^\W\d_])-(?=[^\W\d_])", " ", text.strip())
    return joined.removesuffix(".").casefold() or text


def in_order(values: Iterable[str]) -> tuple[bool, list[str]]:
    """Whether there is an order that people know, such as that of weekdays, and the values in it or by alphabet."""
    values = list(values)
    lowered = {value.lower() for value in values}
    for order in _ORDERS:
        if len(lowered) > 1 and lowered <= set(order):
            return len(values) > 2, sorted(values, key=lambda value: order.index(value.lower()))
    if len(values) > 2 and all(_NUMBER.search(value) and not value.isdigit() for value in values):
        return False, sorted(values, key=_number_key)
    return False, sorted(values)


def _number_key(value: str) -> tuple[str, float, int, str]:
    """By the text before the first number, unless it says "under" or "over", then by the number."""
    number = _NUMBER.search(value)
    lowered = value.lower()
    assert number is not None
    rank = -1 if any(mark in lowered for mark in _BELOW) else 1 if any(mark in lowered for mark in _ABOVE) else 0
    before = "" if rank else lowered[: number.start()].strip("$€£¥([ ")
    return before, float(number.group().replace(",", "")), rank, value


def _lower(text: str) -> str:
    """A text with small ASCII letters."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _sane(text: str) -> bool:
    """Whether a text can be listed in a spec."""
    return text.isprintable() and "�" not in text
