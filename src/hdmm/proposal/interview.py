"""Questions and answers about columns whose records are not looked at. Every question has a default."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar, final

from hdmm.errors import InputError
from hdmm.numbers import NumberError, decimal, integer
from hdmm.privacy.calibrate import NoiseKind
from hdmm.proposal.attribute import Attribute, LeftOut, Proposal, extra_cells
from hdmm.proposal.draft import Draft, PrivacyUnit, Question, Tables, propose_noise, propose_questions
from hdmm.proposal.words import is_identifier, is_person

Ask = Callable[[str, str], str]
"""Puts a question with its default to the user, and returns the answer."""
Tell = Callable[[str], None]
_Answer = TypeVar("_Answer")

_KINDS = {
    "s": "skip",
    "v": "values",
    "i": "integers",
    "b": "bins",
    "t": "true/false",
    "d": "date",
    "h": "hour of the day",
}
_KEPT = ("labels", "levels", "aliases", "format", "closed", "decimals", "thousands", "point", "currency")
"""What a code list states beyond what is asked for."""
_KIND_HELP = """\
s  skip: the column is not used.
v  values: a list of all texts that the column may hold, such as F, M.
i  integers: from the least to the largest, such as 0 to 114.
b  bins: numbers in intervals between edges, such as 0, 10000, 50000.
t  true/false: also written t/f, yes/no or 1/0.
d  date: days, months or years between two dates.
h  hour of the day: times such as 17:45.
Say what the column may hold by what is public: a code book, a form, common sense. Do not look at the records."""
_EXTRA_HELP = """\
y  empty fields are counted in a cell "missing", and texts that are none of the values in a cell "other".
n  records with such a field are dropped, silently: their number would depend on the data."""
_TABLES_HELP = """\
p  the number of records, a table of every attribute, and a table of every two.
o  the number of records and a table of every attribute: fewer tables have smaller errors.
t  only the number of records, and the tables that you name next."""
_OWN_HELP = """\
Names of attributes, separated by commas: "sex, age" asks for the number of records with each sex and age."""
_RANGES_HELP = """\
y  also the number of records up to each value of ordered attributes, from which ranges and medians follow.
n  no ranges; those of a few values can still be added up from the tables."""
_NOISE_HELP = """\
laplace   the budget is ε alone; suits a few tables.
gaussian  the budget is ε with a small δ, or ρ; the noise is smaller if there are many tables."""
_SEVERAL_HELP = """\
y  a person can have several rows: visits, purchases, years. Everything about a person is protected together.
n  every row is another person."""
_ID_HELP = (
    "The column whose text is the same in all rows of a person. It is used to find a person's rows, and not published."
)
_ROWS_HELP = """\
Of a person with more rows than this, only so many are counted. The noise grows with the number, so choose the least
that covers most people."""


@final
@dataclass(frozen=True)
class Interview:
    """Asks for domains, questions and the privacy unit; an answer ``?`` explains a question."""

    ask: Ask
    tell: Tell

    def draft(self, proposals: Sequence[Proposal], origin: Sequence[str]) -> Draft:
        """The draft that the answers describe."""
        settled = [self._column(at, len(proposals), proposal) for at, proposal in enumerate(proposals, 1)]
        attributes = [proposal for proposal in settled if isinstance(proposal, Attribute)]
        questions: list[Question] = []
        noise: NoiseKind = "laplace"
        if attributes:
            self.tell("")
            questions = self._questions(attributes)
            noise = self._word("Noise", propose_noise(attributes, questions), ("laplace", "gaussian"), _NOISE_HELP)
        return Draft(settled, questions, noise, self._unit(settled), origin)

    def _column(self, at: int, count: int, proposal: Proposal) -> Proposal:
        self.tell(f"\ncolumn {at} of {count}: {proposal.name}")
        if isinstance(proposal, LeftOut) and not _usable(proposal.name):
            self.tell(f"  left out: {proposal.reason}")
            return proposal
        kinds = ", ".join(f"{key} {kind}" for key, kind in _KINDS.items())
        default = _kind(proposal)
        kind = self._word(f"  What is it? ({kinds})", default, tuple(_KINDS), _KIND_HELP)
        if kind == "s":
            if isinstance(proposal, LeftOut):
                return proposal
            return LeftOut(proposal.name, "you left it out")
        known = dict(proposal.domain) if isinstance(proposal, Attribute) and kind == default else {}
        domain, cells, ordered = self._domain(kind, known)
        if self._yes("  Count empty fields and other texts in cells of their own?", True, _EXTRA_HELP):
            domain |= {"other": True, "missing": known.get("missing", True)}
        kept: dict[str, Any] = {key: known[key] for key in _KEPT if key in known}
        if kind == "v" and known.get("values") != domain["values"]:
            kept = {}
        domain |= kept
        return Attribute(
            proposal.name, domain, cells + extra_cells(domain), ordered, getattr(proposal, "notes", ()) if known else ()
        )

    def _domain(self, kind: str, known: dict[str, Any]) -> tuple[dict[str, Any], int, bool]:
        match kind:
            case "v":
                usual = known.get("values", [])
                if (len(usual) > 20 or any("," in value for value in usual)) and self._yes(
                    f"  Use the {len(usual):,} known values?", True, "y  use them as they are."
                ):
                    return {"values": list(usual)}, len(usual), False
                values = self._until("  Values, separated by commas", ", ".join(usual), _values, "Such as: F, M")
                return {"values": values}, len(values), False
            case "i":
                usual = f"{known.get('min', 0)}, {known.get('max', 99)}"
                low, high = self._until("  Least and largest, separated by a comma", usual, _limits, "Such as: 0, 114")
                return {"min": low, "max": high}, high - low + 1, True
            case "b":
                usual = ", ".join(map(str, known.get("bins", [0, 10, 20, 50, 100])))
                edges = self._until("  Edges, in ascending order", usual, _edges, "Such as: 0, 10000, 50000: two bins.")
                return {"bins": edges}, len(edges) - 1, True
            case "t":
                return {"boolean": True}, 2, False
            case "h":
                return {"time": ["00:00", "24:00"], "by": "hour"}, 24, True
        year = date.today().year
        usual = ", ".join(known.get("date", [f"{year - 9}-01-01", f"{year}-12-31"]))
        first, last = self._until("  First and last date", usual, _dates, "Such as: 2020-01-01, 2024-12-31")
        by = self._word(
            "  Counted by", known.get("by", "month"), ("day", "week", "month", "quarter", "year"), "The step."
        )
        days = {"day": 1.0, "week": 7.0, "month": 30.4, "quarter": 91.3, "year": 365.25}[by]
        return {"date": [str(first), str(last)], "by": by}, int((last - first).days / days) + 1, True

    def _questions(self, attributes: Sequence[Attribute]) -> list[Question]:
        words: dict[str, Tables] = {"p": "pairs", "o": "one-way", "t": "total"}
        text = "Which tables? (p every attribute and every pair, o every attribute, t the total only)"
        tables = words[self._word(text, "p", tuple(words), _TABLES_HELP)]
        ordered = any(attribute.ordered for attribute in attributes)
        ranges = ordered and self._yes("Ranges of ordered attributes, such as age up to 17?", True, _RANGES_HELP)
        questions = propose_questions(attributes, tables, ranges=ranges)
        names = [attribute.name for attribute in attributes]
        own: list[tuple[str, ...]] = []

        def read(text: str) -> list[str]:
            chosen = [name.strip() for name in text.split(",") if name.strip()]
            unknown = [name for name in chosen if name not in names]
            if unknown:
                raise InputError(f"{unknown[0]!r} is not an attribute; they are {', '.join(names)}")
            return list(dict.fromkeys(chosen))

        while chosen := self._until("A table of your own, such as 'sex, age' (Enter: no more)", "", read, _OWN_HELP):
            if tuple(chosen) not in own:
                own.append(tuple(chosen))
        for chosen in map(list, own):
            entry = {"name": " by ".join(chosen), "product": dict.fromkeys(chosen, "identity")}
            questions.append(Question("A table that you asked for.", entry))
        return questions

    def _unit(self, proposals: Sequence[Proposal]) -> PrivacyUnit:
        names = [proposal.name for proposal in proposals if isinstance(proposal, LeftOut) and _usable(proposal.name)]
        people = [name for name in names if is_person(name)] or [name for name in names if is_identifier(name)]
        if not self._yes("Can a person have several rows?", False, _SEVERAL_HELP):
            return PrivacyUnit()

        def column(text: str) -> str:
            if text not in names:
                known = f"; the columns that are left out are {', '.join(names)}" if names else ""
                raise InputError(f"{text!r} is no column that was left out: an identifier is not published{known}")
            return text

        def rows(text: str) -> int:
            number = _integer(text)
            if not 1 <= number <= 10**6:
                raise InputError(f"{text!r} is not an integer from 1 to 1,000,000")
            return number

        id = (
            self._until("Which column identifies people?", (people or names or [""])[0], column, _ID_HELP)
            if names
            else None
        )
        return PrivacyUnit(self._until("How many rows of a person count?", "3", rows, _ROWS_HELP), id)

    def _until(self, question: str, default: str, read: Callable[[str], _Answer], help: str) -> _Answer:
        """Ask until the answer can be read."""
        while True:
            text = self.ask(question, default).strip()
            if text == "?":
                self.tell(help)
                continue
            try:
                return read(text or default)
            except InputError as error:
                self.tell(f"  {error}")

    def _word(self, question: str, default: Any, words: Sequence[Any], help: str) -> Any:
        def read(text: str) -> Any:
            if text.lower() not in words:
                raise InputError(f"{text!r} is none of {', '.join(words)}; ? explains them")
            return text.lower()

        return self._until(question, default, read, help)

    def _yes(self, question: str, default: bool, help: str) -> bool:
        def read(text: str) -> bool:
            if text.lower() not in ("y", "yes", "n", "no"):
                raise InputError(f"{text!r} is neither y nor n; ? explains them")
            return text.lower().startswith("y")

        return self._until(question, "y" if default else "n", read, help)


def _kind(proposal: Proposal) -> str:
    """The kind that a proposal has, as the letter of its answer."""
    if isinstance(proposal, LeftOut):
        return "s"
    keys = {"values": "v", "min": "i", "bins": "b", "boolean": "t", "date": "d", "time": "h"}
    return next(letter for key, letter in keys.items() if key in proposal.domain)


def _usable(name: str) -> bool:
    return bool(name) and name.isprintable() and '"' not in name


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _values(text: str) -> list[str]:
    values = _parts(text)
    if not values or len(set(values)) != len(values) or not text.isprintable():
        raise InputError("list each value once, separated by commas")
    if not {"other", "missing"}.isdisjoint(values):
        raise InputError("'other' and 'missing' are the names of the extra cells; leave them out")
    return values


def _integer(text: str) -> int:
    try:
        return integer(text)
    except NumberError:
        raise InputError(f"{text!r} is not an integer") from None


def _limits(text: str) -> tuple[int, int]:
    parts = [_integer(part) for part in _parts(text)]
    if len(parts) != 2 or parts[0] > parts[1] or max(map(abs, parts)) >= 1 << 60:
        raise InputError("give two integers, the least first, such as 0, 114")
    return parts[0], parts[1]


def _edges(text: str) -> list[str]:
    parts = _parts(text)
    try:
        edges = [decimal(part) for part in parts]
    except NumberError:
        raise InputError("give numbers, separated by commas, such as 0, 10000, 50000") from None
    if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise InputError("give at least two numbers in ascending order")
    return [f"{edge:f}" for edge in edges]


def _dates(text: str) -> tuple[date, date]:
    try:
        first, last = (date.fromisoformat(part) for part in _parts(text))
    except ValueError:
        raise InputError("give two dates, such as 2020-01-01, 2024-12-31") from None
    if first > last:
        raise InputError("give the first date first")
    return first, last
