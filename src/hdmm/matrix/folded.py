"""Convolutions of ordered cells with one kernel, folded back at both ends: the strategies of large ordered attributes.

A folded convolution K has entries c(i − j) ∓ c(i + j + s); sines or cosines are its eigenvectors (see
:mod:`hdmm.matrix.fourier`). The matrix here is K·diag(d). If the kernel and the scales of the cells are integers, so
are all entries: products are one exact convolution, and the pseudo-inverse diag(d)⁻¹K⁻¹ takes two fast transforms.
Nothing of size n × n is written out. See docs/math.md, section 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from hdmm.matrix.arrays import Array, along
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Norm
from hdmm.matrix.by_products import Powers, ProductGram
from hdmm.matrix.convolution import cyclic
from hdmm.matrix.folded_variances import FoldedVariances
from hdmm.matrix.fourier import EXTRA, Basis, at_sums, folded, kernel, period, transform, weights_of, wrap
from hdmm.matrix.gram import Gram
from hdmm.matrix.intervals import interval_rows
from hdmm.matrix.leaf import FLOAT, INTEGER
from hdmm.matrix.solvable import Integers, Solvable

SCALE_BITS = 14
"""Bits of the cells' scales in integers: rounding them down costs about 2^-14 of the squared error."""
_MAX_VALUE = 1 << 26
"""The largest value of an integer kernel."""
_MAX_SCALE = 1 << 20
"""The largest scale of a cell in integers."""
_MAX_NORM = 1 << 62
"""The largest squared length of a column of integers, so that 64 bits hold it."""
_LEAST_WEIGHT = 1e-9
"""The least ratio of an eigenvalue to the largest: below it, least squares would be rounding errors."""
_MAX_WEIGHTS = 1 << 16
"""The most weights of measurements that are written out for the moments of sums."""
_ROUNDING = 1e-12
"""More than floats round a scale up."""
_ARRAYS = 96
"""Arrays of the number of cells that variances and exact convolutions take."""
_ALMOST = 1 - 1e-6
"""The largest share of a sum's standard deviation that one of many measurements has."""


