"""How much memory a release needs, from public shapes alone, before anything large is allocated.

What is estimated follows the code: counting, then measuring block by block, in place of the counts where it can be, and
then reconstructing beside the noisy answers. A single work array that would take more than half of the memory is in a
temporary file instead (:mod:`hdmm.matrix.workspace`).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import final

from hdmm.errors import InputError, TooLargeError
from hdmm.matrix import DENSE_LIMIT, Identity, Matrix, Total
from hdmm.matrix.exact import slab_size
from hdmm.matrix.kronecker import PIECE, Step, work_size
from hdmm.matrix.subsets import Axes, subsets
from hdmm.matrix.threads import MOST
from hdmm.matrix.workspace import limited, memory_limit, on_disk
from hdmm.numbers import fraction, shown
from hdmm.strategy import Block, JointStrategy, KronStrategy, MarginalStrategy, Strategy, UnionStrategy
from hdmm.texttable import bytes_text, count_text
from hdmm.workload import Encoded, EncodedProduct

_NUMBER = 8
_COUNTED = 2
"""Counts, and as much again while the answers of one table are put together."""
_SLABS = 8
"""Arrays of a slab's size while its exact answers are put together."""
_PIECES = 16
"""Arrays of a piece's size in every thread."""
_TABLES = 3
"""Arrays of a marginal's size while it is put together from its parts."""
_SOLVING = 8
"""Vectors of unknowns, and of answers, while least squares is iterated."""
_LARGEST_COUNT = 1 << 30
"""Records in one cell; where one had more, slabs could be larger than is expected here."""
_PROGRAM = 1 << 27
"""What the program itself takes."""
_VECTORS = 24
"""More arrays of a block's size than there ever are, apart from answers."""
_PER_ANSWER = 8 * 8
"""Answer, standard error, both ends of the interval, labels and their copy in a table."""
_PER_PREDICATE = 384
"""Bytes for each predicate on one attribute: its label, as text too, and what sorts predicates by their errors."""
_PER_CELL = 16 * 8
"""Bytes for each cell of one attribute: vectors of its size while a plan is made and explained."""
REMEDY = "ask for fewer attributes, values or ranges, declare bins or coarser domains, or allow more memory (--memory)"
_LONGEST_SIZE = 100
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@final
@dataclass(frozen=True)
class Need:
    """Bytes of memory at most, and of temporary files."""

    memory: int
    disk: int


def memory_size(given: str | int) -> int:
    """A number of bytes, from text such as "8GB" or "500 MiB"."""
    remedy = 'expected a size, for example memory="8GB" or memory="500MB"'
    if isinstance(given, int) and not isinstance(given, bool):
        size = given
    else:
        found = _SIZE.fullmatch(given) if isinstance(given, str) and len(given) <= _LONGEST_SIZE else None
        if found is None:
            raise InputError(f"memory={shown(given)}: {remedy}")
        size = int(fraction(found[1]) * (1024 if found[3] else 1000) ** _UNITS[found[2].lower()])
    if not 0 < size <= sys.maxsize:
        raise InputError(f"memory={shown(given)}: {remedy}")
    return size


@contextmanager
def allowed(given: str | int | None) -> Iterator[None]:
    """Within it, so much memory may be used; None leaves it as it is, by default half of the machine's."""
    with limited(None if given is None else memory_size(given)):
        yield


def check_limit(limit: int) -> None:
    """Refuse less than the program itself takes."""
    if limit <= _fixed():
        raise TooLargeError(
            f"memory: the program itself takes {bytes_text(_fixed())}, the limit is {bytes_text(limit)}; allow more "
            "memory (--memory)"
        )


