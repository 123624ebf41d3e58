"""The size of the census workloads: from thousands of SQL statements to a few products (paper, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from hdmm.paper import census
from hdmm.workload import Encoded, Workload

_BYTES_PER_NUMBER = 4
"""As the paper counts them."""


def census_sizes(state: bool) -> Mapping[str, Any]:
    """Read SF1, or SF1+ with the states, from SQL and compact it: the parts of each form, and their bytes."""
    text = ";\n".join(census.sf1_plus_sql() if state else census.sf1_sql())
    start = perf_counter()
    encoded = Workload(census.person(state=state)).add_sql("census", text).encoded
    compact = encoded.compact
    seconds = perf_counter() - start
    queries, cells = encoded.query_count, encoded.matrix().shape[1]
    return {
        "cells": cells,
        "seconds": seconds,
        "parts": [queries, queries, len(encoded.products), len(compact.products)],
        "bytes": [
            queries * cells * _BYTES_PER_NUMBER,
            queries * sum(encoded.sizes) * _BYTES_PER_NUMBER,
            _size(encoded),
            _size(compact),
        ],
    }


def _size(encoded: Encoded) -> int:
    """The bytes of the factors of all products, written out; without a factor, an attribute has a row of ones."""
    entries = 0
    for product in encoded.products:
        for axis, size in enumerate(encoded.sizes):
            factor = product.factors.get(axis)
            entries += size if factor is None else factor.shape[0] * size
    return _BYTES_PER_NUMBER * entries
