"""What a workload asks of every set of attributes, given two numbers for each of its Gram factors.

A factor V has two numbers on its attribute: one for totals and one for the rest. A term of the Gram asks of each set a
of its attributes the product of its coefficient, of the rest on the attributes in a, and of the totals on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final
from weakref import WeakKeyDictionary

import numpy as np

from hdmm.demand.kron_loss import Problem
from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.gram import Gram

_MAX_SETS = 1 << 22
"""Most sets of attributes that all terms may have, each counted as often as it occurs."""
_CACHE: WeakKeyDictionary[Gram, Subsets] = WeakKeyDictionary()


def subsets_of(gram: Gram) -> Subsets:
    """What a Gram asks of every set of attributes; computed once for each Gram."""
    if gram not in _CACHE:
        _CACHE[gram] = Subsets(gram)
    return _CACHE[gram]


@final
class Subsets:
    """The sets of attributes within the terms of a Gram; attributes of one cell are left out."""

    def __init__(self, gram: Gram) -> None:
        self.axes = [axis for axis, size in enumerate(gram.sizes) if size > 1]
        self.problem = Problem(gram, self.axes)
        place = {axis: i for i, axis in enumerate(self.axes)}
        touched = [tuple(place[axis] for axis in sorted(term.factors) if axis in place) for term in gram.terms]
        if sum(2.0 ** len(places) for places in touched) > _MAX_SETS:
            raise TooLargeError("the products have too many attributes together")
        self.sets: dict[Axes, int] = {}
        """The number of every set of places that occurs."""
        self._groups: list[_Group] = []
        for width in sorted({len(places) for places in touched}):
            rows = [row for row, places in enumerate(touched) if len(places) == width]
            index = [[self.sets.setdefault(a, len(self.sets)) for a in subsets(touched[row])] for row in rows]
            places = np.array([touched[row] for row in rows], np.int64).reshape(len(rows), width)
            which = self.problem.which[np.array(rows)[:, None], places]
            self._groups.append(_Group(places, which, self.problem.coefficients[rows], np.array(index)))

    def asked(self, errors: Sequence[Array]) -> Array:
        """What is asked of every set; for each place two rows hold its factors' numbers on totals and on the rest."""
        total = np.zeros(len(self.sets))
        for group in self._groups:
            group.add(total, errors)
        return np.where(total > 1e-14 * total.max(), total, 0.0)

    def slopes(self, i: int, weights: Array, errors: Sequence[Array]) -> Array:
        """The derivative of the weighted sum of what is asked, by the number on the rest of each factor at place i."""
        slopes = np.zeros(len(self.problem.factors[i]))
        for group in self._groups:
            group.add_slopes(slopes, i, weights, errors)
        return slopes


@final
@dataclass(frozen=True, eq=False)
class _Group:
    """Terms of the workload's Gram on equally many attributes."""

    places: Array
    which: Array
    coefficients: Array
    sets: Array
    """For every term the number of each subset of its places, the smaller ones first."""

    @property
    def _subsets(self) -> Sequence[tuple[int, ...]]:
        return list(subsets(tuple(range(self.places.shape[1]))))

    def add(self, total: Array, errors: Sequence[Array]) -> None:
        """Add c ∏_{i∈a} tr(K_iV_i) ∏_{i∉a} f_iᵀV_if_i to every set's v_a."""
        values = self._values(errors)
        for column, subset in enumerate(self._subsets):
            product = self.coefficients.copy()
            for j, pair in enumerate(values):
                product *= pair[int(j in subset)]
            total += np.bincount(self.sets[:, column], weights=product, minlength=len(total))

    def add_slopes(self, slopes: Array, i: int, weights: Array, errors: Sequence[Array]) -> None:
        """Add ∂(Σ_a weight·v_a)/∂tr(K_iV) to every factor V of attribute i."""
        values = self._values(errors)
        for position in range(self.places.shape[1]):
            here = self.places[:, position] == i
            if not here.any():
                continue
            for column, subset in enumerate(self._subsets):
                if position in subset:
                    product = self.coefficients * weights[self.sets[:, column]]
                    for j, pair in enumerate(values):
                        if j != position:
                            product *= pair[int(j in subset)]
                    slopes += np.bincount(self.which[here, position], weights=product[here], minlength=len(slopes))

    def _values(self, errors: Sequence[Array]) -> list[Array]:
        """For each position the errors on totals and on the rest, term by term."""
        width = max((error.shape[1] for error in errors), default=0)
        table = np.zeros((len(errors), 2, width))
        for i, error in enumerate(errors):
            table[i, :, : error.shape[1]] = error
        columns = zip(self.places.T, self.which.T, strict=True)
        return [table[place, :, which].T for place, which in columns]
