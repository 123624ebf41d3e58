"""SQL conditions on one attribute agree with asking them of every cell, and what no cell can decide is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdmm.errors import WorkloadError
from hdmm.schema import Bins, Boolean, Domain, Integers, Listed
from hdmm.workload.conditions import holds

OTHER, MISSING = "other", "missing"
Cell = Any
Truth = Callable[[Cell], bool]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "<>": ne, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and as a function of a cell's value."""

    sql: str
    truth: Truth


@dataclass(frozen=True)
class Attribute:
    """An attribute, the values of its cells in order, and the simple conditions on it."""

    domain: Domain
    cells: list[Cell]
    simple: st.SearchStrategy[Condition]


def known(test: Truth) -> Truth:
    """A comparison holds for no cell without a value."""
    return lambda cell: cell not in (OTHER, MISSING) and test(cell)


def comparisons(literals: st.SearchStrategy[tuple[str, Any]], operators: list[str], place: Any) -> st.SearchStrategy:
    """Comparisons, IN and BETWEEN with the given literals; ``place`` maps values to something that is ordered."""
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

    def compare(operator: str, literal: tuple[str, Any], flipped: bool) -> Condition:
        text, value = literal
        sql = f"{text} {mirrored.get(operator, operator)} x" if flipped else f"x {operator} {text}"
        return Condition(sql, known(lambda cell: COMPARE[operator](place(cell), place(value))))

    def inside(items: list[tuple[str, Any]], negated: bool) -> Condition:
        values = [place(value) for _, value in items]
        sql = f"x {'NOT ' if negated else ''}IN ({', '.join(text for text, _ in items)})"
        test = known(lambda cell: place(cell) in values)
        return Condition(sql, lambda cell: test(cell) != negated)

    def between(low: tuple[str, Any], high: tuple[str, Any], negated: bool) -> Condition:
        test = known(lambda cell: place(low[1]) <= place(cell) <= place(high[1]))
        sql = f"x {'NOT ' if negated else ''}BETWEEN {low[0]} AND {high[0]}"
        return Condition(sql, lambda cell: test(cell) != negated)

    kinds = [st.builds(compare, st.sampled_from(operators), literals, st.booleans())]
    if "=" in operators:
        kinds.append(st.builds(inside, st.lists(literals, min_size=1, max_size=3), st.booleans()))
    if "=" in operators and "<=" in operators:
        kinds.append(st.builds(between, literals, literals, st.booleans()))
    return st.one_of(kinds)


def integers(**extra: Any) -> Attribute:
    whole = st.integers(-6, 8).flatmap(lambda n: st.sampled_from([(str(n), n), (f"'{n}'", n), (f"{n}.0", n)]))
    halves = st.integers(-12, 16).map(lambda n: (f"{n / 2:.1f}", Fraction(n, 2)))
    powers = st.sampled_from([("1e0", 1), ("20e-1", 2), ("1e20", 10**20), ("-1e20", -(10**20))])
    literals = st.one_of(whole, halves, powers)
    return Attribute(Integers(-4, 6, **extra), list(range(-4, 7)), comparisons(literals, list(COMPARE), lambda v: v))


def listed(**extra: Any) -> Attribute:
    values = ["low", "High", "it's", "10", "9"]
    literals = st.sampled_from([("'" + value.replace("'", "''") + "'", value) for value in values] + [("10", "10")])
    return Attribute(Listed(values, **extra), list(values), comparisons(literals, list(COMPARE), values.index))


def boolean(**extra: Any) -> Attribute:
    literals = st.sampled_from([("true", True), ("FALSE", False), ("'yes'", True), ("0", False)])
    bare = st.sampled_from([Condition("x", known(bool)), Condition("NOT x", lambda cell: not known(bool)(cell))])
    compared = comparisons(literals, ["=", "<>", "!="], lambda value: value)
    return Attribute(Boolean(**extra), [False, True], st.one_of(bare, compared))


