"""Margins of error for answers: the m with P(|error| ≤ m) ≥ level.

With Laplace noise the error of an answer is a weighted sum S of independent discrete Laplace variables. A normal
interval is wrong for few terms, so the law of S is inverted from its exact characteristic function. With v the variance
of one variable, that is 1/(1 + 2v·sin²(t/2)); the moments have 1/(1 - 2v·sinh²(t/2)), and P(0) = 1/√(1 + 2v).

- `_lattice`: all coefficients have one size, or are integers. A finite Fourier sum gives P(|S| ≤ m) at every lattice
  point m without approximation; the smallest that reaches the level is returned.
- `many_terms_margin`: enough small terms that the normal law with three corrections is right to 0.1%; the size of the
  last two is added on top.
- `expansion_bound`: the same with larger corrections, where sums are too many or have too many terms for the rest.
- `_smoothed`: the rest. A Fourier series for S + hZ, with Z normal and h tiny, which cannot ring at atoms of S:
  P(|S| ≤ x + ah) ≥ P(|S + hZ| ≤ x) - P(|Z| > a), whatever S is. The margin is about 0.3% above the smallest one; more
  than 1% only if atoms of S make P(|S| ≤ m) jump within 0.1% of 1 - level, or rare terms are 10⁴ times the margin.

Bounds on every error of the series are added to the level, so that the coverage is not below it.

If only the standard error s of a sum is known, or an upper bound of it, :func:`worst_margin` bounds the margins of all
such sums. A Laplace variable is normal with an exponential variance, so that P(|S| > t) = E g(V) with V = Σ wᵢEᵢ,
where the wᵢ are the shares of the terms in s² and g(v) = P(|N(0, v)| > t). If a choice of shares is the worst,
E g'(V + wᵢE) is the same for all i. As a function of w, E g'(V + wE) less a constant has at most two zeros, since g' is
unimodal, V has a log-concave density, and exponential kernels do not add changes of sign; and at the smaller zero it
grows, which with two shares of that size would not be a maximum. So the worst sum has k equal terms and at most one
smaller one: a family of one parameter, which is searched in the tests. For discrete variables X with uniform U, the
sum of c(X + U) is more peaked than that of Laplace variables of variance v + ½, and Σ cU is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdmm.errors import InputError
from hdmm.privacy.scale import laplace_variance
from hdmm.syntax import example, given

Floats = NDArray[np.float64]

_MAX_LATTICE_NODES = 2**16
"""The most nodes of the finite Fourier sum; the weights of a longer one are negligible."""
_MAX_LATTICE_WORK = 2**20
"""The most nodes times terms; beyond, integer coefficients are treated like any others."""
_MAX_SERIES_NODES = 2**16
"""The most nodes of the Fourier series."""
_MAX_NODES_AT_ONCE = 2**16
"""The most nodes times terms that are computed at a time."""
_NEGLIGIBLE = 50.0
"""A characteristic function below exp(-50) is treated as zero."""
_ROUNDING = 1e-12
"""Rounding error of a probability."""
_SMOOTHING = 0.0005
"""h, as a share of the margin."""
_MAX_ERROR = 2e-4
"""The largest corrections, as a share of the normal margin, with which an expansion is a margin."""
_MAX_LEFT_OUT = 8e-4
"""The largest negative correction, on the same scale, that such a margin leaves out."""
_MAX_BOUNDED_ERROR = 0.1
"""The largest ones with which it is an upper bound."""
_MAX_GRAIN = 0.01
"""The largest coefficient of a sum of many terms, as a share of the normal margin."""
_LEVELS = (0.001, 1 - 1e-10)
"""The lowest and the highest level."""
_MAX_EXCESS = 1.003
"""No sum has a larger quantile than one term or the normal law, up to this factor."""


def margin(scales: ArrayLike, coefficients: ArrayLike, multiplicities: ArrayLike, level: float = 0.95) -> float:
    """Return the m such that a weighted sum of discrete Laplace variables is within ±m with this probability.

    The sum has, for each coefficient, as many independent terms of that scale as the multiplicity says.

    >>> margin(scales=10, coefficients=1, multiplicities=1)
    30.0
    >>> round(margin([10, 20], [1.0, 0.3], [1, 4]))
    44
    """
    check_level(level)
    terms = _Sum.of(scales, coefficients, multiplicities)
    if terms.zero_probability >= level:
        return 0.0
    half_width = _lattice(terms, level)
    if half_width is None:
        half_width = _cornish_fisher(terms, level)
    return _smoothed(terms, level) if half_width is None else half_width


def normal_margin(stderr: float, level: float = 0.95) -> float:
    """Return the m such that normal noise of this standard deviation is within ±m with this probability."""
    check_level(level)
    return _quantile(1 - level) * stderr


def rounded_margin(sigma: ArrayLike, level: float = 0.95) -> Floats:
    """Return the least integer m such that Gaussian noise of this σ, rounded, is within ±m with this probability.

    It is within ±m if it was within m + ½ before it was rounded.

    >>> float(rounded_margin(0.7)), float(rounded_margin(0.2))
    (1.0, 0.0)
    """
    check_level(level)
    return np.maximum(np.ceil(_quantile(1 - level) * np.asarray(sigma, np.float64) - 0.5), 0.0)


def normal_cover(sigma: float, variance: float) -> float:
    """Return the variance of a normal variable that covers Gaussian noise of this σ and variance, rounded to integers.

    If σ is small, rounded noise is nearly always zero and has a variance far below what its rare steps are worth in a
    sum of few. With U uniform on ±½, the sum of noise and U has a density that falls from P(0), and is nearer to zero
    than a normal variable whose density there is no higher.
    """
    zero = math.erf(0.5 / (math.sqrt(2) * sigma))
    return max(variance, 1 / (2 * math.pi * zero**2))


def worst_margin(stderr: ArrayLike, variance: float, level: float = 0.95) -> Floats:
    """Return an m such that any sum of discrete Laplace variables of this stderr is within ±m with this probability.

    The stderr may also be an upper bound. ``variance`` is the smallest variance of a variable: if it is so small that
    steps are coarse, Chebyshev's inequality is better than the bound at the top of this file.

    >>> round(float(worst_margin(1.0, variance=1e9)), 2)
    2.13
    """
    check_level(level)
    outside = 1 - level
    share = 1e-3 * outside  # lost to the uniform variables, which are subgaussian
    quantile = _MAX_EXCESS * max(-math.log(outside - share) / math.sqrt(2), _quantile(outside - share))
    multiple = chebyshev(level)
    if variance * multiple**2 > 1:  # with less, steps alone are more than that
        smooth = math.sqrt(math.log(2 / share) / (6 * variance))
        multiple = min(multiple, quantile * math.sqrt(1 + 1 / (2 * variance)) + smooth)
    return np.asarray(stderr, np.float64) * multiple


def chebyshev(level: float) -> float:
    """Return the m such that an error of any law is within ±m standard errors with this probability.

    >>> round(chebyshev(0.95), 2)
    4.47
    """
    check_level(level)
    return 1 / math.sqrt(1 - level)


def simultaneous(level: float, answers: int) -> float:
    """Return the level of each interval such that all hold together at a level, however their errors depend."""
    check_level(level)
    single = 1 - (1 - level) / answers
    if single > _LEVELS[1]:
        raise InputError(
            f"{given('level', str(level))}: too high for {answers:,} simultaneous intervals; ask for a lower level or "
            "smaller tables"
        )
    return single


def cumulants(variance: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return the second, fourth and sixth cumulant of discrete Laplace variables of these variances."""
    v = np.asarray(variance, np.float64)
    return v, v + 3 * v**2, v + 15 * v**2 + 30 * v**3