def check_memory(strategy: Strategy, workload: Encoded, limit: int | None = None) -> None:
    """Refuse a strategy whose tables, or a workload whose answers, would not fit: by default half of the memory."""
    limit = limit if limit is not None else memory_limit()
    if not _surely_fits(strategy.blocks, workload, limit):
        check_limit(limit)
        need, fixed = needed(strategy, workload, limit), _fixed()
        if need.memory > limit:
            largest = max(strategy.blocks, key=lambda block: block.cells)
            fits = (limit - fixed) * sum(block.cells for block in strategy.blocks) // (need.memory - fixed)
            raise TooLargeError(
                f"the strategy counts {count_text(largest.cells)} cells over {len(largest.axes)} attributes at once "
                f"({bytes_text(need.memory)} in all); the limit is {bytes_text(limit)}, about {count_text(fits)} "
                "cells: ask for products of fewer attributes, declare coarser domains, or allow more memory (--memory)"
            )
    check_workload(workload, limit)


def check_workload(workload: Encoded, limit: int | None = None) -> None:
    """Refuse a workload that no strategy can answer within the limit, from the shapes of its products alone."""
    limit = limit if limit is not None else memory_limit()
    checked: set[tuple[tuple[tuple[int, int], ...], bool]] = set()  # thousands of products share a few shapes
    for product in workload.products:
        shapes = tuple(factor.shape for factor in product.factors.values())
        if (shapes, product.condition is None) not in checked:
            checked.add((shapes, product.condition is None))
            _check_product(product, shapes, limit)


def _check_product(product: EncodedProduct, shapes: Sequence[tuple[int, int]], limit: int) -> None:
    named = f"product {product.name!r}" if product.name else "one product"
    cells = prod(columns for _, columns in shapes)
    if product.condition is not None and cells > DENSE_LIMIT:
        raise TooLargeError(
            f"{named}: its condition is about {count_text(cells)} cells of the attributes of the product; the limit is "
            f"{count_text(DENSE_LIMIT)}: ask for products of fewer attributes, or for its parts one by one"
        )
    answers, counted = product.queries * _PER_ANSWER, cells * _NUMBER * _COUNTED
    needs = [
        (answers, f"has {count_text(product.queries)} answers", f"{count_text(limit // _PER_ANSWER)} answers"),
        (counted, f"is about {count_text(cells)} cells", f"{count_text(limit // (_NUMBER * _COUNTED))} cells"),
    ]
    for rows, columns in shapes:
        need = rows * _PER_PREDICATE + columns * _PER_CELL
        asked = f"asks {count_text(rows)} predicates of an attribute of {count_text(columns)} values"
        some = "predicates" if rows >= columns else "values"
        needs.append((need, asked, f"{count_text(max(rows, columns) * limit // need)} {some}"))
    need, asked, fits = max(needs)  # the one that leaves least room, so that what is said to fit does
    if need > limit:
        raise TooLargeError(
            f"{named} {asked} ({bytes_text(need)}); the limit is {bytes_text(limit)}, about {fits}: {REMEDY}"
        )


def check_disk(strategy: Strategy, workload: Encoded, limit: int | None = None) -> None:
    """Refuse a release whose temporary files would not fit."""
    limit = limit if limit is not None else memory_limit()
    if _surely_fits(strategy.blocks, workload, limit):
        return
    need, place = needed(strategy, workload, limit).disk, tempfile.gettempdir()
    free = shutil.disk_usage(place).free
    if need > free:
        raise TooLargeError(
            f"work files of {bytes_text(need)} do not fit {place}, where {bytes_text(free)} are free; set TMPDIR to a "
            "directory with more room, or allow more memory (--memory)"
        )


def needed(strategy: Strategy, workload: Encoded, limit: int) -> Need:
    """The most that a release has in memory and on disk at any time."""
    measuring = _measuring(strategy.blocks, limit)
    kept = sum(_NUMBER * block.queries for block in strategy.blocks)
    states = list(_state(strategy))
    answering = max(_answering(strategy, product) for product in workload.products)
    memory, disk = _placed([*states, answering], limit)
    return Need(max(measuring.memory, kept + memory) + _fixed(), max(measuring.disk, disk))


def _fixed() -> int:
    """What is needed however small the tables are."""
    return _PIECES * PIECE * _NUMBER * min(os.cpu_count() or 1, MOST) + _PROGRAM


