"""Weighted marginals over a base strategy for each attribute, answered by exact global least squares (MATH §6).

A block measures ⊗_{i∈a} A_i for a set a of attributes, with the same A_i in every block; for plain marginals A_i is the
identity (paper, section 8). With X = AᵀA, κ = 1ᵀX⁻¹1 and u = X⁻¹1/κ, the estimate of a marginal splits into residuals,
one for each subset b of its attributes, on which (I − u1ᵀ) acts for i ∈ b and the sum for the others. Each residual can
be read from every block a ⊇ b, and least squares is the inverse-variance average of these readings: with noise variance
v_a on block a, a reading has the weight w_a = 1/(v_a·K_a), K_a = ∏_{i∈a} κ_i, and residual b the precision g_b·K_b with
g_b = Σ_{a⊇b} w_a. The weights are those of :func:`weighing`; for any weights the variance of residual b is e_b/K_b with
e_b = Σ_{a⊇b} (w_a/g_b)²·v_a·K_a, as residuals of one block are not correlated. No vector over the full domain is ever
needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.matrix import Array, Factor, Identity, Kron, Matrix
from hdmm.matrix.subsets import Axes, subsets
from hdmm.strategy.assemble import assemble
from hdmm.strategy.base import Coefficients, Noise, Spread, Strategy, placed, weighing
from hdmm.strategy.inverse import inverse
from hdmm.strategy.rows import RowTypes, entry_types, row_types
from hdmm.workload import EncodedProduct

_LEAST = 1e-100
"""How precise a block may count beside the others: an average loses nothing, but may overflow."""


@final
@dataclass(frozen=True, eq=False)
class MarginalStrategy(Strategy):
    """Marginals as blocks; any product whose attributes lie within one of them can be answered."""

    def __post_init__(self) -> None:
        factors: dict[int, Matrix] = {}
        for block in self.blocks:
            for axis, factor in zip(block.axes, block.factors, strict=True):
                if factors.setdefault(axis, factor) != factor:
                    raise ValueError("the blocks of a marginal strategy share one factor for each attribute")
        for axis, base in self._bases.items():
            if not base.full_rank:
                raise ValueError(f"the factor of axis {axis} does not tell all its cells apart")

    @cached_property
    def _bases(self) -> dict[int, _Base]:
        return {
            axis: _Base.of(factor)
            for block in self.blocks
            for axis, factor in zip(block.axes, block.factors, strict=True)
        }

    @cached_property
    def _above(self) -> dict[Axes, list[int]]:
        """For each residual the blocks that hold it."""
        above: dict[Axes, list[int]] = {}
        for index, block in enumerate(self.blocks):
            for subset in subsets(block.axes):
                above.setdefault(subset, []).append(index)
        return above

    def supports(self, product: EncodedProduct) -> bool:
        return product.axes in self._above

    def squared_error(self, product: EncodedProduct, noise: Noise) -> float:
        scale, known = self._kappa(product.axes), self._average(noise).errors
        errors = {residual: known[residual] / scale for residual in subsets(product.axes)}
        total = 0.0
        for term in product.terms:
            pairs = {axis: self._bases[axis].split(gram) for axis, gram in term.factors.items()}
            total += term.coefficient * sum(
                prod(pairs[axis][axis in residual] for axis in product.axes) * error
                for residual, error in errors.items()
            )
        return max(total, 0.0)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Types of the entries of W A⁺, one for each term, and beside them those of 1ᵀA⁺."""
        matrix, masks, base = product.factors[axis], product.masks(axis), self._bases[axis]
        if isinstance(base.inverse, Identity):
            one = row_types(matrix, masks)
            sums = np.ones((*one.counts.shape, 1))
            return RowTypes.of(one.labels, np.concatenate([one.values, sums], axis=2), one.counts)
        entries = base.inverse.dense()
        rows = [matrix.apply(mask[:, None] * entries) for mask in masks]
        return entry_types(np.stack([*rows, np.broadcast_to(base.sums, rows[0].shape)], axis=2))

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        return prod(len(one) for one in types[1:]) * prod(one.width for one in types) * len(product.coefficients)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        # Axis i runs over the types of the product's i-th attribute, axis d + i over the entries of a type; that of the
        # values ends with the terms of the condition.
        d = len(types)
        ones = np.ones([1] * (2 * d + 1))
        means, deviations, sums, counts = {}, {}, {}, {}
        for place, (axis, one) in enumerate(zip(product.axes, types, strict=True)):
            own, total = one.values[:, :, :-1], one.values[:, :, -1:]
            mean = (own * total * one.counts[:, :, None]).sum(axis=1, keepdims=True) / self._bases[axis].kappa
            means[axis] = placed(mean, place, d)
            deviations[axis] = placed(own - mean * total, place, d)
            sums[axis] = placed(total, place, d)
            counts[axis] = placed(one.counts[:, :, None], place, d)[..., 0]
        average = self._average(noise)
        for index, block in enumerate(self.blocks):
            shared = tuple(axis for axis in product.axes if axis in block.axes)
            values: Array = 0 * ones
            for residual in subsets(shared):
                factors = [deviations[axis] if axis in residual else means[axis] for axis in product.axes]
                factors += [sums[axis] for axis in shared if axis not in residual]
                values = values + prod(factors, start=ones) / average.precisions[residual]
            often: Array = prod((counts[axis] for axis in shared), start=np.ones([1] * 2 * d))
            others = tuple(self._bases[axis].sum_types for axis in block.axes if axis not in shared)
            yield Spread(index, average.weights[index] * (values @ product.coefficients), often, d, others)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> dict[Axes, Array]:
        """The estimate of every residual, shaped by its attributes."""
        average = self._average(noise)
        residuals: dict[Axes, Array] = {}
        for index, given in enumerate(answers):
            axes = self.blocks[index].axes
            sums = {axes: self._estimate(index, given) * average.weights[index]}
            for subset in sorted(subsets(axes), key=len, reverse=True):
                if subset not in sums:  # from the sums over one attribute less
                    lacking = next(axis for axis in axes if axis not in subset)
                    above = tuple(sorted((*subset, lacking)))
                    sums[subset] = sums[above].sum(axis=above.index(lacking))
            for subset, total in sums.items():
                if subset in residuals:
                    residuals[subset] += total
                else:
                    residuals[subset] = np.asarray(total)
        for residual, precision in average.precisions.items():
            total = residuals[residual]
            for place, axis in enumerate(residual):
                over = total.sum(axis=place)
                for cell, share in enumerate(self._bases[axis].spread):  # one by one: memory holds few such arrays
                    total[(slice(None),) * place + (cell,)] -= share * over
            total /= precision
        return residuals

    def answer(self, product: EncodedProduct, state: dict[Axes, Array]) -> Array:
        sizes = {axis: self.sizes[axis] for axis in product.axes}
        marginal = assemble(sizes, state.get, lambda _axis, part, _place: part, lambda axis: self._bases[axis].spread)
        return product.matrix(sizes).apply(marginal.reshape(-1))

    def _estimate(self, index: int, answers: Array) -> Array:
        """The least-squares estimate of a block's marginal from its own answers."""
        axes = self.blocks[index].axes
        if axes and not all(isinstance(self._bases[axis].inverse, Identity) for axis in axes):
            answers = Kron(self._bases[axis].inverse for axis in axes).apply_float(answers)
        return answers.reshape([self.sizes[axis] for axis in axes])

    def _kappa(self, axes: Axes) -> float:
        return prod((self._bases[axis].kappa for axis in axes), start=1.0)

    @cached_property
    def _known(self) -> dict[str, tuple[tuple[float, ...], _Average]]:
        return {}

    def _average(self, noise: Noise) -> _Average:
        """How the readings of every residual are weighed under some noise."""
        key = tuple(noise)  # a tuple is itself, and found again without being compared entry by entry
        known = self._known.get("last")
        if known is None or (known[0] is not key and known[0] != key):  # one noise is asked for at a time
            kappas = [self._kappa(block.axes) for block in self.blocks]
            weights = [1 / (v * kappa) for v, kappa in zip(weighing(self.blocks, key, _LEAST), kappas, strict=True)]
            spreads = [w**2 * v * kappa for w, v, kappa in zip(weights, key, kappas, strict=True)]
            precisions = {b: sum(weights[index] for index in holders) for b, holders in self._above.items()}
            errors = {
                b: sum(spreads[index] for index in holders) / precisions[b] ** 2 for b, holders in self._above.items()
            }
            known = (key, _Average(weights, precisions, errors))
            self._known["last"] = known
        return known[1]


