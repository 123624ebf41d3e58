"""How much memory a release needs, from public shapes alone, before anything large is allocated."""

from __future__ import annotations

import os
from math import prod

from hdmm.errors import TooLargeError
from hdmm.matrix import DENSE_LIMIT
from hdmm.strategy import Strategy
from hdmm.texttable import bytes_text, count_text
from hdmm.workload import Encoded

_PER_CELL = 8 * 4
"""Counts, their copy per thread, exact answers and estimate."""
_PER_ANSWER = 8 * 8
"""Answer, standard error, both ends of the interval, labels and their copy in a table."""


def check_memory(strategy: Strategy, workload: Encoded, limit: int | None = None) -> None:
    """Refuse a strategy whose tables, or a workload whose answers, would not fit: by default half of the memory."""
    limit = limit if limit is not None else physical_memory() // 2
    cells = sum(block.cells + block.queries for block in strategy.blocks)
    if cells * _PER_CELL > limit:
        largest = max(strategy.blocks, key=lambda block: block.cells)
        raise TooLargeError(
            f"the strategy counts {count_text(largest.cells)} cells over {len(largest.axes)} attributes at once "
            f"({bytes_text(cells * _PER_CELL)} in all); the limit is {bytes_text(limit)}, about "
            f"{count_text(limit // _PER_CELL)} cells: ask for products of fewer attributes, or declare coarser domains"
        )
    for product in workload.products:
        own = prod(workload.sizes[axis] for axis in product.axes)
        if product.condition is not None and own > DENSE_LIMIT:
            raise TooLargeError(
                f"a condition is about {count_text(own)} cells of the attributes of its product; the limit is "
                f"{count_text(DENSE_LIMIT)}: ask for products of fewer attributes, or for its parts one by one"
            )
    answers = max(product.queries for product in workload.products)
    if answers * _PER_ANSWER > limit:
        raise TooLargeError(
            f"one product has {count_text(answers)} answers ({bytes_text(answers * _PER_ANSWER)}); the limit is "
            f"{bytes_text(limit)}, about {count_text(limit // _PER_ANSWER)} answers: ask for smaller products"
        )


def physical_memory() -> int:
    """The machine's memory in bytes, 8 GiB where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30