def binned(**extra: Any) -> Attribute:
    """Bins can be cut at their low edges by < and >=; beyond the last edge every comparison is decided."""
    edges = ["-1.5", "0", "0.5", "2"]
    cuts = st.sampled_from([(text, Fraction(text)) for text in [*edges, "0.50", "5e-1"]])
    beyond = st.sampled_from([("-2", Fraction(-2)), ("'2.5'", Fraction(5, 2))])
    simple = st.one_of(
        comparisons(cuts, ["<", ">="], lambda v: v), comparisons(beyond, ["=", "<>", "<", "<=", ">", ">="], lambda v: v)
    )
    # A number inside each bin stands for all of them: at these cuts they agree.
    return Attribute(Bins(edges, **extra), [Fraction(-1), Fraction(1, 4), Fraction(1)], simple)


KINDS = {"integers": integers, "listed": listed, "boolean": boolean, "binned": binned}


def conditions(attribute: Attribute) -> st.SearchStrategy[Condition]:
    """Nested conditions, and flat chains in which AND binds before OR."""
    simple = attribute.simple | st.sampled_from(
        [Condition("TRUE", lambda cell: True), Condition("false", lambda cell: False)]
    )
    if attribute.domain.missing:
        simple |= st.sampled_from(
            [
                Condition("x IS NULL", lambda cell: bool(cell == MISSING)),
                Condition("x IS NOT NULL", lambda cell: bool(cell != MISSING)),
            ]
        )

    def negated(inner: Condition) -> Condition:
        return Condition(f"NOT ({inner.sql})", lambda cell: not inner.truth(cell))

    def chained(groups: list[list[Condition]]) -> Condition:
        sql = " OR ".join(" AND ".join(part.sql for part in group) for group in groups)
        return Condition(sql, lambda cell: any(all(part.truth(cell) for part in group) for group in groups))

    def bracketed(inner: Condition) -> Condition:
        return Condition(f"({inner.sql})", inner.truth)

    chain = st.lists(st.lists(simple, min_size=1, max_size=3), min_size=1, max_size=3).map(chained)
    return st.recursive(
        chain,
        lambda inner: st.one_of(
            inner.map(negated),
            st.lists(st.lists(inner.map(bracketed), min_size=1, max_size=2), min_size=1, max_size=2).map(chained),
        ),
        max_leaves=4,
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)  # parsing is slow; most of the time is spent in sqlglot
@given(data=st.data(), other=st.booleans(), missing=st.booleans())
def test_a_condition_holds_for_the_cells_for_which_it_is_true(
    kind: str, data: st.DataObject, other: bool, missing: bool
) -> None:
    attribute = KINDS[kind](other=other, missing=missing)
    condition = data.draw(conditions(attribute))
    cells = attribute.cells + [OTHER] * other + [MISSING] * missing
    found = holds(condition.sql, "x", attribute.domain).tolist()
    assert found == [condition.truth(cell) for cell in cells], condition.sql


AGE = Integers(0, 9)
SEX = Listed(["F", "M"])
INCOME = Bins([0, 10, 50])
CLOSED = Bins([0, 10, 50], closed=True)

DECIDED: dict[str, tuple[str, Domain, list[int]]] = {
    "the name in another case": ("AGE >= 8", AGE, [8, 9]),
    "the name in double quotes": ('"age" >= 8', AGE, [8, 9]),
    "the name with its table": ("person.age >= 8", AGE, [8, 9]),
    "a comment": ("age >= 8 -- adults", AGE, [8, 9]),
    "a plus sign": ("age = +5", AGE, [5]),
    "more than any 64 bits": ("age < 1e30", AGE, list(range(10))),
    "less than any 64 bits": ("age > -1e300", AGE, list(range(10))),
    "equal to more than any 64 bits": ("age = 1e30", AGE, []),
    "just above a value": ("age < 4.0000000000000000000000000000000000001", AGE, [0, 1, 2, 3, 4]),
    "just below a value": ("age >= 7.9999999999999999999999999999999999999", AGE, [8, 9]),
    "a range backwards": ("age BETWEEN 5 AND 3", AGE, []),
    "below a half": ("age < 1.5", AGE, [0, 1]),
    "up to a half": ("age <= 1.5", AGE, [0, 1]),
    "above a half": ("age > 7.5", AGE, [8, 9]),
    "from a half": ("age >= 7.5", AGE, [8, 9]),
    "equal to a half": ("age = 7.5", AGE, []),
    "different from a half": ("age <> 7.5", AGE, list(range(10))),
    "above a half below zero": ("age > -1.5", Integers(-3, 0), [2, 3]),
    "a value below the attribute": ("7 < age", AGE, [8, 9]),
    "a value at most the attribute": ("8 <= age", AGE, [8, 9]),
    "a value above the attribute": ("2 > age", AGE, [0, 1]),
    "a value at least the attribute": ("1 >= age", AGE, [0, 1]),
    "a value equal to the attribute": ("5 = age", AGE, [5]),
    "closed bins up to their end": ("age <= 50", CLOSED, [0, 1]),
    "beyond closed bins": ("age > 50", CLOSED, []),
    "open bins up to their end": ("age < 50", INCOME, [0, 1]),
    "at the end of open bins": ("age >= 50", INCOME, []),
    "equal to the end of open bins": ("age = 50", INCOME, []),
}


