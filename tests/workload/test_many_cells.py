"""Attributes of many cells: predicates are encoded by their ends, and say the same as over few cells."""

import numpy as np
import pytest

from hdmm.errors import WorkloadError
from hdmm.matrix import Dense, Matrix, Spans, many_cells
from hdmm.schema import Bins, Dates, Domain, Integers
from hdmm.workload import By, Level, Predicates, Ranges, Values, Where

DAYS = Dates("1990-01-01", "2025-12-31", missing=True)
CENTS = Integers(-5_000, 15_000, other=True)
MANY: dict[str, tuple[Predicates, Domain]] = {
    "months": (Level("month"), DAYS),
    "years after 2000": (Level("year", where="x >= '2000-01-01'"), DAYS),
    "ranges": (Ranges([(3, 7), (-5_000, 15_000), (0, 0)]), CENTS),
    "values": (Values([17, -4, 99]), CENTS),
    "condition": (Where("x BETWEEN -7 AND 1000"), CENTS),
    "thousands": (By("x / 1000", where="x >= 0"), CENTS),
}


@pytest.mark.parametrize("case", MANY)
def test_neighbouring_cells_are_not_written_out(case: str) -> None:
    predicates, domain = MANY[case]
    assert isinstance(predicates.matrix("x", domain), Spans)


@pytest.mark.parametrize("case", MANY)
def test_they_count_what_they_count_written_out(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    predicates, domain = MANY[case]
    counts = np.random.default_rng(3).integers(0, 9, domain.size)
    found = predicates.matrix("x", domain).apply(counts)
    for module in ("spans.many_cells", "many_cells"):
        monkeypatch.setattr(f"hdmm.matrix.{module}", lambda n: False)
    written: Matrix = predicates.matrix("x", domain)
    assert isinstance(written, Dense)
    assert found.tolist() == written.apply(counts).tolist()


def test_cells_that_are_not_neighbours_are_written_out() -> None:
    matrix = Where("x < 0 OR x > 10").matrix("x", CENTS)
    assert isinstance(matrix, Dense)
    assert int(matrix.array.sum()) == 5_000 + 14_990


def test_weekdays_are_groups_of_cells_far_apart() -> None:
    matrix = Level("weekday").matrix("x", DAYS)
    assert matrix.apply(np.ones(DAYS.size, np.int64)).sum() == DAYS.size


def test_many_cells_are_those_whose_square_is_not_written_out() -> None:
    assert [many_cells(n) for n in (11_585, 11_586)] == [False, True]


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("literal", ["-3", "-2", "0", "0.5", "3", "3.5", "4", "-1e3", "99999999999999999999"])
def test_integers_compare_as_python_compares(operator: str, literal: str) -> None:
    python = {"=": "==", "<>": "!="}.get(operator, operator)
    expected = [eval(f"{value} {python} {literal}") for value in range(-2, 4)]
    assert Integers(-2, 3).compare(operator, literal).tolist() == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("domain", [CENTS, DAYS, Integers(0, 3, labels={0: "none"})], ids=["cents", "days", "labelled"])
def test_labels_of_some_cells_are_those_among_all(domain: Domain) -> None:
    cells = np.array([domain.size - 1, 0, 2])
    labels = domain.labels()
    assert domain.labels_of(cells) == [labels[cell] for cell in cells]


def test_a_message_lists_only_some_of_many_edges() -> None:
    bins = Bins(range(100_000))
    with pytest.raises(WorkloadError) as caught:
        bins.compare(">", "0.5")
    assert "0, 1, 2" in str(caught.value)
    assert "…, 99999" in str(caught.value)
    assert len(str(caught.value)) < 300
