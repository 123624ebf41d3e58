"""Compaction: products that agree on all attributes but one become one product, until nothing can be merged.

A query is one row on each attribute, so products that differ on a single attribute are together one product, with both
sets of rows on that attribute. Thousands of single queries, in any order, shrink to the few products that a person
would have written (the paper did this by hand for SF1). The Gram matrix stays the same: selection sees fewer terms, and
the user's products keep their names, tables and weights. A product that is asked twice counts √2 times.

Rows, sets of rows, and pairs of a weight and a condition are numbered, so that a product is a short tuple of numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations
from typing import Generic, TypeAlias, TypeVar, final

import numpy as np

from hdmm.matrix import Array, Condition, Dense, Identity, Matrix, Stack, Total
from hdmm.matrix.wrappers import Complement, Restricted, Select
from hdmm.workload.encoded import Encoded, EncodedProduct
from hdmm.workload.essential import essential_product

_MAX_ENTRIES = 1 << 20
"""Most entries of a matrix that is read row by row."""
_MAX_VISITS = 1 << 22
"""Most products that are visited in all; it limits how many orders of the attributes are tried."""
_MAX_PRODUCTS = 1 << 14
"""Workloads of more products are not compacted."""

RowSet: TypeAlias = tuple[int, ...]
"""Rows on one attribute by their numbers, ascending; a row may occur several times."""
Key: TypeAlias = tuple[int, ...]
"""A product: the number of its set of rows on each attribute, then that of its weight and condition."""
Item = TypeVar("Item")


def compact(encoded: Encoded) -> Encoded:
    """The workload in as few products as merging finds, with the same Gram matrix."""
    if not 1 < len(encoded.products) <= _MAX_PRODUCTS or not encoded.axes:
        return encoded
    merger = _Merger(encoded.sizes)
    keys = [merger.key(product) for product in encoded.products]
    axes = [axis for axis in encoded.axes if len({key[axis] for key in keys}) > 1] or [encoded.axes[0]]
    varied = sorted(axes, key=lambda axis: -len({key[axis] for key in keys}))
    orders = 1 + _MAX_VISITS // (len(keys) * len(axes) ** 2)
    best = min((merger.merge(keys, order) for order in islice(permutations(varied), orders)), key=len)
    if len(best) == len(keys):
        return encoded
    return Encoded(encoded.sizes, tuple(merger.product(key) for key in best), encoded.names)


@final
class _Numbered(Generic[Item]):
    """Different items in the order in which they come; each is known by its number."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._numbers: dict[object, int] = {}

    def number(self, item: Item, identity: object) -> int:
        """The number of an item; items of equal identity share one."""
        number = self._numbers.setdefault(identity, len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number


@final
class _Merger:
    """Products as keys, which are compared and merged quickly, and back."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._totals = [Total(size) for size in sizes]
        self._rows: list[_Numbered[Array | Matrix]] = [_Numbered() for _ in sizes]
        self._sets: _Numbered[RowSet] = _Numbered()
        self._kinds: _Numbered[tuple[Fraction, Condition | None]] = _Numbered()
        self._factors: dict[tuple[int, int], int] = {}
        self._matrices: dict[tuple[int, int], Matrix] = {}

    def key(self, product: EncodedProduct) -> Key:
        """The key of a product."""
        factors = [product.factors.get(axis) or total for axis, total in enumerate(self._totals)]
        kind = (product.weight, product.condition)
        return (*(self._factor(axis, factor) for axis, factor in enumerate(factors)), self._kinds.number(kind, kind))

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
        """The product of a key."""
        *sets, kind = key
        weight, condition = self._kinds.items[kind]
        filtered = () if condition is None else condition.axes
        factors = {axis: self._matrix(axis, number) for axis, number in enumerate(sets)}
        kept = {a: factor for a, factor in factors.items() if a in filtered or not isinstance(factor, Total)}
        return essential_product(kept, condition, weight).once()

    def _factor(self, axis: int, factor: Matrix) -> int:
        """The number of a factor's set of rows; a factor of several products is read once."""
        place = (axis, id(factor))
        if place not in self._factors:
            rows = self._rows[axis]
            identities = ((row, row if isinstance(row, Matrix) else _bytes(row)) for row in _rows(factor))
            self._factors[place] = self._set(rows.number(row, identity) for row, identity in identities)
        return self._factors[place]

    def _set(self, rows: Iterable[int]) -> int:
        members = tuple(sorted(rows))
        return self._sets.number(members, members)

    def _union(self, sets: list[int]) -> int:
        return sets[0] if len(sets) == 1 else self._set(row for number in sets for row in self._sets.items[number])

    def _matrix(self, axis: int, number: int) -> Matrix:
        if (axis, number) not in self._matrices:
            rows = [self._rows[axis].items[row] for row in self._sets.items[number]]
            self._matrices[axis, number] = _stacked(rows, self._sizes[axis])
        return self._matrices[axis, number]


def _rows(factor: Matrix) -> Iterator[Array | Matrix]:
    """The rows of a matrix, or the matrix itself if it has a structure or is too large to read."""
    match factor:
        case Stack() if all(weight == 1 for weight in factor.weights):
            for part in factor.parts:
                yield from _rows(part)
        case Dense() | Identity() | Total() | Select() | Restricted() | Complement():
            if factor.shape[0] * factor.shape[1] > _MAX_ENTRIES:
                yield factor
            else:
                yield from factor.dense()
        case _:
            yield factor


def _stacked(rows: Sequence[Array | Matrix], size: int) -> Matrix:
    """Rows as one matrix, in which identities and totals are structured matrices."""
    parts: list[Matrix] = [row for row in rows if isinstance(row, Matrix)]
    explicit = [row for row in rows if not isinstance(row, Matrix)]
    counts = Counter(_bytes(row) for row in explicit)
    units = [_bytes(row) for row in np.eye(size, dtype=np.int64)] if size <= len(explicit) else []
    if units:
        repeats = min(counts[unit] for unit in units)
        parts += [Identity(size)] * repeats
        counts -= Counter(dict.fromkeys(units, repeats))
    rest = []
    for row in explicit:
        if counts[_bytes(row)] > 0:
            counts[_bytes(row)] -= 1
            rest.append(row)
    parts += [Total(size) for row in rest if (row == 1).all()]
    others = [row for row in rest if not (row == 1).all()]
    parts += [Dense(np.stack(others))] if others else []
    return parts[0] if len(parts) == 1 else Stack(parts)


def _bytes(row: Array) -> bytes:
    """A row's numbers as bytes: integers and the same numbers as floats are one."""
    return (row.astype(float) + 0.0).tobytes()  # −0.0 and 0.0 are one