@pytest.mark.parametrize(("condition", "domain", "codes"), DECIDED.values(), ids=DECIDED)
def test_a_condition_is_decided_at_its_border(condition: str, domain: Domain, codes: list[int]) -> None:
    assert holds(condition, "age", domain).nonzero()[0].tolist() == codes


def test_a_name_that_is_no_identifier_is_written_in_double_quotes() -> None:
    assert holds('"education-num" < 2', "education-num", AGE).nonzero()[0].tolist() == [0, 1]


@pytest.mark.parametrize("operator", ["OR", "AND"])
def test_a_long_condition_is_read_like_a_short_one(operator: str) -> None:
    condition = f" {operator} ".join(["age = 5"] * 3000)
    assert holds(condition, "age", AGE).nonzero()[0].tolist() == [5]


USE = "use comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT and parentheses"
REFUSED: dict[str, tuple[str, Domain, str]] = {
    "an unknown attribute": ("aeg >= 5", AGE, "attribute 'aeg' is not 'age'; did you mean 'age'?"),
    "two attributes": ("age > 5 AND sex = 'F'", AGE, "attribute 'sex' is not 'age'"),
    "an attribute as value": ("age > old", AGE, "'old' is not a value; write texts in single quotes, as in 'old'"),
    "text without quotes": ("age = F", SEX, "'F' is not a value; write texts in single quotes, as in 'F'"),
    "text in double quotes": ('age = "F"', SEX, "is not a value; write texts in single quotes, as in 'F'"),
    "an unknown value": ("age = 'Femael'", Listed(["Female", "Male"]), "value 'Femael' is not in the domain; did you"),
    "an unknown value in a list": ("age IN ('F', 'X')", SEX, "value 'X' is not in the domain"),
    "the cell other": ("age = 'other'", Listed(["a"], other=True), "value 'other' is not in the domain"),
    "text for a number": ("age > 'abc'", AGE, "'abc' is not a number"),
    "NaN": ("age > 'NaN'", AGE, "'NaN' is not a number"),
    "text for a boolean": ("age = 'maybe'", Boolean(), "value 'maybe' is not in the domain"),
    "an order of booleans": ("age >= true", Boolean(), "'>=' does not order true and false"),
    "a range of booleans": ("age BETWEEN false AND true", Boolean(), "'>=' does not order true and false"),
    "an attribute alone": ("age", AGE, "'age' is not a condition: it is not boolean; compare it with a value"),
    "inside a bin": ("age >= 5", INCOME, "'>= 5' cuts through a bin; bins can be cut only at 0, 10, 50"),
    "above a low edge": ("age > 10", INCOME, "'> 10' cuts through a bin; bins can be cut only at 0, 10, 50"),
    "up to a low edge": ("age <= 10", INCOME, "'<= 10' cuts through a bin"),
    "equal to a low edge": ("age = 10", INCOME, "'= 10' cuts through a bin"),
    "different from a low edge": ("age <> 0", INCOME, "'<> 0' cuts through a bin"),
    "between edges, both included": ("age BETWEEN 0 AND 10", INCOME, "'<= 10' cuts through a bin"),
    "below the end of closed bins": ("age < 50", CLOSED, "'< 50' cuts through a bin"),
    "at the end of closed bins": ("age >= 50", CLOSED, "'>= 50' cuts through a bin"),
    "missing, not declared": (
        "age IS NULL",
        AGE,
        "'age' has no cell for missing values; declare it with missing: true",
    ),
    "not missing, not declared": ("age IS NOT NULL", AGE, "'age' has no cell for missing values"),
    "equal to NULL": ("age = NULL", AGE, "'NULL' is not a value; compare with a number, a text in single quotes"),
    "NULL in a list": ("age IN (1, NULL)", AGE, "'NULL' is not a value"),
    "a sub-query": ("age IN (SELECT 1)", AGE, f"is not supported; {USE}"),
    "a scalar sub-query": ("age = (SELECT 1)", AGE, "is not a value; compare with a number"),
    "EXISTS": ("EXISTS (SELECT 1)", AGE, f"is not supported; {USE}"),
    "arithmetic": ("age + 1 > 5", AGE, "is not an attribute; compare the attribute with a value"),
    "arithmetic on the value": ("age > 2 + 3", AGE, "'2 + 3' is not a value"),
    "a function": ("abs(age) > 5", AGE, "is not an attribute; compare the attribute with a value"),
    "a function of the value": ("age > abs(5)", AGE, "'ABS(5)' is not a value"),
    "a cast": ("CAST(age AS INT) = 5", AGE, "is not an attribute; compare the attribute with a value"),
    "CASE": ("CASE WHEN age > 5 THEN true END", AGE, f"is not supported; {USE}"),
    "a symmetric range": ("age BETWEEN SYMMETRIC 5 AND 3", AGE, f"is not supported; {USE}"),
    "LIKE": ("age LIKE 'F%'", SEX, f"is not supported; {USE}"),
    "IS TRUE": ("age IS TRUE", Boolean(), f"is not supported; {USE}"),
    "two values": ("5 < 6", AGE, "'6' is not an attribute; compare the attribute with a value"),
    "a value alone": ("1", AGE, f"'1' is not supported; {USE}"),
    "an empty list": ("age IN ()", AGE, f"is not supported; {USE}"),
    "a parameter": ("age > ?", AGE, "'?' is not a value"),
    "two statements": ("age > 5; DROP TABLE person", AGE, f"is not one condition; {USE}"),
    "a union": ("age > 5 UNION SELECT 1", AGE, f"is not one condition; {USE}"),
    "GROUP BY": ("age > 5 GROUP BY age", AGE, f"is not one condition; {USE}"),
    "HAVING": ("age > 5 HAVING COUNT(*) > 1", AGE, f"is not one condition; {USE}"),
    "ORDER BY": ("age > 5 ORDER BY age", AGE, f"is not one condition; {USE}"),
    "LIMIT": ("age > 5 LIMIT 1", AGE, f"is not one condition; {USE}"),
    "a whole query": ("SELECT age FROM person WHERE age > 5", AGE, "condition 'SELECT age FROM"),
    "garbage": ("age >>> ((", AGE, f"is not valid SQL; {USE}"),
    "half a condition": ("age > 5 AND", AGE, f"is not valid SQL; {USE}"),
    "an unbalanced bracket": ("age > 5)", AGE, f"is not valid SQL; {USE}"),
    "an unbalanced quote": ("age = 'F", SEX, f"is not valid SQL; {USE}"),
    "nothing": ("", AGE, f"condition '' is not valid SQL; {USE}"),
    "blanks": ("  ", AGE, "is not valid SQL"),
    "brackets beyond any use": ("(" * 5000 + "age > 5" + ")" * 5000, AGE, "is not valid SQL"),
}


@pytest.mark.parametrize(("condition", "domain", "message"), REFUSED.values(), ids=REFUSED)
def test_a_condition_that_no_cell_can_decide_is_refused(condition: str, domain: Domain, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        holds(condition, "age", domain)
    assert message in str(caught.value)


@pytest.mark.parametrize(("condition", "domain"), [case[:2] for case in REFUSED.values()], ids=REFUSED)
def test_a_refusal_shows_the_beginning_of_the_condition(condition: str, domain: Domain) -> None:
    with pytest.raises(WorkloadError) as caught:
        holds(condition, "age", domain)
    assert str(caught.value).startswith(f"condition {condition!r}"[:40])
