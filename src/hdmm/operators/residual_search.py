"""The search of OPT_R: a base for every attribute, improved one after the other (docs/math.md, section 8).

For each attribute X = OPT_0(V̂ + λ11ᵀ) splits into one part for totals and one for the rest. The strategy measures every
set a of attributes by itself; its best weights and its loss, (Σ_a √v_a)², are closed forms. V̂ and λ are improved in
turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, log, prod, sqrt
from typing import final

import numpy as np

from hdmm.demand.subsets import Subsets, subsets_of
from hdmm.matrix import Array, Dense, Gram, Matrix, Spiked
from hdmm.matrix.axes import Axes
from hdmm.matrix.axis_gram import DenseGram
from hdmm.matrix.rank import pseudo_inverse
from hdmm.operators.opt0.equal_cells import entries_among, expand, kinds_of_cells
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.weights import dyadic
from hdmm.optimise.descent import Effort, least
from hdmm.strategy import Block, Strategy

MANY_CELLS = 1 << 11
"""With more cells, an attribute has no base of its own unless its workloads are built from Identity and Total only."""
_MAX_ROUNDS = 20
_LEAST_GAIN = 1e-6
"""A round that improves the loss by less than this ratio is the last."""
_LEAST_EIGENVALUE = 1e-9
"""The least eigenvalue, relative to the largest, that is measured: the root of a smaller one would be rounded away."""
_LOG_TOTALS = (log(1e-6), log(1e6))
"""The range of log λ, relative to the weight of V̂."""


@final
@dataclass(frozen=True, eq=False)
class _ResidualBase:
    """A factor B of one attribute, and for each Gram factor V there fᵀVf and tr(KV), at unit columns of B."""

    matrix: Matrix
    errors: Array
    """Two rows: on totals, and on the rest."""

    @cached_property
    def norm(self) -> float:
        """The largest column norm of the factor as it is measured."""
        return sqrt(self.matrix.norm_power(2))


@final
class ResidualSearch:
    """The sets of attributes that occur, and the bases of the attributes, improved one after the other."""

    def __init__(self, gram: Gram) -> None:
        self._subsets = subsets_of(gram)
        self._axes, self._problem, self.sets = self._subsets.axes, self._subsets.problem, self._subsets.sets
        self._bases = [self._initial_base(i) for i in range(len(self._axes))]

    @cached_property
    def searched(self) -> list[int]:
        """The places of the attributes whose workloads are more than Identity and Total."""
        return [i for i, pairs in enumerate(self._problem.even) if pairs is None]

    def run(self, effort: Effort) -> None:
        """Improve the searched attributes until nothing moves."""
        before = np.inf
        for _ in range(_MAX_ROUNDS if self.searched else 0):
            for i in self.searched:
                self._improve(i)
            loss = self.loss()
            if not loss < before * (1 - _LEAST_GAIN) or effort.over:
                break
            before = loss

    def loss(self, other: tuple[int, Array] | None = None) -> float:
        """(Σ_a √v_a)², with other errors on one attribute."""
        return float(np.sqrt(self._variances(other)).sum() ** 2)

    @property
    def norms(self) -> dict[int, float]:
        """The largest column norm of every attribute's factor, by axis."""
        return {axis: base.norm for axis, base in zip(self._axes, self._bases, strict=True)}

    @property
    def bases(self) -> dict[int, Matrix]:
        """The factor of every attribute, by axis."""
        return {axis: base.matrix for axis, base in zip(self._axes, self._bases, strict=True)}

    def asked_of(self, gram: Gram) -> dict[Axes, float]:
        """What another Gram asks of every set of attributes, if the bases stay; at unit columns of the bases."""
        subsets = Subsets(gram)
        errors = []
        for i, axis in enumerate(self._axes):
            base, factors = self._bases[i], subsets.problem.factors[subsets.axes.index(axis)]
            known = {factor: number for number, factor in enumerate(self._problem.factors[i])}
            errors.append(base.errors[:, [known[factor] for factor in factors]])
        values = subsets.asked(errors)
        return {tuple(subsets.axes[i] for i in a): float(values[number]) for a, number in subsets.sets.items()}

    def number(self, axes: Axes) -> int | None:
        """The number of a set of attributes; None if it does not occur."""
        return self._numbers.get(axes)

    @cached_property
    def _numbers(self) -> dict[Axes, int]:
        return {tuple(self._axes[i] for i in a): number for a, number in self.sets.items()}

    def strategy(self, sizes: tuple[int, ...], variances: Array | None = None) -> Strategy:
        """The blocks with the best weights for what is asked of each set; sets of no demand are left out."""
        variances = self._variances() if variances is None else variances
        roots = (variances**0.25).tolist()
        norms, matrices = [base.norm for base in self._bases], [base.matrix for base in self._bases]
        weights = {a: roots[number] / prod([norms[i] for i in a]) for a, number in self.sets.items() if roots[number]}
        largest = max(weights.values())
        blocks = [
            Block(tuple([self._axes[i] for i in a]), tuple([matrices[i] for i in a]), dyadic(weights[a] / largest))
            for a in sorted(weights, key=lambda a: (len(a), a))
        ]
        return Strategy(sizes, tuple(blocks), "residual")

    def _errors(self, other: tuple[int, Array] | None) -> list[Array]:
        errors = [base.errors for base in self._bases]
        if other is not None:
            errors[other[0]] = other[1]
        return errors

    def _variances(self, other: tuple[int, Array] | None = None) -> Array:
        """v_a for every set."""
        return self._subsets.asked(self._errors(other))

    def _initial_base(self, i: int) -> _ResidualBase:
        """Deviations from the mean."""
        n, factors = self._problem.sizes[i], self._problem.factors[i]
        totals = np.array([factor.total() / n**2 for factor in factors])
        traces = np.array([factor.trace() for factor in factors])
        rest = (traces - n * totals) * (n - 1) / n
        rest[abs(rest) <= 1e-13 * (abs(traces) + n * abs(totals))] = 0
        return _ResidualBase(Spiked.centred(n), np.stack([totals, rest]))

    def _improve(self, i: int) -> None:
        """Take X = OPT_0(V̂ + λ11ᵀ) for the λ with the least loss, if it is better than the base so far."""
        n = self._problem.sizes[i]
        if n > MANY_CELLS:
            return
        variances = self._variances()
        weights = np.divide(1, np.sqrt(variances), out=np.zeros(len(variances)), where=variances > 0)
        entries = self._problem.added(self._subsets.slopes(i, weights, self._errors(None)), i)
        scale = float(np.trace(entries)) / n
        if not scale > 0:
            return
        tried: dict[float, _ResidualBase] = {}

        def trial(exponent: float) -> float:
            base = self._base(i, DenseGram(entries + exp(exponent) * scale))
            tried[exponent] = base
            return self.loss((i, base.errors))

        best = tried[least(trial, *_LOG_TOTALS)]
        if self.loss((i, best.errors)) < self.loss():
            self._bases[i] = best

    def _base(self, i: int, gram: DenseGram) -> _ResidualBase:
        """OPT_0 split into totals and the rest, over the kinds of cells that the Gram distinguishes."""
        first, kinds = kinds_of_cells(gram)
        if len(first) < 2:
            return self._bases[i]
        A = opt0_gaussian(DenseGram(entries_among(gram, first))).matrix.dense()
        A = A / np.sqrt((A**2).sum(axis=0))
        total = pseudo_inverse(A).sum(axis=0)  # the total is this combination of A's answers
        t = 1 / float(total @ total)
        values, vectors = np.linalg.eigh((A.T @ A - t) / (1 - t))
        kept = values > _LEAST_EIGENVALUE * values[-1]
        kept[0] = False  # f, which belongs to totals
        B = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
        B = B / sqrt((B**2).sum(axis=0).max())
        G = pseudo_inverse(np.vstack([B, np.ones(len(first))]))
        errors = []
        for entries in self._problem.written(i):
            V = entries[np.ix_(first, first)]
            errors.append((float(G[:, -1] @ V @ G[:, -1]), float(np.sum(G[:, :-1] * (V @ G[:, :-1])))))
        return _ResidualBase(Dense(expand(B, kinds)), np.array(errors).T)
