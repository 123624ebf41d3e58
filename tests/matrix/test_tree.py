"""Hierarchies and wavelets: least squares and its errors are those of the pseudo-inverse written out."""

import numpy as np
import pytest

from hdmm.errors import TooLargeError
from hdmm.matrix import MAX_ENTRY, Haar, Prefix, Select, Solvable, Tree
from hdmm.matrix.hierarchy import balanced_sizes
from hdmm.memory import memory_allowed


def random_tree(random: np.random.Generator) -> Tree:
    """Any hierarchy of up to 13 cells: uneven parts, parts of one part, zero weights, cells not told apart."""
    levels = [np.array([random.integers(1, 14)])]
    for _ in range(random.integers(0, 5)):
        parts: list[int] = []
        for size in levels[-1].tolist():
            count = random.integers(1, size + 1) if random.random() < 0.7 else 1
            cuts = np.sort(random.choice(np.arange(1, size), count - 1, replace=False))
            parts += np.diff([0, *cuts, size]).tolist()
        levels.append(np.array(parts))
    weights = [random.integers(0, 4, len(level)) for level in levels]
    weights[-1] = random.integers(1, 4, len(levels[-1]))
    return Tree(levels, weights)


def trees() -> list[Solvable]:
    random = np.random.default_rng(5)
    return [random_tree(random) for _ in range(300)]


CASES: list[Solvable] = [
    *trees(),
    *(Haar(n) for n in range(1, 20)),
    *(
        Tree.balanced(n, branching, root=root)
        for n in (1, 2, 9, 16)
        for branching in (2, 3, 16)
        for root in (True, False)
    ),
]


@pytest.mark.parametrize("part", range(5))
def test_the_inverse_is_the_pseudo_inverse(part: int):
    for matrix in CASES[part::5]:
        expected = np.linalg.pinv(matrix.dense().astype(float))
        np.testing.assert_allclose(matrix.solve(np.eye(len(expected.T))), expected, atol=1e-12)
        np.testing.assert_allclose(matrix.solve_t(np.eye(len(expected))).T, expected, atol=1e-12)


@pytest.mark.parametrize("part", range(5))
def test_moments_of_all_intervals_are_those_of_the_rows_written_out(part: int):
    for matrix in CASES[part::5]:
        n = matrix.shape[1]
        lows, highs = (ends.reshape(-1) for ends in np.indices((n, n)))  # those that end before they begin are empty
        rows = (lows[:, None] <= np.arange(n)) & (np.arange(n) <= highs[:, None])
        sizes = abs(rows @ np.linalg.pinv(matrix.dense().astype(float)))
        expected = np.stack([*((sizes**p).sum(axis=1) for p in (2, 4, 6)), sizes.max(axis=1)], axis=1)
        np.testing.assert_allclose(matrix.interval_moments(lows, highs), expected, rtol=1e-9, atol=1e-13)


def test_moments_do_not_depend_on_how_many_intervals_are_computed_at_a_time(monkeypatch):
    tree = Tree.balanced(50, 3)
    lows, highs = np.triu_indices(50)
    whole = tree.interval_moments(lows, highs)
    monkeypatch.setattr("hdmm.matrix.tree_moments._INTERVALS", 7)
    np.testing.assert_array_equal(tree.interval_moments(lows, highs), whole)


def test_a_balanced_tree_of_a_power_is_the_standard_tree():
    assert [level.tolist() for level in balanced_sizes(8, 2)] == [[8], [4, 4], [2] * 4, [1] * 8]
    assert [level.tolist() for level in balanced_sizes(9, 3)] == [[9], [3] * 3, [1] * 9]
    assert Tree.balanced(8, 2).shape == (15, 8)
    assert Tree.balanced(16, 4, root=False).shape == (20, 16)


@pytest.mark.parametrize("n", range(1, 40))
def test_parts_of_a_balanced_tree_differ_by_one_cell_at_most(n: int):
    for level in balanced_sizes(n, 3):
        assert level.sum() == n
        assert level.max() - level.min() <= 1
    assert balanced_sizes(n, 3)[-1].tolist() == [1] * n


def test_every_cell_and_part_is_measured_once():
    rows = Tree.balanced(5, 2).dense()
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert len(rows) == 2 * 5 - 1


def test_a_workload_that_divides_a_part_of_the_last_level_is_not_determined():
    coarse = Tree([np.array([5]), np.array([2, 3])], [np.array([1]), np.array([1, 1])])
    assert not coarse.determines(Prefix(5).axis_gram())
    assert coarse.determines(Tree([np.array([5]), np.array([2, 3])], [np.array([0]), np.array([3, 1])]).axis_gram())
    assert not coarse.determines(Select(Prefix(2), np.array([1, 4]), 5).axis_gram())
    assert Tree.balanced(5, 2).determines(Prefix(5).axis_gram())


