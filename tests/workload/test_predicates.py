"""Each predicate set counts the cells that it says it counts, and is labelled by what it counts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.errors import WorkloadError
from hdmm.schema import Bins, Boolean, Domain, Integers, Listed
from hdmm.workload import AllRange, Custom, Identity, Permuted, Predicates, Prefix, Ranges, Total, Values, Where, Width

EXTRAS: list[dict[str, bool]] = [
    {},
    {"other": True},
    {"missing": True},
    {"other": True, "missing": True},
]


def domains(**extra: Any) -> dict[str, tuple[Domain, int, list[str]]]:
    """Each kind of domain, with the number of its declared cells and its range ends in order."""
    return {
        "listed": (Listed(["a", "b", "c", "d"], **extra), 4, ["a", "b", "c", "d"]),
        "integers": (Integers(-2, 3, **extra), 6, ["-2", "-1", "0", "1", "2", "3"]),
        "boolean": (Boolean(**extra), 2, ["false", "true"]),
        "bins": (Bins([0, 0.5, 2, 7], **extra), 3, ["0", "0.5", "2", "7"]),
        "one value": (Listed(["only"], **extra), 1, ["only"]),
    }


Cell = int | str
Test = Callable[[Cell], bool]


def between(low: int, high: int) -> Test:
    """The cells other and missing are in no range."""
    return lambda cell: isinstance(cell, int) and low <= cell <= high


def is_cell(wanted: Cell) -> Test:
    return lambda cell: cell == wanted


def entries(predicates: Predicates, domain: Domain) -> list[list[int]]:
    return predicates.matrix("x", domain).dense().tolist()


def cells_of(declared: int, extra: dict[str, bool]) -> list[Cell]:
    return [*range(declared), *(name for name in ("other", "missing") if extra.get(name))]


def table(tests: list[Test], cells: list[Cell]) -> list[list[int]]:
    """The matrix of predicates by asking each of them about each cell."""
    return [[int(test(cell)) for cell in cells] for test in tests]


Expected = Callable[[int, list[Cell]], list[Test]]

SETS: dict[str, tuple[Predicates, Expected]] = {
    "identity": (Identity(), lambda n, cells: [is_cell(cell) for cell in cells]),
    "total": (Total(), lambda n, cells: [lambda cell: True]),
    "prefix": (Prefix(), lambda n, cells: [between(0, last) for last in range(n)]),
    "all ranges": (AllRange(), lambda n, cells: [between(low, high) for low in range(n) for high in range(low, n)]),
    "width 1": (Width(1), lambda n, cells: [between(code, code) for code in range(n)]),
}
CASES = [(kind, extra, name) for kind in domains() for extra in EXTRAS for name in SETS]


@pytest.mark.parametrize(("kind", "extra", "name"), CASES)
def test_a_predicate_set_counts_its_cells(kind: str, extra: dict[str, bool], name: str) -> None:
    domain, declared, _ = domains(**extra)[kind]
    predicates, expected = SETS[name]
    cells = cells_of(declared, extra)
    assert entries(predicates, domain) == table(expected(declared, cells), cells)


@pytest.mark.parametrize(("kind", "extra", "name"), CASES)
def test_a_negation_counts_every_other_cell(kind: str, extra: dict[str, bool], name: str) -> None:
    domain, declared, _ = domains(**extra)[kind]
    predicates, expected = SETS[name]
    cells = cells_of(declared, extra)
    rows = table(expected(declared, cells), cells)
    assert entries(~predicates, domain) == [[1 - entry for entry in row] for row in rows]


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("width", range(1, 7))
def test_ranges_of_one_width_count_that_many_neighbours(width: int, extra: dict[str, bool]) -> None:
    domain, declared, _ = domains(**extra)["integers"]
    expected = [between(low, low + width - 1) for low in range(declared - width + 1)]
    assert entries(Width(width), domain) == table(expected, cells_of(declared, extra))


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("kind", ["listed", "integers", "boolean"])
def test_a_range_counts_both_of_its_ends(kind: str, extra: dict[str, bool]) -> None:
    domain, declared, ends = domains(**extra)[kind]
    pairs = [(low, high) for low in range(declared) for high in range(low, declared)]
    found = entries(Ranges([(ends[low], ends[high]) for low, high in pairs]), domain)
    assert found == table([between(low, high) for low, high in pairs], cells_of(declared, extra))


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_range_of_bins_counts_from_edge_to_edge(extra: dict[str, bool]) -> None:
    domain, declared, edges = domains(**extra)["bins"]
    pairs = [(low, high) for low in range(declared) for high in range(low + 1, declared + 1)]
    found = entries(Ranges([(edges[low], edges[high]) for low, high in pairs]), domain)
    assert found == table([between(low, high - 1) for low, high in pairs], cells_of(declared, extra))


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("kind", ["listed", "integers", "boolean"])
def test_values_are_counted_one_by_one_in_the_given_order(kind: str, extra: dict[str, bool]) -> None:
    domain, declared, values = domains(**extra)[kind]
    expected = [is_cell(code) for code in reversed(range(declared))]
    assert entries(Values(reversed(values)), domain) == table(expected, cells_of(declared, extra))


def test_values_may_be_python_values() -> None:
    assert entries(Values([2, -1]), Integers(-2, 3)) == [[0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0]]


def test_a_condition_is_one_predicate() -> None:
    assert entries(Where("x >= 0"), Integers(-2, 3)) == [[0, 0, 1, 1, 1, 1]]


def test_a_union_is_one_set_after_the_other() -> None:
    assert entries(Total() | Prefix() | Values(["b"]), Listed(["a", "b"])) == [[1, 1], [1, 0], [1, 1], [0, 1]]


def test_a_union_does_not_depend_on_how_it_was_bracketed() -> None:
    one, two, three = Identity(), Total(), Prefix()
    assert (one | two) | three == one | (two | three)


def test_a_negation_reaches_every_part_of_a_union() -> None:
    assert entries(~(Identity() | Total()), Listed(["a", "b"])) == [[0, 1], [1, 0], [0, 0]]


def test_a_double_negation_changes_nothing() -> None:
    assert entries(~~Prefix(), Listed(["a", "b"], other=True)) == [[1, 0, 0], [1, 1, 0]]


@given(data=st.data(), extra=st.sampled_from(EXTRAS))
def test_a_permuted_set_is_the_set_with_its_columns_permuted(data: st.DataObject, extra: dict[str, Any]) -> None:
    values = ["a", "b", "c", "d"]
    domain = Listed(values, **extra)
    inner = data.draw(st.sampled_from([Prefix(), AllRange(), Width(2), Identity(), ~Prefix(), Prefix() | Total()]))
    order = data.draw(st.permutations(values))
    place = [values.index(value) for value in order] + list(range(4, domain.size))
    permuted = np.array(entries(Permuted(inner, order), domain))
    assert permuted[:, place].tolist() == entries(inner, domain)


def test_a_permuted_prefix_grows_in_the_given_order() -> None:
    assert entries(Permuted(Prefix(), ["M", "F", "X"]), Listed(["F", "M", "X"])) == [[0, 1, 0], [1, 1, 0], [1, 1, 1]]


TABLES: dict[str, tuple[Any, list[list[int | float]]]] = {
    "integers": ([[1, -2, 0], [0, 3, 1]], [[1, -2, 0], [0, 3, 1]]),
    "booleans": ([[True, False, True]], [[1, 0, 1]]),
    "one row": ([1, 2, 3], [[1, 2, 3]]),
    "an array": (np.eye(3), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    "whole floats": ([[1.0, 2.0, -0.0]], [[1, 2, 0]]),
    "small integers": (np.array([[250, 1, 0]], np.uint8), [[250, 1, 0]]),
    "fractions": ([[0.5, 0.25, 1]], [[0.5, 0.25, 1.0]]),
}


@pytest.mark.parametrize(("given_rows", "rows"), TABLES.values(), ids=TABLES)
def test_a_custom_table_is_taken_as_it_is(given_rows, rows) -> None:
    assert entries(Custom(given_rows), Listed(["a", "b", "c"])) == rows


@pytest.mark.parametrize("name", ["integers", "booleans", "whole floats", "small integers"])
def test_a_custom_table_of_whole_numbers_is_measured_in_integers(name: str) -> None:
    assert Custom(TABLES[name][0]).matrix("x", Listed(["a", "b", "c"])).dtype == np.int64


LABELS: dict[str, tuple[Predicates, Domain, list[Any]]] = {
    "identity": (Identity(), Integers(16, 18), [16, 17, 18]),
    "identity with other": (Identity(), Listed(["a"], other=True), ["a", "other"]),
    "total": (Total(), Integers(16, 18), [None]),
    "prefix": (Prefix(), Integers(16, 18), ["<= 16", "<= 17", "<= 18"]),
    "prefix of a list": (Prefix(), Listed(["lo", "hi"], other=True), ["<= lo", "<= hi"]),
    "prefix of bins": (Prefix(), Bins([0, 10, 50]), ["< 10", "< 50"]),
    "prefix of closed bins": (Prefix(), Bins([0, 10, 50], closed=True), ["< 10", "<= 50"]),
    "all ranges": (AllRange(), Integers(1, 3), ["1", "1..2", "1..3", "2", "2..3", "3"]),
    "all ranges of bins": (AllRange(), Bins([0, 1, 2], closed=True), ["[0, 1)", "[0, 2]", "[1, 2]"]),
    "width": (Width(2), Integers(1, 4), ["1..2", "2..3", "3..4"]),
    "ranges": (Ranges([(0, 17), (18, 64), (65, 65)]), Integers(0, 114), ["0..17", "18..64", "65"]),
    "ranges below zero": (Ranges([(-5, -1)]), Integers(-9, 9), ["-5..-1"]),
    "ranges of bins": (Ranges([(0, 50), (10, 90)]), Bins([0, 10, 50, 90]), ["[0, 50)", "[10, 90)"]),
    "values": (Values(["05", 7]), Integers(0, 9), [5, 7]),
    "values of a list": (Values(["b"]), Listed(["a", "b"]), ["b"]),
    "where": (Where("x >= 18"), Integers(0, 114), ["x >= 18"]),
    "custom": (Custom([[1, 0], [0, 1]]), Boolean(), ["query 1", "query 2"]),
    "union": (Values([5]) | Total(), Integers(0, 9), [5, None]),
    "negation": (~Prefix(), Integers(16, 17), ["not <= 16", "not <= 17"]),
    "negation of the total": (~Total(), Boolean(), ["not any"]),
}


@pytest.mark.parametrize(("predicates", "domain", "labels"), LABELS.values(), ids=LABELS)
def test_a_predicate_is_labelled_by_what_it_counts(predicates: Predicates, domain: Domain, labels: list[Any]) -> None:
    assert predicates.labels("x", domain) == labels


@pytest.mark.parametrize(("predicates", "domain"), [case[:2] for case in LABELS.values()], ids=LABELS)
def test_there_is_one_label_for_each_row(predicates: Predicates, domain: Domain) -> None:
    assert len(predicates.labels("x", domain)) == predicates.matrix("x", domain).shape[0]


def test_the_label_of_a_permuted_value_names_the_value_that_is_counted() -> None:
    order = ["M", "X", "F"]
    labels = Permuted(Identity(), order).labels("sex", Listed(["F", "M", "X"]))
    assert [label.split()[0] for label in labels] == order


def test_the_label_of_a_permuted_prefix_names_its_last_value() -> None:
    labels = Permuted(Prefix(), ["M", "X", "F"]).labels("sex", Listed(["F", "M", "X"]))
    assert [label.split()[:2] for label in labels] == [["<=", "M"], ["<=", "X"], ["<=", "F"]]


NUMBERS = Integers(0, 9)
BAD: dict[str, tuple[Callable[[], Predicates], Domain, str]] = {
    "width 0": (lambda: Width(0), NUMBERS, "width=0: expected an integer from 1 to 10, the size of 'x'"),
    "too wide": (lambda: Width(11), NUMBERS, "width=11: expected an integer from 1 to 10"),
    "wide only with other": (lambda: Width(2), Listed(["a"], other=True), "width=2: expected an integer from 1 to 1"),
    "width a fraction": (lambda: Width(1.5), NUMBERS, "width=1.5: expected an integer"),  # type: ignore[arg-type]
    "width a boolean": (lambda: Width(True), NUMBERS, "width=True: expected an integer"),
    "no ranges": (lambda: Ranges([]), NUMBERS, r"ranges=\[\]: expected pairs, for example Ranges\("),
    "a range of three": (lambda: Ranges([(1, 2, 3)]), NUMBERS, "expected pairs"),
    "a number as range": (lambda: Ranges([5]), NUMBERS, "expected pairs"),  # type: ignore[list-item]
    "a text as range": (lambda: Ranges(["ab"]), NUMBERS, "expected pairs"),
    "a range backwards": (lambda: Ranges([(5, 4)]), NUMBERS, r"range \(5, 4\) is empty"),
    "a range beyond": (lambda: Ranges([(5, 10)]), NUMBERS, "value '10' is not in the domain"),
    "a range within a bin": (lambda: Ranges([(0, 5)]), Bins([0, 10]), "range end 5 cuts through a bin"),
    "no values": (lambda: Values([]), NUMBERS, r"values=\[\]: expected a list of values"),
    "a text as values": (lambda: Values("CA"), Listed(["C", "A"]), "values='CA': expected a list of values"),
    "an unknown value": (lambda: Values(["Texsa"]), Listed(["Texas"]), "'Texsa' is not in the domain; did you mean"),
    "the cell other": (lambda: Values(["other"]), Listed(["a"], other=True), "'other' is not in the domain"),
    "where a number": (lambda: Where(5), NUMBERS, "where=5: expected an SQL condition as text"),  # type: ignore[arg-type]
    "custom, empty": (lambda: Custom([]), NUMBERS, "custom: expected a table of finite numbers"),
    "custom, ragged": (lambda: Custom([[1, 2], [1]]), NUMBERS, "custom: expected a table of finite numbers"),
    "custom, NaN": (lambda: Custom([[1, float("nan")]]), Boolean(), "custom: expected a table of finite numbers"),
    "custom, infinite": (lambda: Custom([[1, float("inf")]]), Boolean(), "custom: expected a table of finite"),
    "custom, text": (lambda: Custom([["1", "2"]]), Boolean(), "custom: expected a table of finite numbers"),
    "custom, complex": (lambda: Custom([[1j, 2]]), Boolean(), "custom: expected a table of finite numbers"),
    "custom, three dimensions": (lambda: Custom([[[1, 2]]]), Boolean(), "custom: expected a table of finite numbers"),
    "custom, beyond 64 bits": (lambda: Custom([[2**64, 1]]), Boolean(), "custom: expected a table of finite numbers"),
    "custom, too narrow": (lambda: Custom([[1]]), Boolean(), "the table has 1 columns, but 'x' has 2 cells"),
    "custom without other": (lambda: Custom([[1, 1]]), Boolean(other=True), "has 2 columns, but 'x' has 3 cells"),
    "not of weights": (lambda: ~Custom([[2, 0]]), Boolean(), "~: only predicates .rows of zeros and ones. have"),
    "not of negatives": (lambda: ~Custom([[-1, 1]]), Boolean(), "~: only predicates"),
    "not of fractions": (lambda: ~Custom([[0.5, 0.5]]), Boolean(), "~: only predicates"),
    "order too short": (lambda: Permuted(Prefix(), ["a"]), Listed(["a", "b"]), "order: expected each of the 2 values"),
    "order repeats": (lambda: Permuted(Prefix(), ["a", "a"]), Listed(["a", "b"]), "order: expected each of the 2"),
    "order unknown": (lambda: Permuted(Prefix(), ["a", "c"]), Listed(["a", "b"]), "value 'c' is not in the domain"),
}


@pytest.mark.parametrize(("build", "domain", "message"), BAD.values(), ids=BAD)
def test_a_predicate_set_that_does_not_fit_is_refused(build, domain: Domain, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        build().matrix("x", domain)


@pytest.mark.parametrize("largest", [2**63, 2**64 - 1])
def test_custom_numbers_that_do_not_fit_the_exact_arithmetic_are_refused(largest: int) -> None:
    with pytest.raises(WorkloadError, match="custom"):
        Custom([[largest]]).matrix("x", Listed(["a"]))


@pytest.mark.parametrize("other", [5, "identity", None, [Identity()]])
def test_only_predicate_sets_can_be_combined(other) -> None:
    with pytest.raises(WorkloadError, match="is not a predicate set; combine for example"):
        Identity() | other
