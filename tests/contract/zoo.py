"""One example of every matrix, Gram and estimator; each inherits all contract tests against its dense oracle.

tests/contract/test_complete.py checks that none is missing.
"""

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from hdmm import matrix, operators
from hdmm.estimators.biased import BiasedEstimator
from hdmm.estimators.estimator import LinearEstimator
from hdmm.estimators.graphical import PrivatePGM
from hdmm.estimators.joint import JointLeastSquares
from hdmm.estimators.least_squares import least_squares, local_least_squares
from hdmm.estimators.nonnegative import NonnegativeLeastSquares
from hdmm.matrix import (
    AllRange,
    Complement,
    Condition,
    Dense,
    Filtered,
    Folded,
    Haar,
    Hats,
    Identity,
    Kron,
    Matrix,
    Partition,
    PIdentity,
    Prefix,
    Repeated,
    Restricted,
    Select,
    Spans,
    Spiked,
    Stack,
    Total,
    Tree,
    Width,
)
from hdmm.matrix.axis_gram import (
    AllRangeGram,
    AxisGram,
    ComplementGram,
    DenseGram,
    IdentityGram,
    OnesGram,
    PrefixGram,
    RestrictedGram,
    RowsGram,
    SelectedGram,
    SumGram,
    WidthGram,
)
from hdmm.matrix.by_products import ProductGram
from hdmm.matrix.condition import signed_boxes
from hdmm.matrix.orbits import Kinds, OrbitQueries, Within
from hdmm.matrix.partition import PartitionGram
from hdmm.matrix.pidentity import PIdentityGram
from hdmm.matrix.spans import SpansGram
from hdmm.operators.opt0.laplace import _PartGram
from hdmm.privacy.calibrate import NORM, calibrate
from hdmm.schema import Schema
from hdmm.strategy import Block, Strategy
from hdmm.strategy.sensitivity import change_by_adding
from hdmm.workload import AllRange as Ranges
from hdmm.workload import Custom, Encoded, Where, Workload
from hdmm.workload import Identity as Each
from hdmm.workload import Prefix as Upto
from hdmm.workload import Total as Sum_
from tests.operators.proposals import proposed

_RNG = np.random.default_rng(7)
_MORE = np.random.default_rng(8)
_INTEGERS = _RNG.integers(-3, 4, (3, 5))
_REALS = _RNG.normal(size=(2, 4))
_PIDENTITY = PIdentity(np.array([[1, 0, 0.5, 2, 0], [0, 3, 0, 1, 1]]))

_OR = Condition.of(signed_boxes(np.array([[0, 1], [1, 1]], bool)), {0: np.array([0, 1, 1]), 1: np.array([1, 0])})
_XOR = Condition.of(signed_boxes(np.array([[0, 1], [1, 0]], bool)), {0: np.array([0, 1, 1]), 1: np.array([1, 0, 1, 0])})

