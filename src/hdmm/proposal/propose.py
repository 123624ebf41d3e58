"""From data and code lists to a draft of a spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, final

import numpy as np

from hdmm.data import Source
from hdmm.data.look import Column, structure
from hdmm.errors import InputError
from hdmm.proposal.attribute import Attribute, LeftOut, Proposal
from hdmm.proposal.by_values import identifies, propose_from_values
from hdmm.proposal.codes import read_codes
from hdmm.proposal.draft import Draft, PrivacyUnit, propose_noise, propose_questions
from hdmm.proposal.hierarchy import put_together
from hdmm.proposal.look import Look, look
from hdmm.proposal.names import guess
from hdmm.proposal.summary import ColumnSummary
from hdmm.proposal.words import is_person

_RESERVED = ("answer", "stderr", "low", "high", "estimator")
"""Columns of answer tables, which no attribute may be called."""
_COVERED = 0.95
"""Share of the rows that the rows of a person which count should cover."""
_MOST_ROWS = 20
"""Most rows of a person that are proposed: the noise grows with their number."""
_EDIT = "Edit it freely; docs/spec.md describes everything that a spec can say."
_OUTSIDE = (
    "Choosing domains or tables by looking at private data is outside the guarantee of differential privacy: the "
    "choice itself could reveal something."
)


@final
@dataclass(frozen=True)
class Request:
    """What to make a draft from."""

    source: Source | None
    """The data; its records are looked at only if it is public."""
    name: str | None
    """What to call the data in the spec."""
    public: bool = False
    codes: Sequence[str] = ()
    today: date | None = None

    @property
    def date(self) -> date:
        """The day that the spec states."""
        return self.today or date.today()


def columns_of(request: Request) -> list[Column]:
    """The columns of the data, or those that code lists describe if there is no data."""
    if request.source is not None:
        return structure(request.source)
    return [Column(name) for name in read_codes(request.codes, [])]


def propose_by_name(columns: Sequence[Column], request: Request) -> tuple[list[Proposal], list[str]]:
    """Proposals by names, types and code lists alone, and where they came from."""
    codes = read_codes(request.codes, [column.name for column in columns])
    proposals = [codes.get(column.name) or guess(column, request.date) for column in columns]
    of = "" if request.name is None else f" for {request.name}"
    origin = [
        f"A spec{of}, made by `hdmm init` on {request.date} from the names of the columns{_and_codes(request)}; "
        f"no record was looked at. {_EDIT}",
        _OUTSIDE,
    ]
    return _settled(proposals), origin


def draft_by_name(columns: Sequence[Column], request: Request) -> Draft:
    """The draft that takes every default."""
    proposals, origin = propose_by_name(columns, request)
    people = tuple(p.name for p in proposals if isinstance(p, LeftOut) and is_person(p.name))
    return _draft(proposals, PrivacyUnit(candidates=people), origin)


def draft_by_values(request: Request, on_progress: Callable[[float], None]) -> tuple[Draft, Sequence[str]]:
    """The draft that follows from the values in public data, and warnings about the file."""
    if request.source is None:
        raise InputError("--public: there is no data to look at; give the path of a file, or leave it out")
    columns = structure(request.source)
    codes = read_codes(request.codes, [column.name for column in columns])
    seen = look(request.source, columns, on_progress)
    proposals = [_with_codes(codes.get(s.column.name), s) or propose_from_values(s) for s in seen.summaries]
    proposals = _settled(put_together(_settled(proposals), seen.summaries, seen.dependences))
    origin = [
        f"A spec made by `hdmm init --public` on {request.date} from {request.name}, {seen.records:,} records"
        f"{_and_codes(request)}. {_EDIT}",
        f"Its domains were chosen by looking at these records, which is harmless because they are public. {_OUTSIDE}",
    ]
    return _draft(proposals, _unit(proposals, seen), origin), seen.warnings


def _draft(proposals: Sequence[Proposal], unit: PrivacyUnit, origin: Sequence[str]) -> Draft:
    attributes = [proposal for proposal in proposals if isinstance(proposal, Attribute)]
    questions = propose_questions(attributes)
    return Draft(proposals, questions, propose_noise(attributes, questions), unit, origin)


def _and_codes(request: Request) -> str:
    return f" and {len(request.codes)} code list{'s' * (len(request.codes) > 1)}" if request.codes else ""


def _settled(proposals: Sequence[Proposal]) -> list[Proposal]:
    """The proposals without names that no attribute can have, and with names of levels that nothing else has."""
    counts: dict[str, int] = {}
    for proposal in proposals:
        counts[proposal.name] = counts.get(proposal.name, 0) + 1
    settled: list[Proposal] = []
    taken = {proposal.name for proposal in proposals if isinstance(proposal, Attribute)}
    for proposal in proposals:
        reason = _unusable(proposal.name, counts[proposal.name])
        if reason is not None:
            settled.append(LeftOut(proposal.name, reason, ""))
        elif isinstance(proposal, Attribute):
            settled.append(_with_cells(_renamed(proposal, taken)))
        else:
            settled.append(proposal)
    return settled


def _unusable(name: str, count: int) -> str | None:
    if not name:
        return "its header is empty; give it a name to use it"
    if name in _RESERVED:
        return "tables of answers have a column of this name; rename it to use it"
    if count > 1:
        return "there are several columns of this name; rename them to use one"
    if not name.isprintable() or '"' in name or name != name.strip():
        return "a name is text on one line, without quotes; rename it to use it"
    return None


def _renamed(attribute: Attribute, taken: set[str]) -> Attribute:
    levels = attribute.domain.get("levels")
    if not levels:
        return attribute
    names = {level: level if level not in taken else f"{attribute.name} {level}" for level in levels}
    taken.update(names.values())
    return replace(attribute, domain={**attribute.domain, "levels": {names[key]: levels[key] for key in levels}})


def _with_cells(attribute: Attribute) -> Attribute:
    """Without an extra cell whose name is also a value."""
    values = attribute.domain.get("values", ())
    clash = [name for name in ("other", "missing") if name in values and attribute.domain.get(name)]
    if not clash:
        return attribute
    domain = {key: value for key, value in attribute.domain.items() if key not in clash}
    return replace(attribute, domain=domain, cells=attribute.cells - len(clash))


def _with_codes(proposal: Proposal | None, summary: ColumnSummary) -> Proposal | None:
    """A code list's proposal, with a cell for the values that the public data has beyond it."""
    if not isinstance(proposal, Attribute):
        return None
    domain: dict[str, Any] = dict(proposal.domain)
    if "values" in domain and summary.complete:
        known = {*domain["values"], *(domain["missing"] if isinstance(domain.get("missing"), list) else ())}
        known |= {alias for texts in domain.get("aliases", {}).values() for alias in texts}
        beyond = [text for text in summary.counts if text not in known]
        if beyond:
            domain["other"] = True
            cells = proposal.cells + 1
            note = f"The public data also holds {len(beyond):,} other texts, which count as other."
            return replace(proposal, domain=domain, cells=cells).noted(note)
    return proposal


def _unit(proposals: Sequence[Proposal], seen: Look) -> PrivacyUnit:
    """A person if a column that is called so identifies several rows; otherwise a row."""
    left_out = {proposal.name for proposal in proposals if isinstance(proposal, LeftOut)}
    people = [s for s in seen.summaries if s.column.name in left_out and is_person(s.column.name)]
    for summary in people:
        if summary.filled > 1.02 * summary.distinct and identifies(summary):
            return PrivacyUnit(_rows(summary), summary.column.name)
    return PrivacyUnit(candidates=tuple(summary.column.name for summary in people))


def _rows(summary: ColumnSummary) -> int:
    """As many rows of a person as cover nearly all rows, within reason."""
    if not summary.complete:
        return min(_MOST_ROWS, max(2, round(summary.filled / summary.distinct * 2)))
    counts = np.array(list(summary.counts.values()))
    total = counts.sum()
    return next((k for k in range(1, _MOST_ROWS) if np.minimum(counts, k).sum() >= _COVERED * total), _MOST_ROWS)
