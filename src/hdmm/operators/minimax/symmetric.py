"""OPT_S for the largest error: the strategy with the best worst answer, by the workload's symmetry.

All answers of one type, in every attribute, have the same variance. Each type has a weight λ, of sum 1; for given
weights the reduced problem of docs/math.md, section 13, is moved towards its optimum, and its dual bounds the worst
ratio of a variance to its limit from below (section 9). Types with larger ratios get more weight, until both agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from hdmm.demand.symmetry import SymmetricBlock, Symmetry
from hdmm.errors import TooLargeError
from hdmm.estimators.symmetric import kind_rows, kind_types
from hdmm.matrix import Array
from hdmm.operators.base import Limits, Proposal
from hdmm.operators.minimax.weighted import UNLIMITED_WEIGHT
from hdmm.operators.symmetric_search import Orbits, Reached, Root, filled, measurable_symmetry
from hdmm.optimise.descent import Effort
from hdmm.parallel import one_blas_thread
from hdmm.workload import Encoded

_MAX_ENTRIES = 1 << 25
"""The most entries of all types of rows, as all blocks see them."""
_MAX_STEPS = 400
_GAP = 1e-3
"""The gap between the worst ratio and its bound at which the steps end."""
_POWER = 1.0
"""λ ← λ·ratio^power, at first: a type whose errors depend on its own weight alone needs 2, others need more."""
_FASTER = 1.2
"""What the power of a type is multiplied by while its ratio stays on one side of the mean,"""
_SLOWER = 0.5
"""and when it changes sides."""
_LEAST_POWER = 0.2
_MAX_POWER = 20.0
_PATIENCE = 40
"""How many steps in a row may fail to improve."""
_ORBIT_POWER = 1.5
"""v ← v·diag(X)^power for the weights of the orbits."""
_LEAST_ORBIT = 1e-9
"""The least weight of an orbit, relative to the largest."""
_FLOOR = 1e-9
"""The least weight of a type, relative to an even one: every answer stays supported."""
_EPS = float(np.finfo(float).eps)


def worst_symmetric(workload: Encoded, limits: Limits, effort: Effort) -> Proposal | None:
    """The strategy with the least worst ratio, and a bound on it; None if too few cells are alike."""
    try:
        symmetry = measurable_symmetry(workload.gram())
        with one_blas_thread():
            return _Search(symmetry, _Types(symmetry, workload, limits)).run(workload.sizes, effort)
    except TooLargeError:
        return None


@final
@dataclass(frozen=True, eq=False)
class _TypeRows:
    """All types of rows as one block sees them, in coordinates of what is asked of the block."""

    span: Array
    """Orthonormal columns that span what is asked of the block."""
    rows: Array
    type: Array
    """The number of the type of each row."""
    aside: Array
    """The Gram of products without a limit, which are only to be answered."""


@final
class _Types:
    """Every type of answer of a workload, with its limit."""

    def __init__(self, symmetry: Symmetry, workload: Encoded, limits: Limits) -> None:
        kinds = dict(zip(symmetry.axes, symmetry.kinds, strict=True))
        spans = [np.linalg.qr(block.root)[0] for block in symmetry.blocks]
        parts: list[list[tuple[Array, Array]]] = [[] for _ in symmetry.blocks]
        self.aside = [np.zeros((span.shape[1],) * 2) for span in spans]
        entries, count = 0, 0
        for product, limit in zip(workload.products, limits, strict=True):
            axes = [axis for axis in product.axes if axis in kinds]
            if len(axes) < len(product.axes):
                raise TooLargeError("an attribute of one cell")
            row_types = [kind_types(product, axis, kinds[axis]) for axis in axes]
            classes = prod(len(axis_types) for axis_types in row_types)
            for place, block in enumerate(symmetry.blocks):
                choice = _choice(symmetry, block)
                if not all(axis in product.axes for axis, _ in choice):
                    continue
                summed = [symmetry.axes[at] for at in block.summed]
                entries += classes * 2 ** len(choice) * len(block.root)
                if entries > _MAX_ENTRIES:
                    raise TooLargeError("there are too many types of answers")
                rows, counts = kind_rows(choice, summed, product, row_types, kinds)
                scale = prod(int(kinds[axis].sizes[kind]) for axis, kind in choice)
                full = np.broadcast_to(counts, (*rows.shape[:-1], 1)).reshape(-1)
                scaled = rows.reshape(len(full), -1) @ spans[place] * (np.sqrt(full) * scale)[:, None]
                if limit is None:
                    self.aside[place] += scaled.T @ scaled / block.multiplicity
                else:
                    which = np.repeat(np.arange(classes), len(full) // classes)
                    kept = full > 0
                    parts[place].append((scaled[kept] / np.sqrt(limit), count + which[kept]))
            if limit is not None:
                count += classes
        self.count = count
        self.rows = [
            _TypeRows(
                span,
                np.vstack([np.zeros((0, len(aside))), *(rows for rows, _ in part)]),
                np.concatenate([np.zeros(0, np.int64), *(which for _, which in part)]),
                aside,
            )
            for span, part, aside in zip(spans, parts, self.aside, strict=True)
        ]


def _choice(symmetry: Symmetry, block: SymmetricBlock) -> tuple[tuple[int, int], ...]:
    return tuple((symmetry.axes[at], kind) for at, kind in enumerate(block.within) if kind is not None)


@final
class _Search:
    """The weights of the types and of the orbits."""

    def __init__(self, symmetry: Symmetry, types: _Types) -> None:
        self._symmetry = symmetry
        self._types = types
        self._orbits = Orbits(symmetry)
        self._shares = np.full(types.count, 1 / types.count)
        total = sum(b.multiplicity * float((r.rows**2).sum()) for b, r in zip(symmetry.blocks, types.rows, strict=True))
        aside = sum(b.multiplicity * float(np.trace(a)) for b, a in zip(symmetry.blocks, types.aside, strict=True))
        self._aside = UNLIMITED_WEIGHT * total / types.count / aside if aside else 0.0

    def run(self, sizes: Sequence[int], effort: Effort) -> Proposal:
        """Move both weights until the gap is small, or nothing improves."""
        best: Reached | None = None
        least, bound, idle = np.inf, 0.0, 0
        powers, above = np.full(self._types.count, _POWER), np.zeros(self._types.count, bool)
        for _ in range(_MAX_STEPS):
            bounding = [self._root(place, 0.0) for place in range(len(self._types.rows))]
            roots = [self._supporting(place, root) for place, root in enumerate(bounding)]
            reached = self._orbits.reach(roots, bounding)
            bound = max(bound, reached.bound)
            ratios = self._ratios(reached.roots) * reached.largest
            worst = float(ratios.max())
            idle = 0 if worst < least * (1 - _GAP / 200) else idle + 1
            if worst < least:
                least, best = worst, reached
            if least <= bound * (1 + _GAP) or idle == _PATIENCE or effort.over:
                break
            relative = ratios / (self._shares @ ratios)
            powers = np.where((relative > 1) == above, np.minimum(powers * _FASTER, _MAX_POWER), powers * _SLOWER)
            powers, above = np.maximum(powers, _LEAST_POWER), relative > 1
            moved = self._shares * relative**powers
            self._shares = np.maximum(moved / moved.sum(), _FLOOR / len(moved))
            weights = self._orbits.weights * reached.diagonal**_ORBIT_POWER
            self._orbits.weights = np.maximum(weights / weights.max(), _LEAST_ORBIT)
        assert best is not None
        return Proposal(self._orbits.strategy(best, sizes), bound)

    def _supporting(self, place: int, root: Array) -> Array:
        """The root of a block's Gram with a little more, so that all products are answered and it can be rounded."""
        if self._aside and self._types.aside[place].any():
            root = self._root(place, self._aside)
        return filled(root) if self._orbits.bases[place] is None else root

    def _root(self, place: int, aside: float) -> Array:
        """A root of the weighted types' Gram on a block."""
        rows, block = self._types.rows[place], self._symmetry.blocks[place]
        gram = (rows.rows.T * self._shares[rows.type]) @ rows.rows / block.multiplicity + aside * rows.aside
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        kept = values > len(values) * _EPS * values[-1]
        return rows.span @ (vectors[:, kept] * np.sqrt(values[kept]))

    def _ratios(self, roots: Sequence[Root]) -> Array:
        """The ratio of every type's variance to its limit, for X itself."""
        ratios = np.zeros(self._types.count)
        for rows, root in zip(self._types.rows, roots, strict=True):
            ratios += np.bincount(rows.type, weights=root.variances(rows.rows, rows.span), minlength=len(ratios))
        return ratios