_KINDS = Kinds(np.array([0, 1, 1, 0, 2])), Kinds(np.array([1, 0, 0])), Kinds(np.array([0, 0]))
_ORBITS = OrbitQueries(
    _KINDS, (None, Within.of(_KINDS[1], 0), None), Dense(np.array([[2, -1, 3], [0, 1, 4], [5, 5, 5], [1, -2, 0]]))
)
_PARTS = [np.array([5]), np.array([2, 3]), np.array([1, 1, 3])]
"""A hierarchy whose last level does not tell all cells apart."""
_TREE = Tree(_PARTS, [np.array([2]), np.array([0, 1]), np.array([1, 3, 2])])
_HATS = Hats(9, (2, 4), [np.array([1, 4, 2, 0, 3, 2]), np.array([5, 3, 6, 2])], 12)
MATRICES: dict[str, Matrix] = {
    "dense integers": Dense(_INTEGERS),
    "dense reals": Dense(_REALS),
    "one cell": Identity(1),
    "identity": Identity(4),
    "total": Total(4),
    "deviations": Spiked.centred(4),
    "deviations of one cell": Spiked.centred(1),
    "spiked": Spiked(3, -2, 5),
    "prefix": Prefix(5),
    "width": Width(7, 3),
    "widest": Width(4, 4),
    "all ranges": AllRange(5),
    "groups": Partition(7, (2, 3, 7)),
    "groups of one cell": Partition(3, (1, 2, 3)),
    "intervals": Spans(5, np.array([1, 0, 3]), np.array([3, 0, 4])),
    "many intervals": Spans(4, np.arange(18) % 2, 2 + np.arange(18) % 2),
    "padded ranges": Select(AllRange(3), np.array([0, 1, 2]), 5),
    "permuted prefix": Select(Prefix(4), np.array([2, 0, 3, 1]), 4),
    "complement": Complement(Prefix(4)),
    "complement of a union": Complement(Stack([Identity(3), Total(3)])),
    "one row": Dense(np.array([[0, 1, 1, 0]])),
    "union on one attribute": Stack([Identity(3), Total(3)]),
    "weighted union": Stack([Identity(3), Prefix(3)], [2, Fraction(1, 2)]),
    "kron of one": Kron([Prefix(4)]),
    "kron": Kron([Prefix(3), Dense(_REALS), Total(2)]),
    "kron of growing factors": Kron([AllRange(3), Identity(2), Total(5), AllRange(4)]),
    "kron of shrinking factors": Kron([Total(3), Dense(_INTEGERS), Width(4, 3)]),
    "union of products": Stack([Kron([Prefix(3), Total(2)]), Kron([Total(3), Identity(2)])], [2, 1]),
    "union with complements": Stack([Kron([Complement(Identity(3)), Total(2)]), Kron([AllRange(3), Identity(2)])]),
    "folded on sines": Folded("sine", np.array([7, 3, -1, 0, 0, 1, -1]), np.array([1, 2, 1, 3, 2])),
    "folded on cosines": Folded("cosine", np.array([8, 2, 1, -1, 1]), np.array([2, 1, 1, 3])),
    "folded reals": Folded("cosine", np.array([1.5, 0.3, 0.1, -0.1]), np.array([0.5, 1.0, 2.0])),
    "folded on one cell": Folded("sine", np.array([3, 1, -2]), np.array([2])),
    "inverse of a folded convolution": Folded("sine", np.array([3.0, 1.0, 0.5, 0.2]), np.array([1.0, 2.0])).inverse(),
    "sizes of a folded convolution": Folded("cosine", np.array([8, 2, 1, -1]), np.array([2, 1, 3])).power(1),
    "p-identity": _PIDENTITY,
    "squares of a p-identity": _PIDENTITY.power(2),
    "inverse of a p-identity": _PIDENTITY.inverse(),
    "sizes of an inverse": _PIDENTITY.inverse().power(1),
    "binary hierarchy": Tree.balanced(6, 2),
    "hierarchy without root": Tree.balanced(7, 3, root=False),
    "weighted hierarchy": _TREE,
    "hierarchy of reals": Tree(_PARTS, [np.array([0.5]), np.array([0.0, 1.5]), np.array([1.0, 0.25, 2.0])]),
    "squares of a hierarchy": _TREE.power(2),
    "wavelet": Haar(6),
    "hats": _HATS,
    "hats of reals": Hats(7, (3,), [np.array([0.25, 0.5, 0.125, 0.0])]),
    "squares of hats": _HATS.power(2),
    "inverse of hats": _HATS.inverse(),
    "sizes of a wavelet": Haar(5).power(1),
    "inverse of a hierarchy": _TREE.inverse(),
    "inverse of a wavelet": Haar(5).inverse(),
    "restricted ranges": Restricted(AllRange(4), np.array([True, False, True, True])),
    "repeated prefixes": Repeated(Prefix(3), np.array([1, -2]), np.array([1, 0, 3])),
    "repeated reals": Repeated(Dense(_REALS), np.array([0.5]), np.array([1, 1])),
    "queries over kinds": _ORBITS,
    "squares of queries over kinds": _ORBITS.power(2),
    "reals over kinds": OrbitQueries((_KINDS[1], _KINDS[0]), (None, Within.of(_KINDS[0], 1)), Dense(_REALS[:, :2])),
    "disjunction": Filtered(Kron([Prefix(3), Total(2)]), _OR),
    "disjoint boxes": Filtered(Kron([Total(3), Dense(_REALS), Identity(2)]), _XOR),
    "union with a disjunction": Stack([Kron([Prefix(3), Total(2)]), Filtered(Kron([Identity(3), Total(2)]), _OR)]),
}

_RIGHT = _MORE.normal(size=5)
_CROSS = _MORE.normal(size=(4, 4))
_WINDOWS = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1]])
_RANGES = np.array([[low <= cell <= high for cell in range(5)] for low in range(5) for high in range(low, 5)], int)
_MASKS = np.array([1, 0, 1, 1, 0]), np.array([0, 1, 1, 1, 0])
_COLUMNS = np.array([3, 0, 2, 5, 1])
_SELECTED = np.zeros((5, 6))
_SELECTED[:, _COLUMNS] = np.tri(5)
_BORDERED = np.vstack([np.diag(_RIGHT), _INTEGERS])


