"""How much memory a release needs, from public shapes alone, before anything large is allocated.

The estimate follows the code: counting, then measuring block by block, in place of the counts if possible, and then
reconstructing beside the noisy answers. A single work array that would take more than half of the memory is in a
temporary file instead (:mod:`hdmm.memory.workspace`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

from hdmm.errors import TooLargeError
from hdmm.estimators.estimator import LinearEstimator
from hdmm.estimators.footprint import NUMBER, solution_bytes, steps
from hdmm.matrix import DENSE_LIMIT
from hdmm.matrix.exact import slab_size
from hdmm.matrix.kronecker import PIECE, work_size
from hdmm.memory import memory_limit, more_memory
from hdmm.memory.workspace import on_disk
from hdmm.parallel import MAX_THREADS
from hdmm.strategy import Block
from hdmm.syntax import argument, either
from hdmm.text import bytes_text, count_text
from hdmm.workload import Encoded, EncodedProduct

_COUNT_ARRAYS = 2
"""Arrays of a table's size: its counts, and as much again while its answers are put together."""
_SLAB_ARRAYS = 8
"""Arrays of a slab's size while its exact answers are put together."""
_PIECE_ARRAYS = 16
"""Arrays of a piece's size in every thread."""
_LARGEST_COUNT = 1 << 30
"""Records in one cell; with more, slabs could be larger than is expected here."""
_PROGRAM_BYTES = 1 << 27
"""Bytes that the program itself takes."""
_MAX_BLOCK_ARRAYS = 24
"""More arrays of a block's size than there ever are, apart from answers."""
_ANSWER_BYTES = 8 * 8
"""Bytes for each answer: itself, standard error, both ends of the interval, labels and their copy in a table."""
_PREDICATE_BYTES = 384
"""Bytes for each predicate on one attribute: its label, as text too, and the arrays that group predicates by error."""
_CELL_BYTES = 16 * 8
"""Bytes for each cell of one attribute: vectors of its size while a plan is made and explained."""


_MAX_LISTED_ROWS = 1 << 32
"""Rows of the longest table that is written; the file of a longer one would have more than 30 GB."""
_MAX_LISTED_PREDICATES = 1 << 24
"""Most predicates of an attribute that tables have labels for; all ranges of 5,792 values are fewer."""


def unlisted(product: EncodedProduct) -> str | None:
    """Why a product has no table, on whatever machine: there are too many answers to list. None if it has one."""
    longest = max((factor.shape[0] for factor in product.factors.values()), default=0)
    if product.queries <= _MAX_LISTED_ROWS and longest <= _MAX_LISTED_PREDICATES:
        return None
    return (
        f"has {count_text(product.queries)} answers, too many for a table: none is written, and its largest error is "
        "not computed; ask the release for single answers, at no cost "
        f"({either(python='release.answer(workload)', command='hdmm answer OUT SQL')})"
    )


def check_listed(product: EncodedProduct) -> None:
    """Refuse a product that has no table."""
    reason = unlisted(product)
    if reason is not None:
        raise TooLargeError(f"product {product.name!r}: {reason}")


def listed(workload: Encoded) -> list[EncodedProduct]:
    """The products that have a table."""
    return [product for product in workload.products if unlisted(product) is None]


def remedy(needed: int | None = None) -> str:
    """What to do if something does not fit into memory."""
    return f"ask for fewer attributes, values or ranges, declare bins or coarser domains{more_memory(needed)}"


@final
@dataclass(frozen=True)
class Need:
    """Bytes of memory at most, and of temporary files."""

    memory: int
    disk: int


def check_limit() -> None:
    """Refuse a limit below what the program itself takes."""
    limit = memory_limit()
    if limit <= _fixed():
        raise TooLargeError(
            f"{argument('memory')}: the program itself takes {bytes_text(_fixed())}, the limit is {bytes_text(limit)}; "
            f"{more_memory().removeprefix(', or ')}"
        )


def check_memory(estimator: LinearEstimator[Any], workload: Encoded) -> None:
    """Refuse a strategy whose tables, or a workload whose answers, would not fit: by default half of the memory."""
    limit = memory_limit()
    if not _surely_fits(estimator.blocks, workload, limit):
        check_limit()
        need, fixed = needed(estimator, workload, limit), _fixed()
        if need.memory > limit:
            largest = max(estimator.blocks, key=lambda block: block.cells)
            fits = (limit - fixed) * sum(block.cells for block in estimator.blocks) // (need.memory - fixed)
            raise TooLargeError(
                f"the strategy counts {count_text(largest.cells)} cells over {len(largest.axes)} attributes at once "
                f"({bytes_text(need.memory)} in all); the limit is {bytes_text(limit)}, about {count_text(fits)} "
                f"cells: ask for products of fewer attributes, declare coarser domains{more_memory(need.memory)}"
            )
    check_workload(workload)


def check_workload(workload: Encoded, *, all_tables: bool = False) -> None:
    """Refuse a workload that no strategy can answer within the limit, from the shapes of its products alone.

    With ``all_tables`` also one with a product that has no table.
    """
    limit = memory_limit()
    checked: set[tuple[tuple[tuple[int, int], ...], bool]] = set()  # thousands of products share a few shapes
    for product in workload.products:
        shapes = tuple(factor.shape for factor in product.factors.values())
        if (shapes, product.condition is None) not in checked:
            checked.add((shapes, product.condition is None))
            _check_product(product, shapes, limit, table=all_tables or unlisted(product) is None)