def _surely_fits(blocks: Sequence[Block], workload: Encoded, limit: int) -> bool:
    """A quick answer for strategies of very many blocks: all there ever is of a block is far less than this."""
    cells = sum(prod(1 + max(factor.shape) for factor in block.factors) for block in blocks)
    growth = max(
        prod(max(1, -(-rows // columns)) for rows, columns in (one.shape for one in product.factors.values()))
        for product in workload.products
    )
    return cells * _NUMBER * _VECTORS * growth + _fixed() <= limit


def _measuring(blocks: Sequence[Block], limit: int) -> Need:
    """Counts give way to noisy answers, block by block."""
    tables = {block.axes: _NUMBER * block.cells for block in blocks}
    last = {block.axes: index for index, block in enumerate(blocks)}
    memory, disk = sum(tables.values()), 0
    most, most_disk = _COUNTED * memory, 0
    for index, block in enumerate(blocks):
        size = _NUMBER * max(work_size(_steps(block.factors)), block.queries)
        slab = 0 if block.condition is not None else slab_size(block.factors, _LARGEST_COUNT)
        spare = last[block.axes] == index
        in_place = spare and size <= tables[block.axes] and block.condition is None
        own, own_disk = (0, 0) if in_place else _placed([size], limit)
        extra = _SLABS * _NUMBER * slab if slab > PIECE else 0
        if block.condition is not None:
            extra += 2 * tables[block.axes]
        memory, disk = memory + own, disk + own_disk
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


def _steps(factors: Iterable[Matrix], *, inverse: bool = False) -> list[Step]:
    """Steps of the factors' shapes, or of their inverses', to be measured only."""
    return [
        Step(*(factor.shape[::-1] if inverse else factor.shape), None if isinstance(factor, Identity) else abs)
        for factor in factors
    ]


@singledispatch
def _state(strategy: Strategy) -> Sequence[int]:
    """The arrays that are kept beside the noisy answers, and those that make them, in bytes."""
    return ()


@_state.register
def _(strategy: KronStrategy) -> Sequence[int]:
    return [_estimate(strategy.block)]


@_state.register
def _(strategy: UnionStrategy) -> Sequence[int]:
    return [_estimate(block) for block in strategy.blocks]


@_state.register
def _(strategy: JointStrategy) -> Sequence[int]:
    tables = [_NUMBER * block.cells for block in strategy.blocks]  # of places; one more of counts
    unknown, seen = sum(tables), sum(_NUMBER * block.queries for block in strategy.blocks)
    return [*tables, max(tables), *[unknown] * _SOLVING, *[seen] * _SOLVING]


@_state.register
def _(strategy: MarginalStrategy) -> Sequence[int]:
    residuals: set[Axes] = set()
    for block in strategy.blocks:
        residuals.update(subsets(block.axes))
    sums = max(prod(1 + factor.shape[1] for factor in block.factors) for block in strategy.blocks)
    work = max(_estimate(block) for block in strategy.blocks)
    return [*(_NUMBER * prod(strategy.sizes[axis] for axis in one) for one in residuals), _NUMBER * sums, work]


def _estimate(block: Block) -> int:
    if all(isinstance(factor, Identity) for factor in block.factors):
        return 0
    return _NUMBER * work_size(_steps(block.factors, inverse=True))


@singledispatch
def _answering(strategy: Strategy, product: EncodedProduct) -> int:
    """What answering a product takes, its answers included, in bytes."""
    table = prod(strategy.sizes[axis] for axis in product.axes)
    return _NUMBER * (_TABLES * table + work_size(_steps(product.factors.values()) or [Step(1, 1, None)]))


@_answering.register(KronStrategy)
@_answering.register(UnionStrategy)
def _(strategy: KronStrategy | UnionStrategy, product: EncodedProduct) -> int:
    sizes = [
        work_size(_steps(product.factors.get(axis) or Total(strategy.sizes[axis]) for axis in block.axes))
        for block in strategy.blocks
        if block.axes and set(product.axes) <= set(block.axes)
    ]
    conditions = 0 if product.condition is None else 2 * prod(strategy.sizes[axis] for axis in product.axes)
    return _NUMBER * (max(sizes, default=1) + conditions)
