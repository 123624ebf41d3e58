"""OPT_R along one attribute of many cells: residuals on the others, and for each set of these a strategy of its own.

For a set a of the other attributes, the terms of the workload ask Σ_V s_a(V)·V along the one, where s_a(V) adds up the
coefficients of the terms with the Gram V there, times what they ask of a. Sets do not share a strategy, so each is one
problem of OPT_0, and the best weights and the loss, (Σ_a √v_a)², are closed forms (docs/math.md, section 16).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import final

from hdmm.estimators.inverse import error
from hdmm.matrix import AxisGram, Gram, Identity, Matrix, Total
from hdmm.matrix.axes import Axes
from hdmm.matrix.axis_gram import SumGram
from hdmm.matrix.gram import GramTerm
from hdmm.operators.merged_cells import merged_cells
from hdmm.operators.opt0.fourier_root import normalised_root
from hdmm.operators.opt0.gaussian import opt0_gaussian
from hdmm.operators.residual_search import MANY_CELLS, ResidualSearch
from hdmm.operators.weights import dyadic
from hdmm.optimise.descent import Effort
from hdmm.strategy import Block, Strategy

_ROUNDS = 2
"""How often the other attributes' bases are searched: the second time with the errors of the strategies found."""
_LEAST_SHARE = 1e-12
"""A smaller share of what is asked of a set is rounding."""


def long_axis(gram: Gram) -> int | None:
    """The one attribute of many cells that is asked for by more than its cells and total, in sums over intervals."""
    asked = {
        axis: [factor for term in gram.terms for a, factor in term.factors.items() if a == axis] for axis in _axes(gram)
    }
    long = [
        axis
        for axis, factors in asked.items()
        if gram.sizes[axis] > MANY_CELLS and any(factor.two_eigenvalues() is None for factor in factors)
    ]
    if len(long) != 1 or any(factor.as_squares() is None for factor in asked[long[0]]):
        return None
    return long[0]


def residuals_along(gram: Gram, axis: int, effort: Effort) -> Strategy:
    """The best residuals along an attribute, if the other attributes keep theirs."""
    factors = list(dict.fromkeys(gram.at(term, axis) for term in gram.terms))
    root = normalised_part(SumGram(tuple((_share(gram, axis, factor), factor) for factor in factors)))
    errors = {factor: error(root, factor) for factor in factors}
    found: _Along | None = None
    for _ in range(_ROUNDS):
        search = ResidualSearch(_without(gram, axis, errors))
        search.run(effort)
        along = _Along.of(gram, axis, factors, search)
        if found is None or along.loss < found.loss:
            found = along
        errors = {factor: along.mean_error(factor) for factor in factors}
        if not search.searched:
            break
    assert found is not None
    return found.strategy(gram.sizes)


def normalised_part(gram: AxisGram) -> Matrix:
    """OPT_0 along the attribute; cells or totals by themselves if nothing else is asked."""
    pair = gram.two_eigenvalues()
    if pair is not None and not pair[0] > _LEAST_SHARE * pair[1]:
        return Total(gram.size)
    if pair is not None and pair[1] <= pair[0] * (1 + _LEAST_SHARE):
        return Identity(gram.size)
    merged = merged_cells(gram)
    if merged is not None:
        return (merged.expanded(opt0_gaussian(merged.gram)) if merged.searched else merged.counts).matrix
    squares = gram.as_squares()
    assert squares is not None
    return normalised_root(gram, squares).matrix


@final
@dataclass(frozen=True, eq=False)
class _Along:
    """Strategies along the attribute for sets of the others, and what is asked of each set at sensitivity 1."""

    axis: int
    matrices: Mapping[Axes, Matrix]
    asked: Mapping[Axes, float]
    errors: Mapping[Axes, Mapping[AxisGram, float]]
    shares: Mapping[Axes, Mapping[AxisGram, float]]
    bases: Mapping[int, Matrix]

    @staticmethod
    def of(gram: Gram, axis: int, factors: list[AxisGram], search: ResidualSearch) -> _Along:
        """The best strategy for each set, given the bases of the other attributes."""
        shares: dict[Axes, dict[AxisGram, float]] = {}
        for factor in factors:
            part = Gram(
                _sizes(gram, axis),
                tuple(_rest(term, axis, 1.0) for term in gram.terms if gram.at(term, axis) == factor),
            )
            for chosen, share in search.asked_of(part).items():
                shares.setdefault(chosen, {})[factor] = share
        largest = max(share for asked in shares.values() for share in asked.values())
        matrices, asked, errors = {}, {}, {}
        for chosen, each in shares.items():
            terms = tuple((share, factor) for factor, share in each.items() if share > _LEAST_SHARE * largest)
            if terms:
                matrices[chosen] = normalised_part(SumGram(terms))
                errors[chosen] = {factor: error(matrices[chosen], factor) for _, factor in terms}
                asked[chosen] = sum(share * errors[chosen][factor] for share, factor in terms)
        return _Along(axis, matrices, asked, errors, shares, search.bases)

    @property
    def loss(self) -> float:
        """(Σ_a √v_a)²."""
        return sum(sqrt(asked) for asked in self.asked.values()) ** 2

    def mean_error(self, factor: AxisGram) -> float:
        """A Gram's error along the attribute, averaged over the sets as they count."""
        pairs = [
            (self.shares[chosen][factor] / sqrt(self.asked[chosen]), each[factor])
            for chosen, each in self.errors.items()
            if factor in each
        ]
        return sum(weight * each for weight, each in pairs) / sum(weight for weight, _ in pairs)

    def strategy(self, sizes: tuple[int, ...]) -> Strategy:
        """The blocks with the best weights."""
        weights = {
            chosen: self.asked[chosen] ** 0.25
            / sqrt(prod([float(self.bases[axis].norm_power(2)) for axis in chosen]) * float(matrix.norm_power(2)))
            for chosen, matrix in self.matrices.items()
        }
        largest = max(weights.values())
        blocks = []
        for chosen in sorted(weights, key=lambda chosen: (len(chosen), chosen)):
            factors = {axis: self.bases[axis] for axis in chosen} | {self.axis: self.matrices[chosen]}
            axes = tuple(sorted(factors))
            blocks.append(Block(axes, tuple(factors[axis] for axis in axes), dyadic(weights[chosen] / largest)))
        return Strategy(sizes, tuple(blocks), "residual")


def _axes(gram: Gram) -> list[int]:
    return sorted({axis for term in gram.terms for axis in term.factors})


def _sizes(gram: Gram, axis: int) -> tuple[int, ...]:
    """The sizes of the attributes, the one counted as a single cell."""
    return tuple(1 if place == axis else size for place, size in enumerate(gram.sizes))


def _rest(term: GramTerm, axis: int, scale: float) -> GramTerm:
    """A term without one of its factors."""
    return GramTerm(term.coefficient * scale, {a: factor for a, factor in term.factors.items() if a != axis})


def _without(gram: Gram, axis: int, errors: Mapping[AxisGram, float]) -> Gram:
    """What is left of a Gram if the factors along an attribute count as their errors."""
    return Gram(_sizes(gram, axis), tuple(_rest(term, axis, errors[gram.at(term, axis)]) for term in gram.terms))


def _share(gram: Gram, axis: int, factor: AxisGram) -> float:
    """How much a factor counts, summed over the other attributes' cells."""
    return sum(
        term.coefficient * prod([other.trace() for place, other in term.factors.items() if place != axis])
        for term in gram.terms
        if gram.at(term, axis) == factor
    )
