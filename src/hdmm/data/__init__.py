"""Counting records where they are: text files line by line, tables by the engines that hold them.

Only counts leave this room.
"""

from __future__ import annotations

from hdmm.data.chunked import Chunk, Chunked
from hdmm.data.counts import CAP, count
from hdmm.data.csv import CsvFile, CsvFiles
from hdmm.data.open import open_source
from hdmm.data.source import Source
from hdmm.data.table import DatabaseTable
from hdmm.data.tally import Records

__all__ = [
    "CAP",
    "Chunk",
    "Chunked",
    "CsvFile",
    "CsvFiles",
    "DatabaseTable",
    "Records",
    "Source",
    "count",
    "open_source",
]
