"""A proposal for a column of public data, from a summary of its values."""

from __future__ import annotations

from hdmm.proposal.attribute import Attribute, LeftOut, Proposal
from hdmm.proposal.calendar import propose_dates, propose_times
from hdmm.proposal.flow import flow
from hdmm.proposal.gaps import gaps
from hdmm.proposal.listed import is_boolean, propose_boolean, propose_listed
from hdmm.proposal.names import is_flag, limits
from hdmm.proposal.quantities import propose_quantity
from hdmm.proposal.readings import Amounts, Days, Minutes
from hdmm.proposal.summary import ColumnSummary
from hdmm.proposal.words import is_identifier

_UNIQUE = 0.9
"""A column with this many distinct texts per record identifies records."""
_FEWEST_RECORDS = 20
"""With fewer records, every column has nearly unique values."""
_REPEATED = 50
"""A column that is called an identifier, and has more distinct texts than this, is one."""
_EXACT = 2.0**53
"""Larger numbers are identifiers; nobody counts so far."""


def propose_from_values(summary: ColumnSummary) -> Proposal:
    """An attribute with a domain that holds the values, or the reason for which the column is left out."""
    name, reading = summary.column.name, summary.reading
    if summary.column.type == "unreadable":
        return LeftOut(name, "hdmm cannot read its type; cast it to a text, a number or a date in a view")
    filled = summary.distinct - len(gaps(summary).texts)
    if filled < 1:
        return LeftOut(name, "it is empty in the public data")
    if filled == 1:
        return LeftOut(name, "it has only one value in the public data", _only(summary))
    if identifies(summary):
        named = "its name says that it identifies people or records"
        return LeftOut(name, named if is_identifier(name) else "nearly all of its values are different")
    if is_boolean(summary) or (is_flag(name) and set(summary.counts) <= {"0", "1"}):
        return propose_boolean(summary)
    if isinstance(reading, Days):
        return propose_dates(summary, reading)
    if isinstance(reading, Minutes):
        return propose_times(summary, reading)
    if isinstance(reading, Amounts) and (not summary.padded or limits(name) is not None or summary.pointed):
        return propose_quantity(summary)
    proposal = propose_listed(summary)
    if isinstance(proposal, Attribute) and summary.padded:
        return proposal.noted("Codes with leading zeros, so each is a text of its own.")
    return proposal


def identifies(summary: ColumnSummary) -> bool:
    """Whether the values identify records or people: they hardly ever repeat, and are no measurements."""
    if isinstance(summary.reading, (Days, Minutes)):
        return False
    unique = summary.records >= _FEWEST_RECORDS and summary.distinct >= _UNIQUE * max(summary.filled, 1)
    if not isinstance(summary.reading, Amounts):
        return unique or (is_identifier(summary.column.name) and summary.distinct > _REPEATED)
    if not summary.whole:
        return False
    if is_identifier(summary.column.name) or abs(summary.values[-1]) > _EXACT:
        return unique or summary.distinct > _REPEATED
    dense = summary.values[-1] - summary.values[0] < 1.2 * summary.distinct
    same_length = len({len(text) for text in summary.counts}) == 1 and summary.values[0] >= 10_000
    return unique and (dense or same_length or summary.padded)


def _only(summary: ColumnSummary) -> str:
    """The domain of a column with one value."""
    values = [text for text in summary.counts if text not in gaps(summary).texts and text.isprintable()]
    return f"{{values: {flow(values)}, other: true}}"