def _square(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows


GRAMS: dict[str, tuple[AxisGram, np.ndarray]] = {
    "of two matrices": (DenseGram(_CROSS), _CROSS),
    "rows": (RowsGram(_REALS), _square(_REALS)),
    "identity": (IdentityGram(4), np.eye(4)),
    "total": (OnesGram(4), np.ones((4, 4))),
    "prefix": (PrefixGram(5), _square(np.tri(5))),
    "all ranges": (AllRangeGram(5), _square(_RANGES)),
    "width": (WidthGram(5, 3), _square(_WINDOWS)),
    "intervals": (
        SpansGram(Spans(5, np.array([1, 0, 3]), np.array([3, 0, 4]))),
        _square(np.array([[0, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 1]])),
    ),
    "groups": (
        PartitionGram(Partition(5, (1, 3, 5))),
        _square(np.array([[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]])),
    ),
    "selected": (SelectedGram(PrefixGram(5), _COLUMNS, 6), _square(_SELECTED)),
    "restricted": (RestrictedGram(PrefixGram(5), *_MASKS), np.outer(*_MASKS) * _square(np.tri(5))),
    "complement": (ComplementGram(WidthGram(5, 3), 3, _WINDOWS.sum(axis=0)), _square(1 - _WINDOWS)),
    "sum": (SumGram(((2.0, PrefixGram(5)), (-1.0, IdentityGram(5)))), 2 * _square(np.tri(5)) - np.eye(5)),
    "deviations": (SumGram(((2.0, IdentityGram(4)), (-0.5, OnesGram(4)))), 2 * np.eye(4) - 0.5),
    "bordered": (PIdentityGram(_RIGHT, _INTEGERS), _square(_BORDERED)),
    "by products": (ProductGram(Dense(_INTEGERS), (_INTEGERS**2).sum(axis=0)), _square(_INTEGERS)),
    "some cells": (_PartGram(PrefixGram(5), np.array([0, 2, 3])), _square(np.tri(5))[np.ix_([0, 2, 3], [0, 2, 3])]),
}
"""Every kind of Gram over one attribute, and its entries written out."""

SCHEMA = Schema(a=range(2), b=range(3), c=range(4))
WORKLOAD = (
    Workload(SCHEMA)
    .add("prefixes", a=Each(), b=Upto())
    .add("ranges", b=Ranges(), c=Each() | Sum_(), weight=2)
    .add("reals", c=Custom([[1, 0, 0.5, -1]]))
    .add("condition", a=Where("a = 1"), c=Upto())
    .add("either", b=Each(), where="a = 1 OR b >= 1")
    .add("exactly one", b=Upto(), c=Each(), where="(b = 1 AND NOT c > 1) OR (NOT b = 1 AND c > 1)", weight=3)
    .add("total")
    .add("repeated", a=Sum_() | Sum_(), b=Each(), c=Custom([[3, 3, 3, 3], [-1, -1, -1, -1]]))
    .add("multiples of the total", b=Custom([[2, 2, 2], [0, 0, 0], [-1, -1, -1]]))
    .add("nobody", b=Each(), c=~Sum_())
)


def _identity(*axes: int) -> tuple[Matrix, ...]:
    return tuple(matrix.Identity(SCHEMA.sizes[axis]) for axis in axes)


def _residuals(*factors: Matrix) -> Strategy:
    subsets = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    blocks = [Block(a, tuple(factors[axis] for axis in a), Fraction(3, 2 + len(a))) for a in subsets]
    return Strategy(SCHEMA.sizes, tuple(blocks), "residual")


_CELL_KINDS = Kinds(np.array([0, 0])), Kinds(np.array([0, 1, 1])), Kinds(np.array([0, 0, 1, 2]))
_COMPARED = 0, 1, 0
"""The kinds whose cells are compared."""


def _over_kinds(compared: tuple[int, ...]) -> Block:
    """Differences on some attributes, and queries over the sums of kinds on the others."""
    parts = [Within.of(_CELL_KINDS[axis], _COMPARED[axis]) if axis in compared else None for axis in range(3)]
    sums = prod(len(_CELL_KINDS[axis]) for axis in range(3) if axis not in compared)
    queries = np.tri(sums, dtype=np.int64) + _RNG.integers(0, 2, (sums, sums)) @ np.eye(sums, dtype=np.int64, k=1)
    factor = OrbitQueries(_CELL_KINDS, tuple(parts), Dense(np.vstack([queries, np.eye(sums, dtype=np.int64)])))
    return Block((0, 1, 2), (factor,), Fraction(3, 2 + len(compared)))


_FOLDED = (
    Folded("sine", np.array([9, 3, 1, 0, 1]), np.array([2, 1, 3])),
    Folded("cosine", np.array([9, 4, 2, 1, 0]), np.array([1, 2, 2, 3])),
)
_LONG = (
    _FOLDED[1],
    Folded("sine", np.array([20, 7, 2, 0, 1, 3]), np.array([3, 1, 1, 2])),
    Dense(np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 2, 1, 0], [1, 1, 1, 1], [0, 0, 3, 1]])),
)
_CENTRED = Spiked.centred(2), Dense(np.array([[1, 1, 0], [0, 2, -1]]))
_SQUARE = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 2, 1, 0], [1, 1, 1, 1], [0, 0, 3, 1]])
_QUERIES = np.concatenate([np.eye(24, dtype=np.int64), _RNG.integers(-2, 3, (5, 24))])
_BASE = Dense(np.array([[2, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 1]]))
_WHOLE = Workload(SCHEMA, [product for product in WORKLOAD.products if product.name != "reals"])

