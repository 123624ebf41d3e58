"""What a workload asks of residuals: all that weighing marginals needs to know of it (paper, section 8).

A marginal splits into residuals, one for each subset of its attributes. The Gram of a product enters by two numbers for
each attribute, its trace and its total, so that prefixes, ranges and conditions across attributes are seen like
marginals. A set of attributes is an integer: bit i stands for attribute i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.workload import Encoded, EncodedProduct

MOST = 1 << 20
"""The most residuals that all marginals may have together."""
LARGEST = 1e100
"""Marginals of more cells are not weighed against others: floating point would not last."""
_LEAST = 1e-18
"""What is asked at least of every residual within a product, relative to all errors: it keeps products supported."""


@final
@dataclass(frozen=True, eq=False)
class Demand:
    """What a workload asks of each residual; with every set, ``sets`` holds its subsets."""

    sizes: tuple[float, ...]
    """The cells of each attribute."""
    sets: Array
    """Ascending."""
    errors: Array
    """p_b, positive."""
    _within: dict[int, tuple[float, Array]] = field(default_factory=dict, init=False, repr=False)

    @property
    def attributes(self) -> int:
        """How many attributes there are."""
        return len(self.sizes)

    def rates(self, sets: Array) -> Array:
        """1/N_a for each set; zero beyond floating point."""
        rates = np.ones(len(sets))
        for place, size in enumerate(self.sizes):
            rates *= np.where(has(sets, place), 1 / size, 1.0)
        return rates

    @cached_property
    def widths(self) -> Array:
        """The number of attributes of each set."""
        return widths(self.sets, self.attributes)

    @cached_property
    def largest(self) -> Array:
        """The sets that no other contains."""
        over = np.zeros(len(self.sets), bool)
        for place in range(self.attributes):
            within = has(self.sets, place)
            over[np.searchsorted(self.sets, self.sets[within] - (1 << place))] = True
        return self.sets[~over]

    def within(self, sets: Array) -> list[tuple[float, Array]]:
        """1/N_a and the places of the residuals within it, for each set; they are found once."""
        known = self._within
        new = np.array([one for one in sets.tolist() if one not in known], self.sets.dtype)
        if len(new):
            owners, rows = contained(new, self.sets)
            parts = np.split(rows, np.searchsorted(owners, np.arange(1, len(new))))
            known.update(zip(new.tolist(), zip((self.rates(new)).tolist(), parts, strict=True), strict=True))
        return [known[one] for one in sets.tolist()]

    def grown(self, sets: Array) -> Array:
        """The sets with one attribute more, and themselves."""
        bits = np.array([1 << place for place in range(self.attributes)], sets.dtype)
        return np.union1d(sets, sets[:, None] | bits)

    def fitting(self, sets: Array) -> Array:
        """The sets with no more cells than all that the workload asks for."""
        return sets[self.rates(sets) * self.room >= 1]

    @cached_property
    def room(self) -> float:
        """The cells of all sets together."""
        return float(np.sum(1 / self.rates(self.sets)))

    def limited(self, sets: Array, beside: Array) -> Array:
        """The first of the sets, as many as do not have too many residuals together with others."""
        room = MOST - np.sum(2.0 ** widths(beside, self.attributes))
        return sets[np.cumsum(2.0 ** widths(sets, self.attributes)) <= room]


def demand_of(workload: Encoded, axes: Sequence[int]) -> Demand | None:
    """What the workload asks of the residuals on its axes; None for too many residuals or cells."""
    places = {axis: place for place, axis in enumerate(axes)}
    products = workload.sought.products
    touched = {product.axes for product in products}
    cells = {own: prod(float(workload.sizes[axis]) for axis in own) for own in touched}
    if sum(2.0 ** len(own) for own in touched) > MOST or max(cells.values()) > LARGEST:
        return None
    asked: dict[tuple[int, ...], Array] = {own: np.zeros(1 << len(own)) for own in touched}
    pairs: dict[AxisGram, Array] = {}
    for product in products:
        asked[product.axes] += float(product.weight) ** 2 * _asked(product, pairs)
    total = sum(cells[own] * float(np.clip(errors, 0, None).sum()) for own, errors in asked.items())
    dtype = np.int64 if len(axes) < 63 else object
    sets = [_subsets([places[axis] for axis in own], dtype) for own in asked]
    floors = [np.maximum(errors, _LEAST * (total or 1.0) / cells[own]) for own, errors in asked.items()]
    distinct, which = np.unique(np.concatenate(sets), return_inverse=True)
    errors = np.bincount(which, np.concatenate(floors))
    return Demand(tuple(float(workload.sizes[axis]) for axis in axes), distinct, errors)


def _asked(product: EncodedProduct, pairs: dict[AxisGram, Array]) -> Array:
    """tr(P_b·V)/n for the projection P_b on each residual b, the last axis being the most significant bit of b."""
    total = np.zeros(1 << len(product.axes))
    for term in product.terms:
        errors = np.array([term.coefficient])
        for factor in term.factors.values():
            if factor not in pairs:
                even = factor.total() / factor.size
                pairs[factor] = np.array([[even], [factor.trace() - even]]) / factor.size
            errors = (pairs[factor] * errors).reshape(-1)
        total += errors
    return total


def _subsets(places: Sequence[int], dtype: type) -> Array:
    sets: Array = np.zeros(1, dtype)
    for place in places:
        sets = np.concatenate([sets, sets | (1 << place)])
    return sets


def contained(sets: Array, among: Array) -> tuple[Array, Array]:
    """All pairs of a set and a set among others that lies within it, by their places; ``among`` ascends."""
    attributes = max(int(sets.max(initial=0)).bit_length(), 1)
    members = np.stack([has(sets, place) for place in range(attributes)], axis=1)
    count = members.sum(axis=1)
    pairs = [np.zeros((2, 0), np.int64)]
    for width in np.unique(count):
        chosen = np.flatnonzero(count == width)
        bits = np.nonzero(members[chosen])[1].reshape(len(chosen), width)
        subsets = np.zeros((len(chosen), 1), sets.dtype)
        for place in range(width):
            bit = np.left_shift(np.ones((), sets.dtype), bits[:, place, None].astype(sets.dtype))
            subsets = np.concatenate([subsets, subsets | bit], axis=1)
        found = np.minimum(np.searchsorted(among, subsets), len(among) - 1)
        owner, which = np.nonzero(among[found] == subsets)
        pairs.append(np.stack([chosen[owner], found[owner, which]]))
    owners, places = np.concatenate(pairs, axis=1)
    order = np.lexsort((places, owners))
    return owners[order], places[order]


def has(sets: Array, place: int) -> Array:
    """Which sets hold an attribute."""
    return (sets >> place & 1).astype(bool)


def widths(sets: Array, attributes: int) -> Array:
    """How many attributes each set has."""
    count = np.zeros(len(sets), np.int64)
    for place in range(attributes):
        count += has(sets, place)
    return count
