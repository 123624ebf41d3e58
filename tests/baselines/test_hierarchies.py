"""Quadtree and KdTree: boxes and weights by hand, least squares written out, and what they refuse."""

import numpy as np
import pytest

import hdmm
from hdmm.baselines import KdTree, Quadtree
from hdmm.errors import InputError
from hdmm.estimators.estimator import loss
from hdmm.estimators.least_squares import least_squares
from hdmm.estimators.nested import NestedLeastSquares
from tests.baselines.dense import dense_loss, strategy_rows, workload_rows
from tests.operators.proposals import proposed, reason_aside

OPERATORS = [Quadtree(), Quadtree("uniform"), KdTree(), KdTree("uniform")]
each = pytest.mark.parametrize("operator", OPERATORS, ids=repr)


def ranges(*sizes):
    schema = hdmm.Schema({name: range(size) for name, size in zip("xyz", sizes, strict=False)})
    return (
        hdmm.Workload(schema)
        .add("boxes", x=hdmm.AllRange(), y=hdmm.Prefix())
        .add("windows", x=hdmm.Width(2), y=hdmm.Ranges([(0, 1), (1, 2)]) | hdmm.Total(), weight=2)
        .add("cells of y", y=hdmm.Identity())
    )


def halves(n):
    """The ends of groups level by level, each group split at its middle."""
    levels = [[0, n]]
    while len(levels[-1]) <= n:
        exact = [n * place / 2 ** len(levels) for place in range(2 ** len(levels) + 1)]
        levels.append(sorted({int(end) for end in exact}))
    return levels


def boxes(strategy):
    """The bounds on both attributes of the boxes of every level."""
    shapes = []
    for block in strategy.blocks:
        factors = dict(zip(block.axes, block.factors, strict=True))
        ends = []
        for axis, size in enumerate(strategy.sizes[:2]):
            rows = factors[axis].dense() if axis in factors else np.ones((1, size), int)
            ends.append([0, *(row.nonzero()[0][-1] + 1 for row in rows)])
        shapes.append(ends)
    return shapes


@pytest.mark.parametrize("sizes", [(8, 8), (5, 3), (2, 9), (7, 4)])
def test_a_quadtree_splits_both_attributes_and_a_kd_tree_one_after_the_other(sizes):
    workload = (
        ranges(*sizes)
        if min(sizes) > 2
        else hdmm.Workload(hdmm.Schema(x=range(2), y=range(9))).add("q", x=hdmm.Prefix(), y=hdmm.Prefix())
    )
    first, second = map(halves, sizes)
    depth = max(len(first), len(second))
    quad = [[first[min(k, len(first) - 1)], second[min(k, len(second) - 1)]] for k in range(depth)]
    assert boxes(proposed(Quadtree(), workload.encoded, 1).strategy) == quad
    expected = [[first[0], second[0]]]
    for k in range(1, depth):
        for pair in (
            [min(k, len(first) - 1), min(k - 1, len(second) - 1)],
            [min(k, len(first) - 1), min(k, len(second) - 1)],
        ):
            level = [first[pair[0]], second[pair[1]]]
            if level != expected[-1]:
                expected.append(level)
    assert boxes(proposed(KdTree(), workload.encoded, 1).strategy) == expected


@pytest.mark.parametrize(("operator", "growth"), [(Quadtree(), 2), (KdTree(), 2**0.5), (Quadtree("uniform"), 1)])
@pytest.mark.parametrize("norm", [1, 2])
def test_weights_grow_from_the_root_to_the_cells(operator, growth, norm):
    strategy = proposed(operator, ranges(8, 8).encoded, norm).strategy
    weights = np.array([float(block.weight) for block in strategy.blocks])
    np.testing.assert_allclose(weights[1:] / weights[:-1], growth ** (1 / (2 + norm)), rtol=1e-5)
    assert strategy.blocks[0].queries == 1


