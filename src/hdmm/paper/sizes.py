"""The size of the census workloads: from thousands of SQL statements to a few products (paper, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import final

from hdmm.paper import census
from hdmm.workload import Encoded, Workload

_BYTES_PER_NUMBER = 4
"""As the paper counts them."""


@final
@dataclass(frozen=True)
class Size:
    """One form of a workload: how many parts it has, the bytes that all their numbers take, and the paper's figure."""

    workload: str
    form: str
    parts: int
    ours: int
    paper: str


@final
@dataclass(frozen=True)
class Compaction:
    """The statements of one workload and the products that they become, with the time that it took."""

    workload: str
    queries: int
    cells: int
    statements: int
    products: int
    seconds: float
    sizes: tuple[Size, ...]


def check_sizes() -> Iterator[Compaction]:
    """Read SF1 and SF1+ from SQL, compact them, and compare their sizes with the paper's."""
    forms = {
        "SF1": (census.sf1_sql, False, ("8.3 GB", "3.3 MB", "3.3 MB", "335 KB")),
        "SF1+": (census.sf1_plus_sql, True, ("22 TB", "200 MB", "50 MB", "687 KB")),
    }
    for name, (statements, state, paper) in forms.items():
        text = ";\n".join(statements())
        start = perf_counter()
        encoded = Workload(census.person(state=state)).add_sql(name, text).encoded
        compact = encoded.compact
        seconds = perf_counter() - start
        queries, cells = encoded.query_count, encoded.matrix().shape[1]
        parts = (
            ("explicit matrix", queries, queries * cells * _BYTES_PER_NUMBER),
            ("single queries", queries, queries * sum(encoded.sizes) * _BYTES_PER_NUMBER),
            ("statements", len(encoded.products), _size(encoded)),
            ("compacted", len(compact.products), _size(compact)),
        )
        sizes = tuple(Size(name, *part, printed) for part, printed in zip(parts, paper, strict=True))
        yield Compaction(name, queries, cells, len(encoded.products), len(compact.products), seconds, sizes)


def _size(encoded: Encoded) -> int:
    """The bytes of the factors of all products, written out; without a factor, an attribute has a row of ones."""
    entries = 0
    for product in encoded.products:
        for axis, size in enumerate(encoded.sizes):
            factor = product.factors.get(axis)
            entries += size if factor is None else factor.shape[0] * size
    return _BYTES_PER_NUMBER * entries