@pytest.mark.parametrize("bits", [6, 10, 14])
def test_rounding_keeps_the_sums_of_columns(bits: int):
    random = np.random.default_rng(1)
    sizes = balanced_sizes(11, 2)
    weights, left = [], np.ones(1)
    for level, parents in zip(sizes[:-1], Tree.balanced(11, 2).parents[1:], strict=True):
        share = random.uniform(0.1, 0.4, len(level))
        weights.append(left * share)
        left = (left * (1 - share))[parents]
    tree = Tree(sizes, [*weights, left])
    rounded = tree.rounded(bits, 1)
    assert rounded.column_norms(1).tolist() == [2**bits] * 11
    assert abs(rounded.dense() - 2**bits * tree.dense()).max() <= 1
    assert abs(tree.rounded(bits, 2).dense() - 2**bits * tree.dense()).max() <= 0.5


def test_a_weight_that_would_be_rounded_to_zero_is_refused():
    with pytest.raises(ValueError, match="every part of the last level"):
        Tree([np.array([1])], [np.array([0.001])]).rounded(3, 2)


@pytest.mark.parametrize("p", [1, 2])
def test_the_largest_difference_of_two_columns_is_exact(p):
    for tree in CASES:
        columns = tree.dense().T
        differences = abs(columns[:, None] - columns[None]) ** p
        assert tree.difference_norm(p) == differences.sum(axis=2).max()


def test_a_tree_is_put_together_again_from_all_its_parts():
    for tree in trees():
        assert isinstance(tree, Tree)
        again = Tree.of_parts(np.concatenate(tree.sizes), np.concatenate(tree.weights))
        np.testing.assert_array_equal(again.dense(), tree.dense())


@pytest.mark.parametrize("n", [1, 2, 5, 16])
@pytest.mark.parametrize("form", [(2, True), (3, False)])
def test_a_balanced_tree_is_recognised(n: int, form: tuple[int, bool]):
    tree = Tree.balanced(n, form[0], root=form[1])
    assert tree.balanced_form is not None
    branching, root = tree.balanced_form
    np.testing.assert_array_equal(Tree.balanced(n, branching, root=root).dense(), tree.dense())
    heavier = Tree(tree.sizes, [*tree.weights[:-1], 2 * tree.weights[-1]])
    assert heavier.balanced_form is None


PARTS = np.array([4]), np.array([1, 3])
WEIGHTS = np.array([1]), np.array([1, 1])
FAULTS = {
    "no level": ((), (), "1 to 64 levels"),
    "too many levels": ([np.array([1])] * 65, [np.array([1])] * 65, "1 to 64 levels"),
    "several parts at first": ((PARTS[1],), (WEIGHTS[1],), "begins with one part"),
    "a weight too few": (PARTS, (WEIGHTS[0], np.array([1])), "a weight for every part"),
    "an empty part": ((PARTS[0], np.array([0, 4])), WEIGHTS, "at least one cell"),
    "cells left out": ((PARTS[0], np.array([1, 2])), WEIGHTS, "all cells together"),
    "no finer level": ((*PARTS, np.array([2, 2])), (*WEIGHTS, WEIGHTS[1]), "divides the parts"),
    "a negative weight": (PARTS, (WEIGHTS[0], np.array([1, -1])), "not negative"),
    "no number": (PARTS, (WEIGHTS[0], np.array([1, np.nan])), "finite"),
    "a large weight": (PARTS, (WEIGHTS[0], np.array([1, MAX_ENTRY + 1])), "at most"),
    "cells that are not measured": (PARTS, (WEIGHTS[0], np.array([1, 0])), "is measured"),
}


@pytest.mark.parametrize(("sizes", "weights", "reason"), FAULTS.values(), ids=FAULTS.keys())
def test_what_is_no_hierarchy_is_refused(sizes, weights, reason):
    with pytest.raises(ValueError, match=reason):
        Tree(sizes, weights)


@pytest.mark.parametrize("sizes", [[], [0], [4, 1, 2], [4, 5, -1], [2**62, 2**62, 2**62], [-4, 4]])
def test_parts_that_are_no_levels_are_refused(sizes):
    with pytest.raises(ValueError, match="at least one cell, and all cells together"):
        Tree.of_parts(np.array(sizes, np.int64), np.ones(len(sizes), np.int64))


def test_a_hierarchy_that_does_not_fit_is_refused():
    with memory_allowed("1GB"), pytest.raises(TooLargeError, match="declare bins or a coarser domain"):
        Tree.balanced(10**12, 2)


def test_the_moments_of_a_hierarchy_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree.balanced(9, 3)
    first = tree.interval_moments(np.array([2]), np.array([7]))
    monkeypatch.setattr("hdmm.matrix.tree.TreeMoments", None)
    assert tree.interval_moments(np.array([2]), np.array([7])).tolist() == first.tolist()
