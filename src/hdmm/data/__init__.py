"""Counting records: files are read line by line, as text, and only counts leave this room."""

from __future__ import annotations

from hdmm.data.counts import CAP, count
from hdmm.data.source import Chunk, CsvFile, Records, Source, open_source

__all__ = ["CAP", "Chunk", "CsvFile", "Records", "Source", "count", "open_source"]
