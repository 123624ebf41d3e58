"""Missing values and mistakes in public data: the texts that stand for them, and the cells that count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm.proposal.readings import Amounts, is_missing
from hdmm.proposal.summary import ColumnSummary

_CODES = frozenset({-7.0, -8.0, -9.0, -97.0, -98.0, -99.0, -997.0, -998.0, -999.0, -9999.0, -99999.0})
"""Negative numbers that stand for missing values, if there are no others."""
_NINES = frozenset({-9.0, -99.0, -999.0, -9999.0, -99999.0})
_MANY_CODES = 30
"""Texts of two capitals, of which there are more than this, are codes of countries: NA is one of them."""


@final
@dataclass(frozen=True)
class Gaps:
    """What is missing or wrong in a column."""

    texts: tuple[str, ...]
    """Texts that stand for missing values."""
    coded: NDArray[np.bool_]
    """Which of the column's numbers do so."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The keys of the domain that count them."""
    notes: tuple[str, ...] = ()


def gaps(summary: ColumnSummary) -> Gaps:
    """The missing values and mistakes of a column."""
    words = [] if _are_countries(summary) else [text for text in summary.counts if is_missing(text)]
    coded = _coded(summary)
    codes = [text for text in summary.counts if coded.any() and _value(summary, text) in summary.values[coded]]
    texts = tuple(sorted(words) + sorted(codes))
    options: dict[str, Any] = {}
    notes: list[str] = []
    wrong = [text for text in summary.unread if not is_missing(text)]
    if wrong:
        options["other"] = True
        more = ", …" if len(wrong) > 3 else ""
        notes.append(f"Some texts are read as no value: {', '.join(repr(text[:30]) for text in wrong[:3])}{more}.")
    if texts:
        options["missing"] = list(texts)
    elif summary.empty:
        options["missing"] = True
    return Gaps(texts, coded, options, tuple(notes))


def _value(summary: ColumnSummary, text: str) -> float | None:
    return None if summary.reading is None else summary.reading.value(text)


def _coded(summary: ColumnSummary) -> NDArray[np.bool_]:
    """Which numbers are codes for missing values: the only negative ones, and one of them is all nines."""
    negative = summary.values[summary.values < 0]
    if (
        isinstance(summary.reading, Amounts)
        and 0 < len(negative) < len(summary.values)
        and set(negative.tolist()) <= _CODES
        and not _NINES.isdisjoint(negative.tolist())
    ):
        return summary.values < 0
    return np.zeros(len(summary.values), bool)


def _are_countries(summary: ColumnSummary) -> bool:
    return summary.distinct > _MANY_CODES and all(len(text) == 2 and text.isupper() for text in summary.counts)
