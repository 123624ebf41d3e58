"""Budgets are exact decimals and nothing else; privacy units say what this version protects."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hdmm.errors import BudgetError
from hdmm.privacy.budget import Budget, decimal_text
from hdmm.privacy.unit import Unit

EXACT: dict[str, tuple[object, Fraction]] = {
    "a text": ("0.1", Fraction(1, 10)),
    "an integer": (2, Fraction(2)),
    "a decimal": (Decimal("0.30"), Fraction(3, 10)),
    "a fraction": (Fraction(1, 3), Fraction(1, 3)),
    "very small": ("1e-17", Fraction(1, 10**17)),
    "more digits than a float has": ("0.12345678901234567890123", Fraction(12345678901234567890123, 10**23)),
    "with a sign": ("+1.5", Fraction(3, 2)),
    "with blanks": (" 0.5 ", Fraction(1, 2)),
    "without a digit before the point": (".5", Fraction(1, 2)),
    "without a digit behind the point": ("2.", Fraction(2)),
    "with an exponent": ("25E-1", Fraction(5, 2)),
}


@pytest.mark.parametrize(("given_value", "exact"), EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_a_decimal_is_taken_exactly(name: str, given_value, exact: Fraction) -> None:
    assert getattr(Budget(**{name: given_value}), name) == exact


def test_a_delta_is_taken_exactly() -> None:
    assert Budget(epsilon=1, delta="1e-17").delta == Fraction(1, 10**17)


def test_ten_times_a_tenth_is_one() -> None:
    spent = [Budget(epsilon="0.1").epsilon or 0] * 10
    assert sum(spent) == Budget(epsilon="1").epsilon


def test_an_eleventh_tenth_is_more_than_one() -> None:
    spent = [Budget(epsilon="0.1").epsilon or 0] * 11
    assert sum(spent) > 1


NOT_POSITIVE = [
    0,
    -1,
    "0",
    "-1",
    "0.0",
    "-0",
    "-1e-17",
    "0e5",
    Fraction(0),
    Fraction(-1, 3),
    Decimal(0),
    Decimal("-0.5"),
]
NOT_DECIMAL = [
    *["NaN", "nan", "inf", "-inf", "Infinity", "abc", "", " ", "1,5", "1/2", "0x1", "1e", "e1", "1_000", "1 0", "--1"],
    *[
        "٣",
        "１",
        "1e1000000",
        "1" * 100,
        "1.2.3",
        "ε",
        "1\n2",
        Decimal("NaN"),
        Decimal("Infinity"),
        True,
        False,
        [1],
        b"1",
    ],
]
FLOATS = [1.0, 0.1, 0.0, -1.0, float("nan"), float("inf"), np.float64(0.5)]


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("value", NOT_POSITIVE, ids=repr)
def test_a_budget_that_is_not_positive_is_refused(name: str, value) -> None:
    with pytest.raises(BudgetError, match=rf'{name}=.*: expected a positive decimal; write for example {name}="0.5"'):
        Budget(**{name: value})


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("value", NOT_DECIMAL, ids=repr)
def test_a_budget_that_is_no_decimal_is_refused(name: str, value) -> None:
    with pytest.raises(
        BudgetError, match=rf'(?s){name}=.*: expected a positive decimal; write for example {name}="0.5"'
    ):
        Budget(**{name: value})


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("value", FLOATS, ids=repr)
def test_a_float_is_refused_because_it_is_not_what_was_written(name: str, value: float) -> None:
    with pytest.raises(BudgetError, match=f"{name}=.*: a float is not an exact decimal; write {name}="):
        Budget(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [*NOT_POSITIVE, *NOT_DECIMAL], ids=repr)
def test_a_delta_that_is_not_positive_is_refused(value) -> None:
    with pytest.raises(BudgetError, match=r"(?s)delta=.*: expected a positive decimal"):
        Budget(epsilon=1, delta=value)


@pytest.mark.parametrize("value", FLOATS, ids=repr)
def test_a_float_delta_is_refused(value: float) -> None:
    with pytest.raises(BudgetError, match=r"delta=.*: a float is not an exact decimal"):
        Budget(epsilon=1, delta=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["1", 1, "1.0", "2", "1.0000000000000000000000000000001", Fraction(3, 2)])
def test_a_delta_of_one_or_more_is_refused(value) -> None:
    with pytest.raises(
        BudgetError, match=r'delta=.*: expected a decimal between 0 and 1; write for example delta="1e-6"'
    ):
        Budget(epsilon=1, delta=value)


EXTREME: dict[str, tuple[dict[str, str], str]] = {
    "an epsilon above 500": ({"epsilon": "500.01"}, "epsilon='500.01': above 500 nothing is protected"),
    "an epsilon beyond floats": ({"epsilon": "1e400"}, "epsilon='1e400': above 500 nothing is protected"),
    "an epsilon below floats": ({"epsilon": "1e-400"}, "epsilon='1e-400': nothing can be measured so privately"),
    "a delta below floats": (
        {"epsilon": "1", "delta": "1e-400"},
        "delta='1e-400': nothing can be measured so privately",
    ),
    "a rho above 100000": ({"rho": "100001"}, "rho='100001': above 100000 nothing is protected"),
    "a rho below floats": ({"rho": "1e-400"}, "rho='1e-400': nothing can be measured so privately"),
}


@pytest.mark.parametrize(("parts", "message"), EXTREME.values(), ids=EXTREME)
def test_a_budget_that_is_no_privacy_or_no_use_is_refused(parts: dict[str, str], message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        Budget(**parts)


def test_the_largest_epsilon_is_taken() -> None:
    assert Budget("500").epsilon == 500


def test_a_delta_just_below_one_is_taken() -> None:
    assert Budget(epsilon=1, delta="0.9999999999999999999999999").delta == 1 - Fraction(1, 10**25)


INCOMPLETE: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, 'a budget is epsilon="1", or epsilon="1" with delta="1e-6", or rho="0.5"'),
    "delta alone": ({"delta": "1e-6"}, "a budget is epsilon="),
    "epsilon and rho": ({"epsilon": "1", "rho": "1"}, "a budget is epsilon="),
    "all three": ({"epsilon": "1", "delta": "1e-6", "rho": "1"}, "a budget is epsilon="),
    "rho with delta": ({"rho": "1", "delta": "1e-6"}, "delta='1e-6': rho needs no delta; leave one of them out"),
}


@pytest.mark.parametrize(("parts", "message"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_budget_of_the_wrong_parts_is_refused(parts: dict[str, str], message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        Budget(**parts)


MISFITS: dict[str, tuple[Budget, str, str]] = {
    "delta with Laplace": (Budget("1", "1e-6"), "laplace", "delta: Laplace noise takes epsilon alone; leave delta out"),
    "rho with Laplace": (Budget(rho="1"), "laplace", "rho: Laplace noise takes epsilon; rho is for Gaussian noise"),
    "epsilon alone with Gaussian": (Budget("1"), "gaussian", "delta: Gaussian noise needs it beside epsilon; write"),
}


@pytest.mark.parametrize(("budget", "noise", "message"), MISFITS.values(), ids=MISFITS)
def test_a_budget_that_does_not_fit_the_noise_is_refused(budget: Budget, noise: str, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        budget.check(noise)


@pytest.mark.parametrize(
    ("budget", "noise"), [(Budget("1"), "laplace"), (Budget("1", "1e-6"), "gaussian"), (Budget(rho="1"), "gaussian")]
)
def test_a_budget_that_fits_the_noise_is_taken(budget: Budget, noise: str) -> None:
    budget.check(noise)


def test_budgets_are_equal_by_value() -> None:
    assert (Budget("0.10"), hash(Budget("0.10"))) == (Budget(Fraction(1, 10)), hash(Budget(Fraction(1, 10))))


def test_a_budget_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Budget("1").epsilon = Fraction(2)  # type: ignore[misc]


SHOWN: dict[str, tuple[Budget, str]] = {
    "epsilon": (Budget("1.50"), "ε = 1.5"),
    "epsilon and delta": (Budget("1", "1e-6"), "ε = 1, δ = 0.000001"),
    "a very small delta": (Budget("10", "1e-17"), "ε = 10, δ = 1e-17"),
    "rho": (Budget(rho="0.05"), "ρ = 0.05"),
}


@pytest.mark.parametrize(("budget", "text"), SHOWN.values(), ids=SHOWN)
def test_a_budget_is_shown_as_it_is_written(budget: Budget, text: str) -> None:
    assert str(budget) == text


@given(digits=st.integers(1, 10**45), power=st.integers(-100, 40))
@example(digits=10**28 + 1, power=0)
@example(digits=10**28 + 1, power=-40)
def test_the_text_of_a_decimal_reads_back_exactly(digits: int, power: int) -> None:
    exact = digits * Fraction(10) ** power
    assert Fraction(decimal_text(exact)) == exact


@given(digits=st.integers(1, 10**40), power=st.integers(-60, -38))
@example(digits=10**39 + 1, power=-39)
def test_the_text_of_a_budget_is_that_budget(digits: int, power: int) -> None:
    budget = Budget(epsilon=digits * Fraction(10) ** power)
    assert Budget(epsilon=str(budget).removeprefix("ε = ")) == budget


def test_the_unit_is_one_row_added_or_removed() -> None:
    assert (Unit().rows, Unit().neighbours, str(Unit())) == (1, "add-remove", "1 row per person, add-remove")


@pytest.mark.parametrize("rows", [0, -1, 1.0, "1", True, None])
def test_a_unit_without_rows_is_refused(rows) -> None:
    with pytest.raises(BudgetError, match=r"rows=.*: expected an integer from 1 to 1,000,000, such as rows=1"):
        Unit(rows=rows)


@pytest.mark.parametrize("neighbours", ["add", "replace", "", None, 1])
def test_unknown_neighbours_are_refused(neighbours) -> None:
    with pytest.raises(BudgetError, match=r"neighbours=.*: expected 'add-remove' or 'replace-one'"):
        Unit(neighbours=neighbours)


@pytest.mark.parametrize("id", ["", "a\nb", "x" * 201, 7])
def test_a_column_that_cannot_be_one_is_refused(id) -> None:
    with pytest.raises(BudgetError, match=r"id=.*: expected the name of the column that tells people apart"):
        Unit(id=id)


def test_a_unit_tells_itself() -> None:
    assert str(Unit(3, "replace-one")) == "3 rows per person, replace-one"
    assert str(Unit(2000, id="patient")) == "2,000 rows per 'patient', add-remove"
    assert Unit(**Unit(3, "replace-one", "who").data()) == Unit(3, "replace-one", "who")