@each
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("sizes", [(8, 8), (7, 5), (16, 4, 2)], ids=str)
def test_the_loss_is_that_of_least_squares_written_out(operator, norm, sizes):
    workload = ranges(*sizes)
    strategy = proposed(operator, workload.encoded, norm).strategy
    estimator = least_squares(strategy)
    assert isinstance(estimator, NestedLeastSquares)
    expected = dense_loss(strategy_rows(strategy, workload), workload_rows(workload), norm)
    assert loss(estimator, workload.encoded, norm) == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [(32, 32), (40, 25)], ids=str)
def test_larger_domains_have_exact_errors_too(sizes):
    """The mean of all variances, found by solves for some answers, is the predicted one."""
    schema = hdmm.Schema(x=range(sizes[0]), y=range(sizes[1]))
    workload = hdmm.Workload(schema).add("q", x=hdmm.Width(sizes[0] - 2), y=hdmm.Width(sizes[1] - 2))
    for operator in (Quadtree(), KdTree()):
        strategy = proposed(operator, workload.encoded, 1).strategy
        measured, asked = strategy_rows(strategy, workload), workload_rows(workload)
        solved = np.linalg.solve(measured.T @ measured, asked.T)
        sensitivity = float(abs(measured).sum(axis=0).max())
        expected = sensitivity**2 * float((asked.T * solved).sum())
        assert loss(least_squares(strategy), workload.encoded, 1) == pytest.approx(expected)


@each
def test_refusals_name_the_product_and_the_attribute(operator):
    schema = hdmm.Schema(x=range(6), y=range(4), z=range(2))
    workload = hdmm.Workload(schema).add("fine", x=hdmm.Prefix(), y=hdmm.AllRange())
    cases = {
        "the workload is about 1 attribute: 'x'": hdmm.Workload(schema).add("x", x=hdmm.Prefix()),
        "the workload is about 3 attributes: 'x', 'y', 'z'": workload.add("z", z=hdmm.Identity()),
        "the product 'odd' asks about more than ranges of 'x'": workload.add(
            "odd", x=hdmm.Values([0, 2]) | hdmm.Where("x IN (1, 3)")
        ),
        "the product 'mixed' asks about more than ranges of 'y'": workload.add(
            "mixed", y=hdmm.Permuted(hdmm.Prefix(), [2, 0, 1, 3])
        ),
        "the product 'not' asks about more than ranges of 'x'": workload.add("not", x=~hdmm.Identity()),
        "the product 'real' asks about more than ranges of 'x'": workload.add(
            "real", x=hdmm.Custom([[0, 1, 2, 1, 0, 0]])
        ),
        "the product 'signed' asks about more than ranges of 'x'": workload.add(
            "signed", x=hdmm.Custom([[0, 1, -1, 0, 0, 0]])
        ),
        "the product 'either' has a condition": workload.add("either", x=hdmm.Identity(), where="x = 1 OR y = 2"),
    }
    for reason, refused in cases.items():
        assert reason_aside(operator, refused.encoded, 1).startswith(reason)


@each
def test_ranges_are_known_whatever_way_they_are_written(operator):
    schema = hdmm.Schema(x=hdmm.Integers(0, 5, missing=True), y=range(4))
    workload = hdmm.Workload(schema)
    workload = workload.add(
        "written", x=hdmm.Where("x >= 2") | hdmm.Prefix(), y=hdmm.Custom([[0, 2, 2, 0], [0, 0, -1, 0]])
    )
    workload = workload.add("one value", x=hdmm.Values([3]), y=hdmm.Permuted(hdmm.Identity(), [3, 2, 1, 0]))
    assert proposed(operator, workload.encoded, 2).strategy.family == "union"


@each
def test_a_domain_that_is_too_large_is_refused(operator):
    schema = hdmm.Schema(x=range(5000), y=range(4))
    workload = hdmm.Workload(schema).add("q", x=hdmm.Prefix(), y=hdmm.Prefix())
    assert reason_aside(operator, workload.encoded, 1).startswith("'x' × 'y' has 5,000 × 4 cells")


@pytest.mark.parametrize("operator", [Quadtree, KdTree])
def test_an_unknown_allocation_is_refused(operator):
    with pytest.raises(InputError, match="allocation='geometri': expected 'geometric' or 'uniform'"):
        operator("geometri")
