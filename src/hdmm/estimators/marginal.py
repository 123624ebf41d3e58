"""Weighted marginals over a base strategy for each attribute, answered by exact least squares over all of them.

A block measures ⊗_{i∈a} A_i for a set a of attributes, with the same A_i in every block; for plain marginals A_i is the
identity (paper, section 8). With X = AᵀA, κ = 1ᵀX⁻¹1 and u = X⁻¹1/κ, the estimate of a marginal splits into residuals,
one for each subset b of its attributes, on which (I − u1ᵀ) acts for i ∈ b and the sum for the others. Each residual can
be read from every block a ⊇ b, and least squares is the inverse-variance average of these readings: with noise variance
v_a on block a, a reading has the weight w_a = 1/(v_a·K_a), K_a = ∏_{i∈a} κ_i, and residual b the precision g_b·K_b with
g_b = Σ_{a⊇b} w_a. The weights are those of `weighing_variances`; for any weights residual b has the variance e_b/K_b,
e_b = Σ_{a⊇b} (w_a/g_b)²·v_a·K_a, as residuals of one block are not correlated. No vector over the full domain is ever
needed. (docs/math.md, section 7)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.assemble import assemble
from hdmm.estimators.coefficients import Coefficients, Grid, Written
from hdmm.estimators.estimator import LinearEstimator, Noise, weighing_variances
from hdmm.estimators.footprint import NUMBER, estimate_bytes
from hdmm.estimators.inverse import inverse, inverse_error, is_full_rank
from hdmm.estimators.latest import Latest
from hdmm.estimators.row_types import RowTypes, entry_types, row_types
from hdmm.matrix import Array, AxisGram, Identity, Kron, Matrix
from hdmm.matrix.axes import Axes, subsets
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct

_LEAST_VARIANCE = 1e-100
"""The least that the variance of a block counts beside the others: an average loses nothing, but may overflow."""


@final
class MarginalLeastSquares(LinearEstimator[dict[Axes, Array]]):
    """Least squares over marginals; any product whose attributes lie within one of them can be answered.

    The state is the estimate of every residual, shaped by its attributes.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._average = Latest(self._averaged)
        factors: dict[int, Matrix] = {}
        for block in strategy.blocks:
            for axis, factor in zip(block.axes, block.factors, strict=True):
                if factors.setdefault(axis, factor) != factor:
                    raise ValueError("the blocks of a marginal strategy share one factor for each attribute")
        for axis, base in self._bases.items():
            if not base.full_rank:
                raise ValueError(f"the factor of axis {axis} is not of full rank: it does not separate all cells")

    @cached_property
    def _bases(self) -> dict[int, _Base]:
        return {
            axis: _Base.of(factor)
            for block in self.blocks
            for axis, factor in zip(block.axes, block.factors, strict=True)
        }

    @cached_property
    def _holders(self) -> dict[Axes, list[int]]:
        """The blocks that hold each residual."""
        holders: dict[Axes, list[int]] = {}
        for index, block in enumerate(self.blocks):
            for subset in subsets(block.axes):
                holders.setdefault(subset, []).append(index)
        return holders

    def supports(self, product: EncodedProduct) -> bool:
        return product.axes in self._holders

    def squared_errors(self, products: Sequence[EncodedProduct], noise: Noise) -> Array:
        errors = self._average(tuple(noise)).errors
        return np.array([self._squared_error(product, errors) for product in products])

    def _squared_error(self, product: EncodedProduct, errors: Mapping[Axes, float]) -> float:
        scale = self._kappa(product.axes)
        total = 0.0
        for term in product.terms:
            pairs = {axis: self._bases[axis].split(gram) for axis, gram in term.factors.items()}
            total += term.coefficient * sum(
                prod(pairs[axis][axis in residual] for axis in product.axes) * errors[residual] / scale
                for residual in subsets(product.axes)
            )
        return max(total, 0.0)

    def row_types(self, product: EncodedProduct, axis: int) -> RowTypes:
        """Types of the entries of W A⁺, one for each term, and beside them those of 1ᵀA⁺."""
        matrix, masks, base = product.factors[axis], product.masks(axis), self._bases[axis]
        if isinstance(base.inverse, Identity):
            types = row_types(matrix, masks)
            sums = np.ones((*types.counts.shape, 1))
            return RowTypes.of(types.labels, np.concatenate([types.values, sums], axis=2), types.counts)
        entries = base.inverse.dense()
        rows = [matrix.apply(mask[:, None] * entries) for mask in masks]
        return entry_types(np.stack([*rows, np.broadcast_to(base.sums, rows[0].shape)], axis=2))

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        combinations = prod(len(row_types) for row_types in types[1:])
        return combinations * prod(row_types.width for row_types in types) * len(product.coefficients)

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        grid, average = Grid(len(types)), self._average(tuple(noise))
        rows = {
            axis: _Rows.of(grid, way, row_types, self._bases[axis].kappa)
            for way, (axis, row_types) in enumerate(zip(product.axes, types, strict=True))
        }
        for index, block in enumerate(self.blocks):
            shared = tuple(axis for axis in product.axes if axis in block.axes)
            values = 0 * grid.ones
            for residual in subsets(shared):
                factors = [rows[axis].deviations if axis in residual else rows[axis].means for axis in product.axes]
                factors += [rows[axis].totals for axis in shared if axis not in residual]
                values = values + prod(factors, start=grid.ones) / average.precisions[residual]
            counts = prod((rows[axis].counts for axis in shared), start=grid.ones)[..., 0]
            others = tuple(self._bases[axis].sum_types for axis in block.axes if axis not in shared)
            yield Written(index, average.weights[index] * (values @ product.coefficients), counts, grid.ways, others)

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> dict[Axes, Array]:
        average = self._average(tuple(noise))
        residuals: dict[Axes, Array] = {}
        for index, measured in enumerate(answers):
            axes = self.blocks[index].axes
            totals = {axes: self._estimate(index, measured) * average.weights[index]}
            for subset in sorted(subsets(axes), key=len, reverse=True):
                if subset not in totals:  # from the table with one attribute more
                    lacking = next(axis for axis in axes if axis not in subset)
                    above = tuple(sorted((*subset, lacking)))
                    totals[subset] = totals[above].sum(axis=above.index(lacking))
            for subset, total in totals.items():
                if subset in residuals:
                    residuals[subset] += total
                else:
                    residuals[subset] = np.asarray(total)
        for residual, precision in average.precisions.items():
            total = residuals[residual]
            for place, axis in enumerate(residual):
                sums = total.sum(axis=place)
                for cell, share in enumerate(self._bases[axis].even_share):  # cell by cell: it takes less memory
                    total[(slice(None),) * place + (cell,)] -= share * sums
            total /= precision
        return residuals

    def answer(self, product: EncodedProduct, state: dict[Axes, Array]) -> Array:
        sizes = self.strategy.sizes_of(product.axes)
        marginal = assemble(
            sizes, state.get, lambda _axis, part, _place: part, lambda axis: self._bases[axis].even_share
        )
        return product.matrix(sizes).apply(marginal.reshape(-1))

    def state_bytes(self) -> Sequence[int]:
        residuals = [prod(self.strategy.sizes_of(residual).values()) for residual in self._holders]
        totals = max(prod(1 + factor.shape[1] for factor in block.factors) for block in self.blocks)
        work = max(estimate_bytes(block) for block in self.blocks)
        return [*(NUMBER * cells for cells in (*residuals, totals)), work]

    def _estimate(self, index: int, answers: Array) -> Array:
        """The least-squares estimate of a block's marginal from its own answers."""
        axes = self.blocks[index].axes
        if axes and not all(isinstance(self._bases[axis].inverse, Identity) for axis in axes):
            answers = Kron(self._bases[axis].inverse for axis in axes).apply_float(answers)
        return answers.reshape(list(self.strategy.sizes_of(axes).values()))

    def _kappa(self, axes: Axes) -> float:
        return prod((self._bases[axis].kappa for axis in axes), start=1.0)

    def _averaged(self, noise: tuple[float, ...]) -> _Average:
        """How the readings of every residual are averaged over the blocks that hold it."""
        holders = self._holders
        kappas = [self._kappa(block.axes) for block in self.blocks]
        weighing = weighing_variances(self.blocks, noise, _LEAST_VARIANCE)
        weights = [1 / (v * kappa) for v, kappa in zip(weighing, kappas, strict=True)]
        variances = [w**2 * v * kappa for w, v, kappa in zip(weights, noise, kappas, strict=True)]
        precisions = {b: sum(weights[index] for index in indices) for b, indices in holders.items()}
        errors = {b: sum(variances[index] for index in indices) / precisions[b] ** 2 for b, indices in holders.items()}
        return _Average(weights, precisions, errors)


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
class _Rows:
    """The rows of W A⁺ on one attribute, laid out on a grid and split by what they do to totals and to residuals."""

    means: Array
    """W u, the same all along a row."""
    deviations: Array
    """W A⁺ without what goes by the total."""
    totals: Array
    """1ᵀA⁺."""
    counts: Array
    """How often each entry occurs."""

    @staticmethod
    def of(grid: Grid, way: int, types: RowTypes, kappa: float) -> _Rows:
        """Split the entries of `MarginalLeastSquares.row_types`."""
        entries, totals, counts = types.values[:, :, :-1], types.values[:, :, -1:], types.counts[:, :, None]
        means = (entries * totals * counts).sum(axis=1, keepdims=True) / kappa
        return _Rows(*(grid.place(array, way) for array in (means, entries - means * totals, totals, counts)))


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
    even_share: Array
    """u = X⁻¹1/κ: the share of a total that each cell gets."""
    full_rank: bool

    @staticmethod
    def of(factor: Matrix) -> _Base:
        """What least squares needs of a factor."""
        n = factor.shape[1]
        if isinstance(factor, Identity):
            return _Base(factor, np.ones(n), float(n), np.full(n, 1 / n), True)
        pseudo_inverse = inverse(factor)
        sums = pseudo_inverse.apply_t(np.ones(n))
        kappa = float(sums @ sums)
        full_rank = is_full_rank(pseudo_inverse.apply(factor.dense().astype(float)))
        return _Base(pseudo_inverse, sums, kappa, pseudo_inverse.apply(sums) / kappa, full_rank)

    def split(self, gram: AxisGram) -> tuple[float, float]:
        """tr(X⁻¹V) as the part on totals, fᵀVf = κ·uᵀVu, and the part on residuals."""
        if isinstance(self.inverse, Identity):
            on_totals = gram.total() / gram.size
        else:
            on_totals = self.kappa * float(self.even_share @ gram.apply(self.even_share))
        return on_totals, inverse_error(self.inverse, gram) - on_totals

    @cached_property
    def sum_types(self) -> RowTypes:
        """The one row 1ᵀA⁺."""
        if isinstance(self.inverse, Identity):
            return RowTypes.of(np.zeros(1, np.int64), np.ones((1, 1, 1)), np.full((1, 1), self.kappa))
        return RowTypes.of(np.zeros(1, np.int64), self.sums[None, :, None], np.ones((1, len(self.sums))))
