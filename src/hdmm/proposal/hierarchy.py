"""Columns that belong together: a county determines its state, a code its label, a date its month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hdmm.proposal.attribute import Attribute, LeftOut, Proposal
from hdmm.proposal.calendar import same_parts
from hdmm.proposal.dependence import Dependences
from hdmm.proposal.readings import Days
from hdmm.proposal.summary import ColumnSummary
from hdmm.proposal.words import words

_LEAST_RECORDS = 5
"""Records per value; with fewer, one column may determine another by chance."""
_PARTS = ("year", "month", "day")


def put_together(
    proposals: Sequence[Proposal], summaries: Sequence[ColumnSummary], dependences: Dependences
) -> list[Proposal]:
    """The proposals, with columns that others determine as levels of these, or left out."""
    result = list(proposals)
    _same(result, summaries, dependences)
    _parts_of_dates(result, summaries, dependences)
    _levels(result, summaries, dependences)
    return result


def _same(result: list[Proposal], summaries: Sequence[ColumnSummary], dependences: Dependences) -> None:
    """Of two columns that determine each other, leave out the numbers; the texts follow their order."""
    for at, first in enumerate(summaries):
        for other in range(at + 1, len(summaries)):
            if not (_is_used(result[at]) and _is_used(result[other])):
                continue
            there, back = dependences.groups(at, other), dependences.groups(other, at)
            if there is None or back is None or not _supported(first):
                continue
            kept, dropped = (other, at) if _is_number(result[at]) and not _is_number(result[other]) else (at, other)
            groups = there if kept == at else back
            attribute = result[kept]
            assert isinstance(attribute, Attribute)
            if _is_number(result[dropped]) and set(attribute.domain.get("values", ())) <= set(groups):
                attribute = _by_number(attribute, groups, summaries[dropped])
            result[kept] = attribute
            name = summaries[kept].column.name
            result[dropped] = LeftOut(summaries[dropped].column.name, f"it says the same as {name}", "")


def _by_number(attribute: Attribute, numbers: Mapping[str, str], summary: ColumnSummary) -> Attribute:
    """Listed values in the order of the numbers that go with them."""
    if "values" not in attribute.domain:
        return attribute

    def number(value: str) -> float:
        read = None if summary.reading is None else summary.reading.value(numbers[value])
        return float("inf") if read is None else read

    values = sorted(attribute.domain["values"], key=number)
    ordered = replace(attribute, domain={**attribute.domain, "values": values}, ordered=True)
    return ordered.noted(f"In the order of {summary.column.name}.")


def _parts_of_dates(result: list[Proposal], summaries: Sequence[ColumnSummary], dependences: Dependences) -> None:
    """Leave out the year, the month and the day of a date that is an attribute itself."""
    for at, summary in enumerate(summaries):
        if not _is_used(result[at]) or not isinstance(summary.reading, Days):
            continue
        for other, proposal in enumerate(result):
            part = "".join(words(proposal.name))
            if other == at or part not in _PARTS or not isinstance(proposal, Attribute):
                continue
            groups = dependences.groups(at, other)
            if groups is not None and same_parts(groups, summary.reading, part):
                result[other] = LeftOut(proposal.name, f"it is the {part} of {summary.column.name}", "")


def _levels(result: list[Proposal], summaries: Sequence[ColumnSummary], dependences: Dependences) -> None:
    """Make a column a level of another that determines it, if both have listed values and it is much coarser."""
    listed = [at for at, proposal in enumerate(result) if _can_have_levels(proposal)]
    for at in sorted(listed, key=lambda at: -summaries[at].distinct):
        attribute = result[at]
        if not isinstance(attribute, Attribute) or not _supported(summaries[at]):
            continue
        levels: dict[str, Any] = {}
        for other in sorted(listed, key=lambda other: -summaries[other].distinct):
            coarse = result[other]
            groups = dependences.groups(at, other)
            if other == at or groups is None or not isinstance(coarse, Attribute):
                continue
            if 2 * len(coarse.domain["values"]) > len(attribute.domain["values"]):
                continue
            members: dict[str, list[str]] = {value: [] for value in coarse.domain["values"]}
            for value in attribute.domain["values"]:
                members.setdefault(groups[value], []).append(value)
            if set(members) != set(coarse.domain["values"]) or not all(members.values()):
                continue
            levels[coarse.name] = members
            result[other] = LeftOut(coarse.name, f"it is a level of {attribute.name}, which determines it", "")
        if levels:
            result[at] = replace(attribute, domain={**attribute.domain, "levels": levels})


def _is_used(proposal: Proposal) -> bool:
    return isinstance(proposal, Attribute)


def _is_number(proposal: Proposal) -> bool:
    return isinstance(proposal, Attribute) and ("min" in proposal.domain or "bins" in proposal.domain)


def _can_have_levels(proposal: Proposal) -> bool:
    """Whether values are all listed, each by one text."""
    return (
        isinstance(proposal, Attribute)
        and "values" in proposal.domain
        and not ({"other", "missing", "aliases", "ignore_case"} & set(proposal.domain))
    )


def _supported(summary: ColumnSummary) -> bool:
    return summary.complete and summary.records >= _LEAST_RECORDS * summary.distinct