def many_terms_margin(
    second: ArrayLike, fourth: ArrayLike, sixth: ArrayLike, largest: ArrayLike, level: float = 0.95
) -> Floats:
    """Return margins by the expansion of Cornish and Fisher from the cumulants of sums, NaN where it might be off.

    ``largest`` is the largest coefficient of each sum. All but the second cumulant may be upper bounds.
    """
    margins, error, left_out, grain = _expansion(second, fourth, sixth, largest, level)
    near = (error <= _MAX_ERROR) & (left_out <= _MAX_LEFT_OUT) & (grain <= _MAX_GRAIN)
    return np.where(near, margins, np.nan)


def expansion_bound(
    second: ArrayLike, fourth: ArrayLike, sixth: ArrayLike, largest: ArrayLike, level: float = 0.95
) -> Floats:
    """Return upper bounds of margins, from the expansion of `many_terms_margin`; infinity where it says too little.

    The last two corrections count in full whatever their sign, and the first if it is positive. The tests compare this
    with the laws of sums of a few terms of any sizes.
    """
    margins, error, _, grain = _expansion(second, fourth, sixth, largest, level)
    return np.where((error <= _MAX_BOUNDED_ERROR) & (grain <= _MAX_GRAIN), margins, np.inf)


def _expansion(
    second: ArrayLike, fourth: ArrayLike, sixth: ArrayLike, largest: ArrayLike, level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Margins; and as shares of the normal margin the last two corrections, the first if it is negative, which is left
    out as the fourth cumulant may be smaller, and the largest coefficient.
    """
    check_level(level)
    stderr = np.sqrt(np.asarray(second, np.float64))
    z = _quantile(1 - level)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kappa4, kappa6 = np.asarray(fourth) / stderr**4, np.asarray(sixth) / stderr**6
        grain = np.asarray(largest) / stderr
        first = kappa4 * (z**3 - 3 * z) / 24
        left_out = np.maximum(-first, 0)
        more, less = kappa6 * (z**5 - 10 * z**3 + 15 * z) / 720, kappa4**2 * (3 * z**5 - 24 * z**3 + 29 * z) / 384
        error = np.abs(more) + np.abs(less)
        # A sum may live on a lattice of this step: half of it is added, as in a continuity correction.
        margins = stderr * (z + first + left_out + more - less + error + grain / 2)
    return margins, error / z, left_out / z, grain / z


def check_level(level: float) -> None:
    """Refuse a level outside the range for which margins are computed."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not _LEVELS[0] <= level <= _LEVELS[1]:
        raise InputError(
            f"{given('level', repr(level))}: expected {_LEVELS[0]} to {_LEVELS[1]}; write for example "
            f"{example('level', 0.95)}"
        )


def _quantile(outside: float) -> float:
    """Return the z that a standard normal variable exceeds in size with this probability."""
    from scipy.special import ndtri

    return -float(ndtri(outside / 2))


@final
@dataclass(frozen=True)
class _Sum:
    """Σ c·X over independent discrete Laplace X: the distinct (variance of X, |c|), and how often each occurs."""

    variances: Floats
    sizes: Floats
    counts: Floats

    @classmethod
    def of(cls, scales: ArrayLike, coefficients: ArrayLike, multiplicities: ArrayLike) -> _Sum:
        arrays = np.broadcast_arrays(scales, coefficients, multiplicities)
        b, c, n = (array.astype(np.float64).ravel() for array in arrays)
        distinct, numbers = np.unique(b, return_inverse=True)
        v = np.array([laplace_variance(scale) for scale in distinct.tolist()])[numbers]
        deviations = np.abs(c) * np.sqrt(n * v)
        kept = deviations > 1e-12 * deviations.max(initial=0)  # a smaller one is a rounding error in c
        pairs, numbers = np.unique(v[kept] + 1j * np.abs(c[kept]), return_inverse=True)
        counts = np.bincount(numbers, weights=n[kept], minlength=pairs.size).astype(np.float64)
        return cls(pairs.real, pairs.imag, counts)

    def without(self, share: float) -> _Sum:
        """Leave out terms that are all zero together with probability at least 1 - share."""
        nonzero = -np.expm1(self._log_zero())
        order = np.argsort(nonzero)
        kept = np.sort(order[np.cumsum(nonzero[order]) > share])
        return _Sum(self.variances[kept], self.sizes[kept], self.counts[kept])

    @property
    def zero_probability(self) -> float:
        """The probability that every term is zero."""
        return math.exp(self._log_zero().sum())

    @property
    def stderr(self) -> float:
        return math.sqrt(np.sum(self.counts * self.sizes**2 * self.variances))

    def characteristic(self, step: float, count: int) -> Floats:
        """Return the characteristic function at step, 2·step, …, count·step; zero once it is negligible."""
        falling = self.sizes * step * count <= np.pi  # the functions of these terms decrease all the way
        phi = np.zeros(count)
        width = max(16, _MAX_NODES_AT_ONCE // self.sizes.size)
        for start in range(0, count, width):
            t = step * np.arange(start + 1, min(start + width, count) + 1)
            parts = self.counts * np.log1p(2 * self.variances * np.sin(np.multiply.outer(t, self.sizes / 2)) ** 2)
            phi[start : start + width] = np.exp(-parts.sum(axis=1))
            if parts[-1, falling].sum() > _NEGLIGIBLE:
                break
        return phi

    def reach(self, outside: float) -> float:
        """Return some y with P(|S| ≥ y) ≤ outside: the best of a few Chernoff bounds."""
        depth = math.log(2 / outside)
        pole = np.min(2 * np.arcsinh(1 / np.sqrt(2 * self.variances)) / self.sizes)
        theta = np.minimum(math.sqrt(2 * depth) / self.stderr * np.geomspace(0.02, 1, 16), 0.95 * pole)
        growth = 2 * self.variances * np.sinh(theta[:, None] * self.sizes / 2) ** 2
        return float(np.min((depth - np.log1p(-growth) @ self.counts) / theta))

    def _log_zero(self) -> Floats:
        return -self.counts * np.log1p(2 * self.variances) / 2


def _lattice(terms: _Sum, level: float) -> float | None:
    """Return the smallest lattice point that covers, or None if S has no lattice or one that is too fine."""
    step = terms.sizes[0]
    same = bool(np.all(terms.sizes == step))
    if not same:
        if not np.all((terms.sizes < 2**53) & (terms.sizes == np.floor(terms.sizes))):
            return None
        step = float(np.gcd.reduce(terms.sizes.astype(np.int64)))
    if terms.counts.sum() == 1:  # P(|X| > m) = 2·p^(m+1)/(1+p)
        decay = 2 * np.arcsinh(1 / np.sqrt(2 * terms.variances[0]))
        return float(step * (math.ceil(math.log(2 / ((1 - level) * (1 + math.exp(-decay)))) / decay) - 1))
    units = _Sum(terms.variances, terms.sizes / step, terms.counts)
    half = math.ceil(units.reach(_ROUNDING))
    if not same and half * units.sizes.size > _MAX_LATTICE_WORK:
        return None
    nodes = min(half, _MAX_LATTICE_NODES) if same else half
    t = 2 * np.pi / (2 * half + 1)
    phi = units.characteristic(t, nodes)
    # With coefficients of one size, phi decreases up to π: what is left out of the sum is below phi[-1]·Σ 1/j.
    target = level + _ROUNDING + (phi[-1] * math.log(half / nodes) if same else 0)
    phi = phi[: np.flatnonzero(phi > 1e-18)[-1] + 1]
    weights = 2 * phi / _sines(t / 2, phi.size)
    return float(step * _smallest(weights, t, 2 * half + 1, 1, 0.5, half, target))


def _cornish_fisher(terms: _Sum, level: float) -> float | None:
    """Return the margin of a sum of many small terms, or None if it is none."""
    second, fourth, sixth = (
        float(terms.counts @ (terms.sizes**power * cumulant))
        for power, cumulant in zip((2, 4, 6), cumulants(terms.variances), strict=True)
    )
    half_width = float(many_terms_margin(second, fourth, sixth, terms.sizes.max(), level))
    return None if math.isnan(half_width) else half_width


def _smoothed(terms: _Sum, level: float) -> float:
    """Return a margin that covers, from the law of S + hZ."""
    # Five such shares are lost: terms left out, |Z| > a, the end of the series, and |S| or |Z| around the period.
    share = 2e-4 * (1 - level)
    terms = terms.without(share)
    a, last = _quantile(share), math.sqrt(-2 * math.log(share))
    reach = terms.reach(share)
    half_width = _quantile(1 - level) * terms.stderr
    for _ in range(3):
        guess = half_width
        h = max(_SMOOTHING * guess, reach * last / (np.pi * _MAX_SERIES_NODES))
        period = 2 * (reach + a * h)
        t = 2 * np.pi / period
        j = np.arange(1, math.ceil(last / (t * h)) + 1)
        weights = 2 * terms.characteristic(t, j.size) * np.exp(-((t * h * j) ** 2) / 2) / (t / 2 * j)
        limit = math.ceil(period / 2 / (h / 4))
        half_width = h / 4 * _smallest(weights, t, period, h / 4, 0, limit, level + 5 * share + _ROUNDING) + a * h
        if half_width > 0.7 * guess:
            break
    return half_width


def _smallest(weights: Floats, t: float, period: float, step: float, shift: float, limit: int, target: float) -> int:
    """Return the least i ≤ limit whose Fourier sum for P(|S| ≤ (i + shift)·step) reaches the target, by bisection."""
    low, high = -1, limit
    while high - low > 1:
        middle = (low + high) // 2
        x = (middle + shift) * step
        if (2 * x + np.sum(weights * _sines(t * x, weights.size))) / period >= target:
            high = middle
        else:
            low = middle
    return high


def _sines(angle: float, count: int) -> Floats:
    """Return sin(angle), sin(2·angle), …, sin(count·angle), from two short tables by the addition formula."""
    width = 256
    near, far = angle * np.arange(width), angle * width * np.arange(count // width + 1)[:, None]
    return (np.sin(far) * np.cos(near) + np.cos(far) * np.sin(near)).ravel()[1 : count + 1]
