"""Compaction: products that agree on all attributes but one become one product, until nothing can be merged.

A query is one row on each attribute, so products that differ on a single attribute are together one product, with both
sets of rows on that attribute. Thousands of single queries, in any order, shrink to the few products that a person
would have written (the paper did this by hand for SF1). The Gram matrix stays the same: selection sees fewer terms, and
the user's own products keep their names, tables and weights. A product that is asked twice counts √2 times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations
from typing import TypeAlias, final

import numpy as np

from hdmm.matrix import Array, Condition, Dense, Identity, Matrix, Stack, Total
from hdmm.matrix.wrappers import Complement, Restricted, Select
from hdmm.workload.encode import Encoded, EncodedProduct, encoded_product, essential

_EXPLICIT = 1 << 20
"""The most entries of a matrix that are looked at row by row."""
_WORK = 1 << 22
"""How many products may be looked at in all: as many orders of the attributes are tried as that allows."""
_MOST = 1 << 14
"""Workloads of more products are left as they are."""

Rows: TypeAlias = tuple[int, ...]
"""Rows on one attribute by their numbers, ascending; a row may occur several times."""
Key: TypeAlias = tuple[int, ...]
"""A product: the numbers of its sets of rows on each attribute, then that of its weight and condition."""


def compact(encoded: Encoded) -> Encoded:
    """A workload of no more products, with the same Gram matrix."""
    if not 1 < len(encoded.products) <= _MOST or not encoded.axes:
        return encoded
    book = _Book(encoded.sizes)
    keys = [book.key(product) for product in encoded.products]
    axes = [axis for axis in encoded.axes if len({key[axis] for key in keys}) > 1] or [encoded.axes[0]]
    varied = sorted(axes, key=lambda axis: -len({key[axis] for key in keys}))
    orders = 1 + _WORK // (len(keys) * len(axes) ** 2)
    best = min((book.merge(keys, order) for order in islice(permutations(varied), orders)), key=len)
    if len(best) == len(keys):
        return encoded
    return Encoded(encoded.sizes, tuple(book.product(key) for key in best))


@final
class _Book:
    """Numbers for rows, for sets of rows, and for pairs of a weight and a condition."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._totals = [Total(size) for size in sizes]
        self._numbers: list[dict[object, int]] = [{} for _ in sizes]
        self._rows: list[list[Array | Matrix]] = [[] for _ in sizes]
        self._sets: dict[Rows, int] = {}
        self._members: list[Rows] = []
        self._factors: dict[tuple[int, int], int] = {}
        self._kinds: dict[tuple[Fraction, Condition | None], int] = {}
        self._built: dict[tuple[int, int], Matrix] = {}

    def key(self, product: EncodedProduct) -> Key:
        """A product as numbers."""
        factors = [product.factors.get(axis) or total for axis, total in enumerate(self._totals)]
        kind = self._kinds.setdefault((product.weight, product.condition), len(self._kinds))
        return (*(self._factor(axis, factor) for axis, factor in enumerate(factors)), kind)

    def merge(self, keys: Sequence[Key], order: Sequence[int]) -> list[Key]:
        """Merge along one attribute after the other, again and again until nothing changes."""
        merged = list(keys)
        while True:
            before = len(merged)
            for axis in order:
                groups: dict[Key, list[int]] = {}
                for key in merged:
                    groups.setdefault((*key[:axis], *key[axis + 1 :]), []).append(key[axis])
                merged = [(*rest[:axis], self._union(sets), *rest[axis:]) for rest, sets in groups.items()]
            if len(merged) == before:
                return merged

    def product(self, key: Key) -> EncodedProduct:
        """The product of that number."""
        *sets, kind = key
        weight, condition = list(self._kinds)[kind]
        filtered = () if condition is None else condition.axes
        factors = {axis: self._matrix(axis, number) for axis, number in enumerate(sets)}
        kept = {a: factor for a, factor in factors.items() if a in filtered or not isinstance(factor, Total)}
        return encoded_product(essential(kept, condition), weight, condition).once()

    def _factor(self, axis: int, factor: Matrix) -> int:
        """The number of a factor's set of rows; a factor of several products is looked at once."""
        known = (axis, id(factor))
        if known not in self._factors:
            self._factors[known] = self._set(self._row(axis, row) for row in _rows(factor))
        return self._factors[known]

    def _row(self, axis: int, row: Array | Matrix) -> int:
        numbers = self._numbers[axis]
        name = row if isinstance(row, Matrix) else _name(row)
        if name not in numbers:
            numbers[name] = len(numbers)
            self._rows[axis].append(row)
        return numbers[name]

    def _set(self, rows: Iterable[int]) -> int:
        members = tuple(sorted(rows))
        if members not in self._sets:
            self._sets[members] = len(self._members)
            self._members.append(members)
        return self._sets[members]

    def _union(self, sets: list[int]) -> int:
        return sets[0] if len(sets) == 1 else self._set(row for number in sets for row in self._members[number])

    def _matrix(self, axis: int, number: int) -> Matrix:
        if (axis, number) not in self._built:
            rows = [self._rows[axis][row] for row in self._members[number]]
            self._built[axis, number] = _stacked(rows, self._sizes[axis])
        return self._built[axis, number]


def _rows(factor: Matrix) -> Iterator[Array | Matrix]:
    """A matrix as rows, or as itself where its structure says more than its rows."""
    match factor:
        case Stack() if all(weight == 1 for weight in factor.weights):
            for part in factor.parts:
                yield from _rows(part)
        case Dense() | Identity() | Total() | Select() | Restricted() | Complement():
            if factor.shape[0] * factor.shape[1] > _EXPLICIT:
                yield factor
            else:
                yield from factor.dense()
        case _:
            yield factor


def _stacked(rows: Sequence[Array | Matrix], size: int) -> Matrix:
    """Rows as one matrix, in which the identity and the total are known by their structure."""
    parts: list[Matrix] = [row for row in rows if isinstance(row, Matrix)]
    explicit = [row for row in rows if not isinstance(row, Matrix)]
    often = Counter(_name(row) for row in explicit)
    units = [_name(row) for row in np.eye(size, dtype=np.int64)] if size <= len(explicit) else []
    if units:
        repeats = min(often[unit] for unit in units)
        parts += [Identity(size)] * repeats
        often -= Counter(dict.fromkeys(units, repeats))
    rest = []
    for row in explicit:
        if often[_name(row)] > 0:
            often[_name(row)] -= 1
            rest.append(row)
    parts += [Total(size) for row in rest if (row == 1).all()]
    others = [row for row in rest if not (row == 1).all()]
    parts += [Dense(np.stack(others))] if others else []
    return parts[0] if len(parts) == 1 else Stack(parts)


def _name(row: Array) -> bytes:
    """A row's numbers as bytes: integers and the same numbers as floats are one."""
    return (row.astype(float) + 0.0).tobytes()  # −0.0 and 0.0 are one