@final
@dataclass(frozen=True, eq=False)
class Folded(Solvable):
    """K·diag(scales) for the folded convolution K with a kernel: square, and invertible."""

    basis: Basis
    values: Array
    """The kernel at 0, 1, …: on sines two more than there are cells, on cosines one more."""
    scales: Array
    """d, positive."""

    def __post_init__(self) -> None:
        values, scales = np.array(self.values), np.array(self.scales)
        if self.basis not in EXTRA or values.ndim != 1 or scales.ndim != 1 or not scales.size:
            raise ValueError("a folded convolution has a basis, a kernel, and a scale for each cell")
        whole = {values.dtype.kind, scales.dtype.kind} == {"i"}
        if len(values) != len(scales) + EXTRA[self.basis] or (not whole and values.dtype.kind == "i"):
            raise ValueError("the kernel has as many values as its basis and the cells need, all of one kind")
        for name, array in (("values", values), ("scales", scales)):
            array = array.astype(INTEGER if whole else FLOAT)
            if not np.isfinite(array).all():
                raise ValueError("a kernel and its scales are finite")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if whole and (abs(values).max() > _MAX_VALUE or scales.max() > _MAX_SCALE):
            raise ValueError("a kernel of integers, or a scale, is too large")
        if scales.min() <= 0 or self.weights.min() <= _LEAST_WEIGHT * self.weights.max():
            raise ValueError("a folded convolution has positive eigenvalues and scales")
        if whole and (self.norms.astype(FLOAT) * scales.astype(FLOAT) ** 2).max() > _MAX_NORM:
            raise ValueError("the columns of a folded convolution are too long")

    @cached_property
    def weights(self) -> Array:
        """The eigenvalues of K."""
        return weights_of(self.basis, self.values.astype(FLOAT))

    @cached_property
    def norms(self) -> Array:
        """The squared lengths of the columns of K: exact for integers."""
        if self.dtype == FLOAT:
            squares = kernel(self.basis, self.weights**2)
            return squares[0] + at_sums(self.basis, squares)[::2]
        whole = period(self.basis, self.values)
        squares = cyclic(whole, whole, wrap(self.basis))[: len(self.values)]
        return squares[0] + at_sums(self.basis, squares)[::2]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.scales), len(self.scales)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def reach(self) -> int:
        """A row has every value of a period once at most."""
        return int(abs(period(self.basis, self.values)).sum()) * int(self.scales.max())

    def apply(self, x: Array) -> Array:
        return self._convolved(along(self.scales, x) * x)

    def apply_t(self, y: Array) -> Array:
        return along(self.scales, y) * self._convolved(y)

    def _convolved(self, x: Array) -> Array:
        """K·x."""
        if x.dtype.kind != "i" or self.dtype == FLOAT:
            return transform(self.basis, along(self.weights, x) * transform(self.basis, x))
        whole, start = period(self.basis, self.values), EXTRA[self.basis] - 1
        columns = x.reshape(len(x), -1).T
        products = [cyclic(whole, folded(self.basis, column), wrap(self.basis)) for column in columns]
        return np.stack([product[start : start + len(x)] for product in products], axis=1).reshape(x.shape)

    def solve(self, y: Array) -> Array:
        waves = transform(self.basis, y.astype(FLOAT, copy=False))
        return transform(self.basis, waves / along(self.weights, y)) / along(self.scales, y)

    def solve_t(self, x: Array) -> Array:
        waves = transform(self.basis, x / along(self.scales, x))
        return transform(self.basis, waves / along(self.weights, x))

    def gram(self) -> Gram:
        return Gram.of(ProductGram(self, self.column_norms(2)))

    def power(self, p: Norm) -> Powers:
        return Powers(self, p)

    def column_norms(self, p: Norm) -> Array:
        if p == 2:
            return self.norms * self.scales**2
        n = len(self.scales)
        pieces = np.array_split(np.arange(n), n * n // _MAX_WEIGHTS + 1)
        return sum((abs(self.rows(piece)).sum(axis=0) for piece in pieces), np.zeros(n, self.dtype))

    def rows(self, index: Array) -> Array:
        cells, sums = np.arange(len(self.scales)), at_sums(self.basis, self.values)
        return (self.values[abs(index[:, None] - cells)] + sums[index[:, None] + cells]) * self.scales

    def interval_moments(self, lows: Integers, highs: Integers) -> Array:
        """Exact if there are few cells and intervals, so that the weights can be written out.

        Otherwise the variances are exact, and the rest upper bounds: under Gaussian noise, which this strategy is for,
        they do not matter.
        """
        if len(lows) * len(self.scales) <= _MAX_WEIGHTS:
            sizes = abs(self.solve_t(interval_rows(lows, highs, len(self.scales)).T.astype(FLOAT)))
            return np.stack([*((sizes**power).sum(axis=0) for power in (2, 4, 6)), sizes.max(axis=0)], axis=1)
        variances = self._variances.of(lows, highs)
        return np.stack([variances, variances**2, variances**3, _ALMOST * np.sqrt(variances)], axis=1)

    def interval_variances(self, lows: Integers, highs: Integers) -> Array:
        return self._variances.of(lows, highs)

    @cached_property
    def _variances(self) -> FoldedVariances:
        return FoldedVariances(self.basis, kernel(self.basis, self.weights**-2.0), 1 / self.scales)

    def determines(self, gram: AxisGram) -> bool:
        return True

    @property
    def solution_size(self) -> int:
        return len(self.scales)

    @property
    def solution_arrays(self) -> int:
        return _ARRAYS

    @property
    def extra_bits(self) -> int:
        return SCALE_BITS

    def rounded(self, k: int, norm: Norm) -> Folded:
        most = float(self.scales.max())
        values = np.rint(2**k * most * self.values).astype(INTEGER)
        coarse = Folded(self.basis, values, np.ones(len(self.scales), INTEGER))
        ratios = np.sqrt(self.norms / coarse.norms) * self.scales
        scales = np.floor(2.0 ** (k + SCALE_BITS) * ratios * (1 - _ROUNDING)).astype(INTEGER)
        return Folded(self.basis, values, scales)

    def difference_norm(self, p: Norm) -> None:
        return None

    def least_overlap(self, p: Norm) -> int:
        """0 if the kernel of K² falls all the way: then no two columns of K point away from each other."""
        if p == 2 and self.dtype == INTEGER:
            whole = period(self.basis, self.values)
            squares = cyclic(whole, whole, wrap(self.basis))[: len(self.values)]
            if (np.diff(squares) <= 0).all():
                return 0
        return super().least_overlap(p)
