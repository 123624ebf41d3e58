"""Summaries of columns that are written out in a test."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hdmm.data.look import Column, ColumnType, Piece
from hdmm.proposal.dependence import Dependences
from hdmm.proposal.summary import Collector, ColumnSummary


def summarise(texts: Sequence[str], name: str = "x", type: ColumnType = "text") -> ColumnSummary:
    """The summary of a column of records."""
    collector = Collector(Column(name, type))
    counts = Counter(texts)
    collector.add(list(counts), list(counts.values()))
    return collector.summary()


def follow(*columns: Sequence[str], pieces: int = 1) -> Dependences:
    """The dependences of columns, looked at in some pieces."""
    dependences = Dependences(len(columns))
    for part in np.array_split(np.arange(len(columns[0])), pieces):
        numbered = []
        for column in columns:
            texts = sorted({column[at] for at in part})
            numbered.append((texts, np.array([texts.index(column[at]) for at in part], np.int32)))
        dependences.add(Piece(len(part), numbered, 1.0))
    return dependences