STRATEGIES: dict[str, tuple[Strategy, Workload]] = {
    "identity": (Strategy(SCHEMA.sizes, (Block((0, 1, 2), _identity(0, 1, 2)),), "kron"), WORKLOAD),
    "kron": (Strategy(SCHEMA.sizes, (Block((0, 1, 2), (Identity(2), AllRange(3), Dense(_SQUARE))),), "kron"), WORKLOAD),
    "hierarchies": (
        Strategy(
            SCHEMA.sizes,
            (
                Block(
                    (0, 1, 2),
                    (
                        Haar(2),
                        Tree.balanced(3, 2),
                        Tree([np.array([4]), np.ones(4)], [np.array([2]), np.array([1, 2, 1, 3])]),
                    ),
                ),
            ),
            "kron",
        ),
        WORKLOAD,
    ),
    "folded convolutions": (
        Strategy(
            SCHEMA.sizes,
            (
                Block(
                    (0, 1, 2),
                    (Identity(2), *_FOLDED),
                ),
            ),
            "kron",
        ),
        WORKLOAD,
    ),
    "marginals": (
        Strategy(
            SCHEMA.sizes,
            (
                Block((0, 1), _identity(0, 1)),
                Block((1, 2), _identity(1, 2), Fraction(2)),
                Block((0, 2), _identity(0, 2), Fraction(1, 3)),
                Block((2,), _identity(2)),
                Block((), ()),
            ),
            "marginal",
        ),
        WORKLOAD,
    ),
    "marginals over bases": (
        Strategy(
            SCHEMA.sizes,
            (
                Block((0, 1), (Identity(2), _BASE)),
                Block((1, 2), (_BASE, AllRange(4)), Fraction(2)),
                Block((0, 2), (Identity(2), AllRange(4)), Fraction(1, 3)),
                Block((), ()),
            ),
            "marginal",
        ),
        WORKLOAD,
    ),
    "marginals over folded convolutions": (
        Strategy(
            SCHEMA.sizes,
            (
                Block((0, 1), (Identity(2), _FOLDED[0])),
                Block((1, 2), _FOLDED, Fraction(2)),
                Block((0, 2), (Identity(2), _FOLDED[1]), Fraction(1, 3)),
                Block((2,), (_FOLDED[1],)),
                Block((), ()),
            ),
            "marginal",
        ),
        Workload(SCHEMA, [product for product in WORKLOAD.products if product.where is None]),
    ),
    "residuals": (_residuals(Spiked.centred(2), Spiked.centred(3), Spiked.centred(4)), WORKLOAD),
    "residuals of other kinds": (
        _residuals(
            Dense(np.array([[1, -2]])),
            Dense(np.array([[1, 1, 0], [0, 2, -1]])),
            Dense(np.array([[1, -1, 0, 2], [0, 1, 1, -1], [2, 0, 1, 1], [1, 0, 1, 1]])),
        ),
        WORKLOAD,
    ),
    "residuals along folded convolutions": (
        Strategy(
            SCHEMA.sizes,
            tuple(
                Block(
                    (*axes, 2),
                    (*(_CENTRED[axis] for axis in axes), factor),
                    Fraction(3, 2 + len(axes)),
                )
                for axes, factor in zip([(), (0,), (1,), (0, 1)], [*_LONG, Haar(4)], strict=True)
            ),
            "residual",
        ),
        Workload(SCHEMA, [product for product in WORKLOAD.products if product.where is None]),
    ),
    "union": (
        Strategy(
            SCHEMA.sizes,
            (
                Block((0, 1), (Identity(2), _BASE), Fraction(1, 2)),
                Block((1, 2), (AllRange(3), Dense(_SQUARE))),
                Block((0, 2), (Identity(2), AllRange(4)), Fraction(2)),
            ),
            "union",
        ),
        WORKLOAD,
    ),
    "nested": (
        Strategy(
            SCHEMA.sizes,
            (
                Block((0, 1, 2), (Identity(2), Partition(3, (1, 3)), Partition(4, (2, 4))), Fraction(3, 2)),
                Block((0, 1, 2), _identity(0, 1, 2)),
                Block((2,), (Partition(4, (2, 4)),), Fraction(1, 2)),
                Block((), ()),
            ),
            "union",
        ),
        WORKLOAD,
    ),
    "optimised kron": (proposed(operators.Kron(), WORKLOAD.encoded, 1).strategy, WORKLOAD),
    "optimised kron, Gaussian": (proposed(operators.Kron(), WORKLOAD.encoded, 2).strategy, WORKLOAD),
    "optimised union": (proposed(operators.Union(groups=()), WORKLOAD.encoded, 1).strategy, WORKLOAD),
    "optimised union, Gaussian": (proposed(operators.Union(groups=()), WORKLOAD.encoded, 2).strategy, WORKLOAD),
    "explicit": (Strategy(SCHEMA.sizes, (Block((0, 1, 2), (Dense(_QUERIES),)),), "explicit"), WORKLOAD),
    "optimised explicit": (proposed(operators.Explicit(), WORKLOAD.encoded, 1).strategy, WORKLOAD),
    "optimised explicit, Gaussian": (proposed(operators.Explicit(), WORKLOAD.encoded, 2).strategy, WORKLOAD),
    "symmetric": (
        Strategy(
            SCHEMA.sizes,
            tuple(_over_kinds(axes) for axes in ((), (0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2))),
            "symmetric",
        ),
        WORKLOAD,
    ),
    "optimised symmetric": (proposed(operators.Symmetric(), WORKLOAD.encoded, 2).strategy, WORKLOAD),
    "direct": (
        Strategy(
            SCHEMA.sizes,
            tuple(Block(p.axes, tuple(p.factors.values()), p.weight, p.condition) for p in _WHOLE.encoded.products),
            "direct",
        ),
        _WHOLE,
    ),
}


