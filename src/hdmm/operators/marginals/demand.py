"""What a workload asks of residuals: all that the search for weights of marginals needs (paper, section 8).

A marginal splits into residuals, one for each subset of its attributes. The Gram of a product enters by two numbers for
each attribute, its trace and its total, so that prefixes, ranges and conditions across attributes are treated like
marginals. A set of attributes is an integer: bit i stands for attribute i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, final

import numpy as np

from hdmm.matrix import Array, AxisGram
from hdmm.workload import Encoded, EncodedProduct

MAX_RESIDUALS = 1 << 20
"""The most residuals that all marginals may have together."""
MAX_CELLS = 1e100
"""The most cells of a marginal: with more, floating point would overflow."""
LEAST_SHARE = 1e-18
"""The least error asked of every residual within a product, relative to all: it keeps products supported."""


@final
@dataclass(frozen=True, eq=False)
class Demand:
    """What a workload asks of each residual. With every set, ``sets`` also has its subsets."""

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
            rates *= np.where(holds(sets, place), 1 / size, 1.0)
        return rates

    @cached_property
    def widths(self) -> Array:
        """The number of attributes of each set."""
        return count_attributes(self.sets, self.attributes)

    @cached_property
    def largest(self) -> Array:
        """The sets that no other contains."""
        covered = np.zeros(len(self.sets), bool)
        for place in range(self.attributes):
            larger = self.sets[holds(self.sets, place)]
            covered[np.searchsorted(self.sets, larger - (1 << place))] = True
        return self.sets[~covered]

    def within(self, sets: Array) -> list[tuple[float, Array]]:
        """For each set 1/N_a and the places of the residuals within it; computed once per set."""
        new = np.array([a for a in sets.tolist() if a not in self._within], self.sets.dtype)
        if len(new):
            owners, rows = contained(new, self.sets)
            parts = np.split(rows, np.searchsorted(owners, np.arange(1, len(new))))
            self._within.update(zip(new.tolist(), zip((self.rates(new)).tolist(), parts, strict=True), strict=True))
        return [self._within[a] for a in sets.tolist()]

    def grown(self, sets: Array) -> Array:
        """The sets, and those with one attribute more."""
        bits = np.array([1 << place for place in range(self.attributes)], sets.dtype)
        return np.union1d(sets, sets[:, None] | bits)

    def fitting(self, sets: Array) -> Array:
        """The sets with no more cells than all sets of the workload have together."""
        return sets[self.rates(sets) * self._cells >= 1]

    @cached_property
    def _cells(self) -> float:
        """The cells of all sets together."""
        return float(np.sum(1 / self.rates(self.sets)))

    def limited(self, sets: Array, others: Array) -> Array:
        """The first sets, as many as keep within the limit on residuals together with the others."""
        room = MAX_RESIDUALS - np.sum(2.0 ** count_attributes(others, self.attributes))
        return sets[np.cumsum(2.0 ** count_attributes(sets, self.attributes)) <= room]


def demand_of(workload: Encoded, axes: Sequence[int]) -> Demand | None:
    """What the workload asks of the residuals on its axes; None if there are too many residuals or cells."""
    places = {axis: place for place, axis in enumerate(axes)}
    products = workload.sought.products
    touched = {product.axes for product in products}
    cells = {key: prod(float(workload.sizes[axis]) for axis in key) for key in touched}
    if sum(2.0 ** len(key) for key in touched) > MAX_RESIDUALS or max(cells.values()) > MAX_CELLS:
        return None
    asked: dict[tuple[int, ...], Array] = {key: np.zeros(1 << len(key)) for key in touched}
    pairs: dict[AxisGram, Array] = {}
    for product in products:
        asked[product.axes] += float(product.weight) ** 2 * _residual_errors(product, pairs)
    total = sum(cells[key] * float(np.clip(errors, 0, None).sum()) for key, errors in asked.items())
    dtype = np.int64 if len(axes) < 63 else object
    sets = [_subsets(np.array([[places[axis] for axis in key]], np.int64), dtype)[0] for key in asked]
    raised = [np.maximum(errors, LEAST_SHARE * (total or 1.0) / cells[key]) for key, errors in asked.items()]
    distinct, numbers = np.unique(np.concatenate(sets), return_inverse=True)
    errors = np.bincount(numbers, np.concatenate(raised))
    return Demand(tuple(float(workload.sizes[axis]) for axis in axes), distinct, errors)


def _residual_errors(product: EncodedProduct, pairs: dict[AxisGram, Array]) -> Array:
    """tr(P_b·V)/n for the projection P_b on each residual b, the last axis being the most significant bit of b."""
    total = np.zeros(1 << len(product.axes))
    for term in product.terms:
        errors = np.array([term.coefficient])
        for factor in term.factors.values():
            if factor not in pairs:
                on_total = factor.total() / factor.size
                pairs[factor] = np.array([[on_total], [factor.trace() - on_total]]) / factor.size
            errors = (pairs[factor] * errors).reshape(-1)
        total += errors
    return total


def contained(sets: Array, among: Array) -> tuple[Array, Array]:
    """All pairs of a set and a subset of it in ``among``, which ascends: the places of both, in ascending order."""
    attributes = max(int(sets.max(initial=0)).bit_length(), 1)
    members = np.stack([holds(sets, place) for place in range(attributes)], axis=1)
    widths = members.sum(axis=1)
    pairs = [np.zeros((2, 0), np.int64)]
    for width in np.unique(widths):  # sets of one width have equally many subsets: these are one array
        chosen = np.flatnonzero(widths == width)
        subsets = _subsets(np.nonzero(members[chosen])[1].reshape(len(chosen), width), sets.dtype)
        places = np.minimum(np.searchsorted(among, subsets), len(among) - 1)
        row, column = np.nonzero(among[places] == subsets)
        pairs.append(np.stack([chosen[row], places[row, column]]))
    owners, places = np.concatenate(pairs, axis=1)
    order = np.lexsort((places, owners))
    return owners[order], places[order]


def _subsets(members: Array, dtype: type | np.dtype[Any]) -> Array:
    """A row for each row of attributes, with all of its subsets."""
    subsets = np.zeros((len(members), 1), dtype)
    for column in members.T:
        bits = np.left_shift(np.ones((), dtype), column[:, None].astype(dtype))
        subsets = np.concatenate([subsets, subsets | bits], axis=1)
    return subsets


def holds(sets: Array, place: int) -> Array:
    """Which sets hold an attribute."""
    return (sets >> place & 1).astype(bool)


def count_attributes(sets: Array, attributes: int) -> Array:
    """How many attributes each set has."""
    count = np.zeros(len(sets), np.int64)
    for place in range(attributes):
        count += holds(sets, place)
    return count
