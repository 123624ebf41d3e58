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
from hdmm.estimators.coefficients import Coefficients, Grid, Orthogonal, Part, Written
from hdmm.estimators.estimator import LinearEstimator, Noise, weighing_variances
from hdmm.estimators.factor import FactorSolution, Implicit, solution_of
from hdmm.estimators.footprint import NUMBER, estimate_bytes
from hdmm.estimators.latest import Latest
from hdmm.estimators.row_types import RowTypes, entry_types, row_types
from hdmm.matrix import Array, AxisGram, Identity, Kron, Matrix
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.axis_gram import IdentityGram
from hdmm.strategy import Strategy
from hdmm.workload import EncodedProduct

_MAX_WRITTEN = 1 << 20
"""The most entries of rows that are written out if an attribute's base is not."""
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
        structured = product.condition is not None and any(self._bases[axis].implicit for axis in product.axes)
        return product.axes in self._holders and not structured

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
        if base.implicit is not None:
            return base.implicit.types_with(matrix, base.even_share)
        if isinstance(base.inverse, Identity):
            types = row_types(matrix, masks)
            sums = np.ones((*types.counts.shape, 1))
            return RowTypes.of(types.labels, np.concatenate([types.values, sums], axis=2), types.counts)
        entries = base.inverse.dense()
        rows = [matrix.apply(mask[:, None] * entries) for mask in masks]
        return entry_types(np.stack([*rows, np.broadcast_to(base.sums, rows[0].shape)], axis=2))

    def row_size(self, product: EncodedProduct, types: Sequence[RowTypes]) -> int:
        combinations = prod(len(row_types) for row_types in types[1:])
        written = combinations * prod(row_types.width for row_types in types) * len(product.coefficients)
        return combinations if self._too_wide(product, types) else written

    def _too_wide(self, product: EncodedProduct, types: Sequence[RowTypes]) -> bool:
        """Whether rows have so many entries that only their moments are computed."""
        implicit = any(self._bases[axis].implicit for axis in product.axes)
        return implicit and prod(len(row) * row.width for row in types) > _MAX_WRITTEN

    def coefficients(self, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Iterator[Coefficients]:
        if not self._too_wide(product, types):
            for index in range(len(self.blocks)):
                yield self._written(index, product, types, noise)
            return
        rows = {axis: self._bases[axis].row_moments(row) for axis, row in zip(product.axes, types, strict=True)}
        average = self._average(tuple(noise))
        for index, block in enumerate(self.blocks):
            shared = tuple(axis for axis in product.axes if axis in block.axes)
            others = [self._bases[axis].total_moments for axis in block.axes if axis not in shared]
            parts = [
                Part(
                    average.weights[index] / average.precisions[residual],
                    tuple(rows[axis].part(axis in residual, axis in shared) for axis in product.axes),
                    np.prod(others, axis=0) if others else np.ones(4),
                )
                for residual in subsets(shared)
            ]

            def written(place: tuple[int, ...], index: int = index) -> Coefficients:
                chosen = [row.some(number, number + 1) for row, number in zip(types, place, strict=True)]
                return self._written(index, product, chosen, noise)

            yield Orthogonal(index, tuple(parts), block.queries, written)

    def _written(self, index: int, product: EncodedProduct, types: Sequence[RowTypes], noise: Noise) -> Written:
        """The coefficients of one block, written out."""
        grid, average, block = Grid(len(types)), self._average(tuple(noise)), self.blocks[index]
        rows = {
            axis: _Rows.of(grid, way, row_types, self._bases[axis])
            for way, (axis, row_types) in enumerate(zip(product.axes, types, strict=True))
        }
        shared = tuple(axis for axis in product.axes if axis in block.axes)
        values = 0 * grid.ones
        for residual in subsets(shared):
            factors = [rows[axis].deviations if axis in residual else rows[axis].means for axis in product.axes]
            factors += [rows[axis].totals for axis in shared if axis not in residual]
            values = values + prod(factors, start=grid.ones) / average.precisions[residual]
        counts = prod((rows[axis].counts for axis in shared), start=grid.ones)[..., 0]
        others = tuple(self._bases[axis].sum_types for axis in block.axes if axis not in shared)
        return Written(index, average.weights[index] * (values @ product.coefficients), counts, grid.ways, others)

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
    def of(grid: Grid, way: int, types: RowTypes, base: _Base) -> _Rows:
        """Split the entries of `MarginalLeastSquares.row_types`."""
        entries, totals, counts = base.entries(types)
        means = (entries * totals * counts).sum(axis=1, keepdims=True) / base.kappa
        return _Rows(*(grid.place(array, way) for array in (means, entries - means * totals, totals, counts)))


@final
@dataclass(frozen=True, eq=False)
class _RowMoments:
    """The moments of the rows of W A⁺ on one attribute, split by what they do to totals and to residuals."""

    means: Array
    """W u, for every type."""
    deviations: Array
    totals: Array

    def part(self, deviates: bool, shared: bool) -> Array:
        """The moments of the deviations, or of the means, times the total if the block measures the attribute."""
        if deviates:
            return self.deviations
        sizes = abs(self.means)
        powers = np.stack([sizes**2, sizes**4, sizes**6, sizes], axis=1)
        return powers * self.totals if shared else powers


@final
@dataclass(frozen=True, eq=False)
class _Base:
    """The strategy of one attribute, and what least squares needs of it."""

    solution: FactorSolution
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
        n, solution = factor.shape[1], solution_of(factor)
        if isinstance(factor, Identity):
            return _Base(solution, np.ones(n), float(n), np.full(n, 1 / n), True)
        inverse = solution.inverse
        sums = inverse.apply_t(np.ones(n))
        kappa = float(sums @ sums)
        full_rank = solution.determines(lambda: IdentityGram(n))
        return _Base(solution, sums, kappa, inverse.apply(sums) / kappa, full_rank)

    @property
    def inverse(self) -> Matrix:
        """A⁺."""
        return self.solution.inverse

    @property
    def implicit(self) -> Implicit | None:
        """The solution, if nothing of it is written out."""
        return self.solution if isinstance(self.solution, Implicit) else None

    def split(self, gram: AxisGram) -> tuple[float, float]:
        """tr(X⁻¹V) as the part on totals, fᵀVf = κ·uᵀVu, and the part on residuals."""
        if isinstance(self.inverse, Identity):
            on_totals = gram.total() / gram.size
        else:
            on_totals = self.kappa * float(self.even_share @ gram.apply(self.even_share))
        return on_totals, self.solution.error(gram) - on_totals

    def entries(self, types: RowTypes) -> tuple[Array, Array, Array]:
        """The entries of W A⁺ of every type, those of 1ᵀA⁺ beside them, and how often each occurs."""
        counts = types.counts[:, :, None]
        if self.implicit is not None:
            return types.values, self.sums[None, :, None], counts
        return types.values[:, :, :-1], types.values[:, :, -1:], counts

    def row_moments(self, types: RowTypes) -> _RowMoments:
        """The moments of rows, exact if they are written out; of others all but the squares are upper bounds."""
        if types.means is None or types.moments is None:
            entries, totals, counts = self.entries(types)
            means = (entries * totals * counts).sum(axis=1, keepdims=True) / self.kappa
            sizes, counts = abs(entries - means * totals)[:, :, 0], counts[:, :, 0]
            sums = [(counts * sizes**power).sum(axis=1) for power in (2, 4, 6)]
            largest = np.where(counts > 0, sizes, 0).max(axis=1)
            return _RowMoments(means[:, 0, 0], np.stack([*sums, largest], axis=1), self.total_moments)
        powers = np.array([2, 4, 6, 1])
        deviations = types.moments ** (1 / powers) + abs(types.means[:, None]) * self.total_moments ** (1 / powers)
        deviations **= powers
        deviations[:, 0] = np.maximum(types.moments[:, 0] - self.kappa * types.means**2, 0)
        return _RowMoments(types.means, deviations, self.total_moments)

    @cached_property
    def total_moments(self) -> Array:
        """The moments of 1ᵀA⁺."""
        if isinstance(self.inverse, Identity):
            return np.array([self.kappa, self.kappa, self.kappa, 1.0])
        sizes = abs(self.sums)
        return np.array([*((sizes**power).sum() for power in (2, 4, 6)), sizes.max()])

    @cached_property
    def sum_types(self) -> RowTypes:
        """The one row 1ᵀA⁺."""
        if isinstance(self.inverse, Identity):
            return RowTypes.of(np.zeros(1, np.int64), np.ones((1, 1, 1)), np.full((1, 1), self.kappa))
        return RowTypes.of(np.zeros(1, np.int64), self.sums[None, :, None], np.ones((1, len(self.sums))))
