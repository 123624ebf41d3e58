"""GreedyH: a binary hierarchy whose counts are weighted for the workload (Li, Hay, Miklau and Wang, 2014).

The strategy of a part is its own count, times λ, on those of its halves, times 1 − λ; λ is the best of 0, 0.01, …, 0.99
by an estimate of the error, bottom up. Parts that the workload does not divide get one count. Everything that is needed
of the halves' inverse Grams is their row sums u, so that nothing but products of the workload's Gram G is written out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hdmm.matrix import Array, AxisGram, Norm
from hdmm.matrix.hierarchy import balanced_sizes, parents_of, starts_of
from hdmm.matrix.tree import Tree
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Block, Strategy
from hdmm.text import count_text
from hdmm.workload import Encoded

_MAX_CELLS = 1 << 12
"""The most values: products of the Gram with a vector for each of them are written out."""
_STEPS = 100
"""How many weights are tried for a count, in equal steps."""
_COLUMNS = 1 << 8
"""Vectors that are multiplied by the Gram at a time."""


@final
@dataclass(frozen=True)
class GreedyH(Operator):
    """Measure a binary tree of interval counts on one attribute, weighted for the workload bottom up."""

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        axes = workload.axes
        if not axes:
            return Aside("only totals are asked for: there are no ordered values to divide")
        if len(axes) > 1:
            return Aside(f"the workload is about {len(axes)} attributes; GreedyH takes exactly one")
        cells = workload.sizes[axes[0]]
        if cells > _MAX_CELLS:
            name = workload.attribute(axes[0])
            return Aside(f"{name} has {count_text(cells)} values; GreedyH takes at most {_MAX_CELLS:,}")
        tree = greedy_tree(workload.compact.gram().on(axes).axis_gram())
        return Proposal(Strategy(workload.sizes, (Block(axes, (tree,)),), "kron"))


def greedy_tree(gram: AxisGram) -> Tree:
    """The weighted hierarchy for a workload with this Gram."""
    sizes = _divided(balanced_sizes(gram.size, 2), _alike(gram))
    parents = parents_of(sizes)
    u = 1 / sizes[-1]
    answers = _answers(gram, sizes[-1]) * u  # Gu for every part
    errors, squares, sums = (answers**2).sum(axis=0), (answers**2).sum(axis=0), np.ones(len(u))
    shares: list[Array] = []
    for level in range(len(sizes) - 2, -1, -1):
        starts = starts_of(parents[level + 1])
        joined = np.add.reduceat(answers, starts, axis=1)
        apart = np.add.reduceat(squares, starts)
        together = (joined**2).sum(axis=0)
        halves, kappa = np.add.reduceat(errors, starts), np.add.reduceat(sums, starts)
        damping = 2 ** (-level / 2)
        step = np.arange(_STEPS)[:, None] / _STEPS
        rest, own = (1 - step) ** 2, step**2 * damping
        gain = (together - apart) * damping + apart
        estimates = (halves - gain * own / (rest + own * kappa)) / rest
        divided = np.diff(starts, append=len(parents[level + 1])) > 1
        best = np.where(divided, estimates.argmin(axis=0), 0)
        weight = best / _STEPS
        errors = estimates[best, np.arange(len(best))]
        scale = 1 / ((1 - weight) ** 2 + weight**2 * kappa)  # Sherman and Morrison: u becomes u times this
        answers, squares, sums = joined * scale, together * scale**2, kappa * scale
        shares.insert(0, weight)
    weights, left = [], np.ones(1)
    for level, share in enumerate(shares):
        weights.append(left * share)
        left = (left * (1 - share))[parents[level + 1]]
    return Tree(sizes, [*weights, left])


def _answers(gram: AxisGram, sizes: Array) -> Array:
    """The product of the Gram with the sum of the cells of each part."""
    answers = np.empty((gram.size, len(sizes)))
    parts = np.repeat(np.arange(len(sizes)), sizes)
    for start in range(0, len(sizes), _COLUMNS):
        some = np.arange(start, min(start + _COLUMNS, len(sizes)))
        answers[:, some] = gram.apply((parts[:, None] == some).astype(float))
    return answers


def _alike(gram: AxisGram) -> Array:
    """Whether each cell but the last has the same column of the Gram as the next one."""
    alike = np.empty(gram.size - 1, bool)
    cells = np.arange(gram.size)[:, None]
    for start in range(0, len(alike), _COLUMNS):
        some = np.arange(start, min(start + _COLUMNS, len(alike)))
        columns = gram.apply((cells == np.append(some, some[-1] + 1)).astype(float))
        alike[some] = (columns[:, 1:] == columns[:, :-1]).all(axis=0)
    return alike


def _divided(sizes: list[Array], alike: Array) -> list[Array]:
    """The levels without the divisions of parts whose cells are all alike."""
    different = np.append(0, np.cumsum(~alike))  # cells are alike if these numbers agree from one to the other
    kept: set[int] = set()
    previous = np.zeros(1, bool)  # whether a part of the level before is divided
    levels: list[Array] = []
    parents = parents_of(sizes)
    for level, parts in enumerate(sizes):
        ends = np.cumsum(parts)
        divided = different[ends - 1] != different[ends - parts]
        if level:
            kept |= set(ends[previous[parents[level]]].tolist())
            divided &= previous[parents[level]]
        kept |= {len(alike) + 1}
        levels.append(np.diff(sorted(kept), prepend=0))
        previous = divided
        if not divided.any():
            break
    return levels