def _check_product(product: EncodedProduct, shapes: Sequence[tuple[int, int]], limit: int, *, table: bool) -> None:
    named = f"product {product.name!r}" if product.name else "one product"
    cells = prod(columns for _, columns in shapes)
    if product.condition is not None and cells > DENSE_LIMIT:
        raise TooLargeError(
            f"{named}: its condition is about {count_text(cells)} cells of the attributes of the product; the limit is "
            f"{count_text(DENSE_LIMIT)}: ask for products of fewer attributes, or for its parts one by one"
        )
    answers = product.queries * _ANSWER_BYTES if table else 0
    counted = cells * NUMBER * _COUNT_ARRAYS
    needs = [
        (answers, f"has {count_text(product.queries)} answers", f"{count_text(limit // _ANSWER_BYTES)} answers"),
        (counted, f"is about {count_text(cells)} cells", f"{count_text(limit // (NUMBER * _COUNT_ARRAYS))} cells"),
    ]
    for rows, columns in shapes:
        need = (rows * _PREDICATE_BYTES if table else 0) + columns * _CELL_BYTES
        asked = f"asks {count_text(rows)} predicates of an attribute of {count_text(columns)} values"
        some = "predicates" if rows >= columns and table else "values"
        needs.append((need, asked, f"{count_text((rows if some == 'predicates' else columns) * limit // need)} {some}"))
    need, asked, fits = max(needs)  # the largest need, so that what the message says would fit does fit
    if need > limit:
        raise TooLargeError(
            f"{named} {asked} ({bytes_text(need)}); the limit is {bytes_text(limit)}, about {fits}: {remedy(need)}"
        )


def check_disk(estimator: LinearEstimator[Any], workload: Encoded) -> None:
    """Refuse a release whose temporary files would not fit."""
    limit = memory_limit()
    if _surely_fits(estimator.blocks, workload, limit):
        return
    need, place = needed(estimator, workload, limit).disk, tempfile.gettempdir()
    free = shutil.disk_usage(place).free
    if need > free:
        raise TooLargeError(
            f"work files of {bytes_text(need)} do not fit {place}, where {bytes_text(free)} are free; set TMPDIR to a "
            f"directory with more room{more_memory()}"
        )


def needed(estimator: LinearEstimator[Any], workload: Encoded, limit: int) -> Need:
    """The most that a release has in memory and on disk at any time."""
    measuring = _measuring(estimator.blocks, limit)
    kept = sum(NUMBER * block.queries for block in estimator.blocks)
    answering = max(
        (estimator.answer_bytes(product) + _label_bytes(product) for product in listed(workload)), default=0
    )
    memory, disk = _placed([*estimator.state_bytes(), answering], limit)
    return Need(max(measuring.memory, kept + memory) + _fixed(), max(measuring.disk, disk))


def _fixed() -> int:
    """Bytes that are needed however small the tables are."""
    return _PIECE_ARRAYS * PIECE * NUMBER * min(os.cpu_count() or 1, MAX_THREADS) + _PROGRAM_BYTES


def _surely_fits(blocks: Sequence[Block], workload: Encoded, limit: int) -> bool:
    """Whether a generous estimate fits: quick for strategies of very many blocks."""
    cells = sum(prod(1 + max(factor.shape) for factor in block.factors) for block in blocks)
    growths = [
        prod(max(1, -(-rows // columns)) for rows, columns in (factor.shape for factor in product.factors.values()))
        for product in listed(workload)
    ]
    growth = max(growths, default=1)
    extra = sum(sum(solution_bytes(block)) for block in blocks)
    extra += max(map(_label_bytes, listed(workload)), default=0)
    return cells * NUMBER * _MAX_BLOCK_ARRAYS * growth + extra + _fixed() <= limit


def _label_bytes(product: EncodedProduct) -> int:
    """The labels of a product's predicates, and what groups these by error."""
    return _PREDICATE_BYTES * sum(factor.shape[0] for factor in product.factors.values())


def _measuring(blocks: Sequence[Block], limit: int) -> Need:
    """The need while counts are replaced by noisy answers, block by block."""
    tables = {block.axes: NUMBER * block.cells for block in blocks}
    last = {block.axes: index for index, block in enumerate(blocks)}
    memory, disk = sum(tables.values()), 0
    most, most_disk = _COUNT_ARRAYS * memory, 0
    for index, block in enumerate(blocks):
        size = NUMBER * max(work_size(steps(block.factors)), block.queries)
        slab = 0 if block.condition is not None else slab_size(block.factors, _LARGEST_COUNT)
        spare = last[block.axes] == index
        in_place = spare and size <= tables[block.axes] and block.condition is None
        answers, answers_disk = (0, 0) if in_place else _placed([size], limit)
        extra = _SLAB_ARRAYS * NUMBER * slab if slab > PIECE else 0
        if block.condition is not None:
            extra += 2 * tables[block.axes]
        memory, disk = memory + answers, disk + answers_disk
        most, most_disk = max(most, memory + extra), max(most_disk, disk)
        if spare and not in_place:
            memory -= tables[block.axes]
    return Need(most, most_disk)


def _placed(sizes: Iterable[int], limit: int) -> tuple[int, int]:
    """How much of these arrays is in memory, and how much in files."""
    memory = disk = 0
    for size in sizes:
        if on_disk(size, limit):
            disk += size
        else:
            memory += size
    return memory, disk
