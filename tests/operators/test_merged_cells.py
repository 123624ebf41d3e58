"""Questions that see few groups of many cells are optimised over the groups."""

import numpy as np
import pytest

import hdmm
from hdmm.matrix import AllRange, AxisGram, Identity, Prefix, Tree, many_cells
from hdmm.operators.merged_cells import merged_cells

N = 20_000
SCHEMA = hdmm.Schema(x=range(N), day=hdmm.Dates("1990-01-01", "2025-12-31"))
RANGES = hdmm.Ranges([(1_000 * i, 1_500 * i + 700) for i in range(8)])
SCATTERED = hdmm.Where("x < 500 OR x BETWEEN 900 AND 8000")


def gram(**predicates: hdmm.workload.Predicates) -> AxisGram:
    (encoded,) = hdmm.Workload(SCHEMA).add("asked", predicates).encoded.products
    return encoded.grams[encoded.axes[0]]


@pytest.mark.parametrize("asked", [RANGES, RANGES | SCATTERED, SCATTERED | hdmm.Total()], ids=["few", "both", "mask"])
def test_groups_have_the_same_gram_as_their_cells(asked: hdmm.workload.Predicates) -> None:
    whole = gram(x=asked)
    merged = merged_cells(whole)
    assert merged is not None
    assert merged.widths.sum() == N
    first = np.cumsum(merged.widths) - merged.widths
    units = np.zeros((N, len(first)))
    units[first, np.arange(len(first))] = 1
    assert np.allclose(merged.gram.dense(), whole.apply(units)[first], rtol=1e-12)


@pytest.mark.parametrize("asked", [Prefix(N), AllRange(N), Identity(N)])
def test_cells_that_are_told_apart_are_not_merged(asked: Prefix | AllRange | Identity) -> None:
    assert many_cells(N)
    assert merged_cells(asked.axis_gram()) is None


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_months_of_many_days_are_counted_by_themselves(noise: str) -> None:
    workload = hdmm.Workload(SCHEMA).add("months", day=hdmm.Level("month"))
    plan = hdmm.select(workload, noise, operators=[hdmm.operators.Kron()])  # type: ignore[arg-type]
    (block,) = plan.mechanism.blocks
    assert block.factors[0].shape == (432, SCHEMA["day"].size)


def test_a_few_ranges_are_planned_within_a_percent_of_the_bound() -> None:
    plan = hdmm.select(hdmm.Workload(SCHEMA).add("ranges", x=RANGES), "gaussian", operators=[hdmm.operators.Kron()])
    assert plan.certificate is not None
    assert plan.certificate < 0.01


def test_a_hierarchy_determines_intervals_that_end_where_its_parts_end() -> None:
    tree = Tree([np.array([6]), np.array([2, 3, 1])], [np.zeros(1, int), np.ones(3, int)])
    schema = hdmm.Schema(x=range(6))

    def determined(*ranges: tuple[int, int]) -> bool:
        (product,) = hdmm.Workload(schema).add("asked", x=hdmm.Ranges(ranges)).encoded.products
        return tree.determines(product.grams[0])

    assert determined((0, 1), (2, 5))
    assert not determined((0, 1), (3, 5))
    assert not determined((0, 3))