ESTIMATORS: dict[str, tuple[LinearEstimator[Any], Workload]] = {
    name: (local_least_squares(strategy), workload) for name, (strategy, workload) in STRATEGIES.items()
}
ESTIMATORS |= {
    f"{name}, all blocks": (least_squares(STRATEGIES[name][0]), STRATEGIES[name][1])
    for name in ("nested", "union", "optimised union", "optimised union, Gaussian", "direct")
}
ESTIMATORS |= {
    f"{name}, all blocks at once": (JointLeastSquares(local_least_squares(STRATEGIES[name][0])), STRATEGIES[name][1])
    for name in ("union", "optimised union", "optimised union, Gaussian", "direct")
}


BIASED: dict[str, tuple[BiasedEstimator[Any], Workload]] = {}
for _name in (
    "kron",
    "marginals",
    "marginals over bases",
    "residuals",
    "symmetric",
    "nested",
    "union",
    "explicit",
    "direct",
):
    _strategy, _workload = STRATEGIES[_name]
    _unbiased = least_squares(_strategy)
    BIASED[f"non-negative, {_name}"] = NonnegativeLeastSquares(_unbiased, _workload.encoded), _workload
    BIASED[f"Private-PGM, {_name}"] = PrivatePGM(_unbiased), _workload


def dense_blocks(strategy: Strategy, encoded: Encoded) -> list[np.ndarray]:
    """Every block's queries over the full domain, written out."""
    full = []
    for block in strategy.blocks:
        if block.joint:
            entries = block.factors[0].dense()
            table = [size if axis in block.axes else 1 for axis, size in enumerate(encoded.sizes)]
            spread = np.broadcast_to(entries.reshape(len(entries), *table), (len(entries), *encoded.sizes))
            full.append(spread.reshape(len(entries), -1))
            continue
        factors = dict(zip(block.axes, block.factors, strict=True))
        rows = Kron(factors.get(axis) or Total(size) for axis, size in enumerate(encoded.sizes)).dense()
        full.append(rows if block.condition is None else rows * block.condition.dense(encoded.sizes))
    return full


def noise_for(blocks, kind, budget):
    """The noise where one row is added or removed."""
    return calibrate(blocks, kind, budget, change_by_adding(blocks, NORM[kind]))