@final
@dataclass(frozen=True)
class _Average:
    """How residuals are averaged over the blocks that hold them."""

    weights: Sequence[float]
    """w_a for every block."""
    precisions: Mapping[Axes, float]
    """g_b for every residual."""
    errors: Mapping[Axes, float]
    """e_b for every residual."""


@final
@dataclass(frozen=True, eq=False)
class _Base:
    """The strategy of one attribute, and what least squares needs of it."""

    inverse: Matrix
    """A⁺."""
    sums: Array
    """1ᵀA⁺: how the total over the attribute is read from measurements."""
    kappa: float
    """1ᵀX⁻¹1: the variance of that total at unit noise."""
    spread: Array
    """u = X⁻¹1/κ: how a total is spread over the cells."""
    full_rank: bool

    @staticmethod
    def of(factor: Matrix) -> _Base:
        """What least squares needs of a factor."""
        n = factor.shape[1]
        if isinstance(factor, Identity):
            return _Base(factor, np.ones(n), float(n), np.full(n, 1 / n), True)
        found = inverse(factor)
        sums = found.apply_t(np.ones(n))
        kappa = float(sums @ sums)
        whole = abs(found.apply(factor.dense().astype(float)) - np.eye(n)).max() < 1e-8
        return _Base(found, sums, kappa, found.apply(sums) / kappa, bool(whole))

    def split(self, gram: Factor) -> tuple[float, float]:
        """tr(X⁻¹V) as the part on totals, fᵀVf = κ·uᵀVu, and the part on residuals."""
        if isinstance(self.inverse, Identity):
            even = gram.total() / gram.size
            return even, gram.trace() - even
        even = self.kappa * float(self.spread @ gram.apply(self.spread))
        entries = self.inverse.dense()
        return even, float(np.sum(entries * gram.apply(entries))) - even

    @cached_property
    def sum_types(self) -> RowTypes:
        """The one row 1ᵀA⁺."""
        if isinstance(self.inverse, Identity):
            return RowTypes.of(np.zeros(1, np.int64), np.ones((1, 1, 1)), np.full((1, 1), self.kappa))
        return RowTypes.of(np.zeros(1, np.int64), self.sums[None, :, None], np.ones((1, len(self.sums))))
