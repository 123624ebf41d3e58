"""Counting records where they are: text files line by line, tables by the engines that hold them.

Only counts leave this package, except by :mod:`hdmm.data.look`, which no release uses.
"""

from __future__ import annotations

from hdmm.data.counts import CAP, count
from hdmm.data.csv import CsvFile
from hdmm.data.open import open_source
from hdmm.data.source import Source
from hdmm.data.table import DatabaseTable

__all__ = ["CAP", "CsvFile", "DatabaseTable", "Source", "count", "open_source"]
