"""SQL conditions on one attribute agree with asking them of every cell, and what no cell can decide is refused."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdmm.errors import WorkloadError
from hdmm.schema import Bins, Boolean, Dates, Domain, Integers, Listed
from hdmm.workload.conditions import holds

OTHER, MISSING = "other", "missing"
Cell = Any
Truth = Callable[[Cell], bool | None]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "<>": ne, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and its truth as a function of a cell's value; None is unknown."""

    sql: str
    truth: Truth


@dataclass(frozen=True)
class Attribute:
    """An attribute, the values of its cells in order, and the simple conditions on it."""

    domain: Domain
    cells: list[Cell]
    simple: st.SearchStrategy[Condition]


def opposite(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def every(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    return False if False in found else None if None in found else True


def comparisons(
    literals: st.SearchStrategy[tuple[str, Any]], operators: list[str], place: Any, declared: Callable[[Any], bool]
) -> st.SearchStrategy:
    """Comparisons, IN and BETWEEN with the given literals; ``place`` maps values to something that is ordered.

    Other values differ from those that are declared; every other comparison with them is unknown.
    """
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

    def truth(cell: Cell, operator: str, value: Any) -> bool | None:
        if cell == MISSING or (cell == OTHER and (operator not in ("=", "<>", "!=") or not declared(value))):
            return None
        return operator != "=" if cell == OTHER else COMPARE[operator](place(cell), place(value))

    def compare(operator: str, literal: tuple[str, Any], flipped: bool) -> Condition:
        text, value = literal
        sql = f"{text} {mirrored.get(operator, operator)} x" if flipped else f"x {operator} {text}"
        return Condition(sql, lambda cell: truth(cell, operator, value))

    def inside(items: list[tuple[str, Any]], null: bool, negated: bool) -> Condition:
        texts = [text for text, _ in items] + ["NULL"] * null
        sql = f"x {'NOT ' if negated else ''}IN ({', '.join(texts)})"

        def outside(cell: Cell) -> bool | None:
            return every([*(truth(cell, "<>", value) for _, value in items), *[None] * null])

        return Condition(sql, lambda cell: outside(cell) if negated else opposite(outside(cell)))

    def between(low: tuple[str, Any], high: tuple[str, Any], negated: bool) -> Condition:
        sql = f"x {'NOT ' if negated else ''}BETWEEN {low[0]} AND {high[0]}"

        def within(cell: Cell) -> bool | None:
            return every((truth(cell, ">=", low[1]), truth(cell, "<=", high[1])))

        return Condition(sql, lambda cell: opposite(within(cell)) if negated else within(cell))

    kinds = [st.builds(compare, st.sampled_from(operators), literals, st.booleans())]
    if "=" in operators:
        kinds.append(st.builds(inside, st.lists(literals, min_size=1, max_size=3), st.booleans(), st.booleans()))
    if "=" in operators and "<=" in operators:
        kinds.append(st.builds(between, literals, literals, st.booleans()))
    return st.one_of(kinds)


def integers(**extra: Any) -> Attribute:
    whole = st.integers(-6, 8).flatmap(lambda n: st.sampled_from([(str(n), n), (f"'{n}'", n), (f"{n}.0", n)]))
    halves = st.integers(-12, 16).map(lambda n: (f"{n / 2:.1f}", Fraction(n, 2)))
    powers = st.sampled_from([("1e0", 1), ("20e-1", 2), ("1e20", 10**20), ("-1e20", -(10**20))])
    literals = st.one_of(whole, halves, powers)
    simple = comparisons(literals, list(COMPARE), lambda v: v, lambda v: v in range(-4, 7))
    return Attribute(Integers(-4, 6, **extra), list(range(-4, 7)), simple)


def listed(**extra: Any) -> Attribute:
    values = ["low", "High", "it's", "10", "9"]
    literals = st.sampled_from([("'" + value.replace("'", "''") + "'", value) for value in values] + [("10", "10")])
    simple = comparisons(literals, list(COMPARE), values.index, lambda value: True)
    return Attribute(Listed(values, **extra), list(values), simple)


def known_flag(cell: Cell) -> bool | None:
    return None if cell == MISSING else bool(cell != OTHER and cell)


def boolean(**extra: Any) -> Attribute:
    literals = st.sampled_from([("true", True), ("FALSE", False), ("'yes'", True), ("0", False)])
    bare = st.sampled_from([Condition("x", known_flag), Condition("NOT x", lambda cell: opposite(known_flag(cell)))])
    compared = comparisons(literals, ["=", "<>", "!="], lambda value: value, lambda value: True)
    return Attribute(Boolean(**extra), [False, True], st.one_of(bare, compared))


def binned(**extra: Any) -> Attribute:
    """Bins can be cut at their low edges by < and >=; beyond the last edge every comparison is decided."""
    edges = ["-1.5", "0", "0.5", "2"]
    cuts = st.sampled_from([(text, Fraction(text)) for text in [*edges, "0.50", "5e-1"]])
    beyond = st.sampled_from([("-2", Fraction(-2)), ("'2.5'", Fraction(5, 2))])
    simple = st.one_of(
        comparisons(cuts, ["<", ">="], lambda v: v, lambda v: False),
        comparisons(beyond, ["=", "<>", "<", "<=", ">", ">="], lambda v: v, lambda v: False),
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
        return Condition(f"NOT ({inner.sql})", lambda cell: opposite(inner.truth(cell)))

    def tested(inner: Condition, value: bool | None, inverse: bool) -> Condition:
        sql = f"({inner.sql}) IS {'NOT ' if inverse else ''}{'NULL' if value is None else str(value).upper()}"
        return Condition(sql, lambda cell: (inner.truth(cell) is value) != inverse)

    def chained(groups: list[list[Condition]]) -> Condition:
        sql = " OR ".join(" AND ".join(part.sql for part in group) for group in groups)

        def truth(cell: Cell) -> bool | None:
            return opposite(every(opposite(every(part.truth(cell) for part in group)) for group in groups))

        return Condition(sql, truth)

    def bracketed(inner: Condition) -> Condition:
        return Condition(f"({inner.sql})", inner.truth)

    chain = st.lists(st.lists(simple, min_size=1, max_size=3), min_size=1, max_size=3).map(chained)
    return st.recursive(
        chain,
        lambda inner: st.one_of(
            inner.map(negated),
            st.builds(tested, inner, st.sampled_from([True, False, None]), st.booleans()),
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
    assert found == [condition.truth(cell) is True for cell in cells], condition.sql


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
    "the name in backticks": ("`age` >= 8", AGE, [8, 9]),
    "not missing, not declared": ("age IS NOT NULL", AGE, list(range(10))),
    "equal to NULL": ("age = NULL", AGE, []),
    "not equal to NULL": ("NOT age = NULL", AGE, []),
    "NULL in a list": ("age IN (1, NULL)", AGE, [1]),
    "not in a list with NULL": ("age NOT IN (1, NULL)", AGE, []),
    "two values": ("5 < 6", AGE, list(range(10))),
    "two texts": ("'a' = 'b'", AGE, []),
    "a symmetric range": ("age BETWEEN SYMMETRIC 5 AND 3", AGE, [3, 4, 5]),
    "arithmetic": ("age + 1 > 8", AGE, [8, 9]),
    "arithmetic on the value": ("age > 2 + 5", AGE, [8, 9]),
    "integers are divided towards zero": ("age / 2 = -1", Integers(-4, 0), [1, 2]),
    "so are they by //": ("age // 2 = -1", Integers(-4, 0), [1, 2]),
    "decimals are divided exactly": ("age / 2.0 = 3.5", AGE, [7]),
    "FLOOR gives a decimal": ("FLOOR(age / 2) / 2 = 1.5", AGE, [6, 7]),
    "decades": ("FLOOR(age / 4) * 4 = 4", AGE, [4, 5, 6, 7]),
    "a remainder": ("age % 4 = 3", AGE, [3, 7]),
    "a remainder has the sign of the dividend": ("age % 3 = -1", Integers(-4, 0), [0, 3]),
    "% binds like *": ("1 + age % 4 * 2 = 7", AGE, [3, 7]),
    "a minus sign": ("-age >= -1", AGE, [0, 1]),
    "a division by an attribute that may be zero": ("10 / age >= 5", AGE, [1, 2]),
    "its negation leaves zero out as well": ("NOT 10 / age >= 2", AGE, [6, 7, 8, 9]),
    "rounding to tens": ("ROUND(age, -1) = 10", AGE, [5, 6, 7, 8, 9]),
    "a function": ("ABS(age - 5) > 3", AGE, [0, 1, 9]),
    "a function of the value": ("age > ABS(-7)", AGE, [8, 9]),
    "numbers that are listed": ("age % 2 = 1", Listed(["10", "7", "3"]), [1, 2]),
    "CASE": ("CASE WHEN age > 5 THEN true END", AGE, [6, 7, 8, 9]),
    "CASE of values": ("CASE age WHEN 1 THEN 'a' WHEN 2 THEN 'a' ELSE 'b' END = 'a'", AGE, [1, 2]),
    "LIKE": ("age LIKE 'F%'", SEX, [0]),
    "NOT LIKE": ("age NOT LIKE 'F_'", SEX, [0, 1]),
    "ILIKE": ("age ILIKE 'f'", SEX, [0]),
    "LIKE with an escape": ("age LIKE '1!%' ESCAPE '!'", Listed(["1%", "10"]), [0]),
    "LIKE by several pieces": ("age LIKE '%a%a_b'", Listed(["xaxacb", "aab", "aacb"]), [0, 2]),
    "LOWER": ("LOWER(age) = 'm'", SEX, [1]),
    "UPPER and TRIM": ("UPPER(TRIM(age)) IN ('M', 'X')", SEX, [1]),
    "the first letters": ("LEFT(age, 2) = '06'", Listed(["06001", "06003", "36001"]), [0, 1]),
    "letters joined": ("age || 'x' = 'Mx'", SEX, [1]),
    "IS TRUE": ("age IS TRUE", Boolean(), [1]),
    "IS NOT TRUE": ("age IS NOT TRUE", Boolean(missing=True), [0, 2]),
    "IS DISTINCT FROM": ("age IS DISTINCT FROM 'F'", Listed(["F", "M"], other=True, missing=True), [1, 2, 3]),
    "IS NOT DISTINCT FROM NULL": ("age IS NOT DISTINCT FROM NULL", Boolean(missing=True), [2]),
    "COALESCE": ("COALESCE(age, 'M') = 'M'", Listed(["F", "M"], missing=True), [1, 2]),
    "NULLIF": ("NULLIF(age, 9) IS NULL", AGE, [9]),
    "a date as text": ("age = DATE '2021-03-01'", Listed(["2021-03-01", "2021-03-02"]), [0]),
    "a cast date as text": ("age = '2021-03-01'::date", Listed(["2021-03-01", "2021-03-02"]), [0]),
    "a moment as text": ("age = TIMESTAMP '2021-03-01 10:00'", Listed(["2021-03-01 10:00", "x"]), [0]),
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


USE = "use comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT and parentheses"
REFUSED: dict[str, tuple[str, Domain, str]] = {
    "an unknown attribute": ("aeg >= 5", AGE, "attribute 'aeg' is not 'age'; did you mean 'age'?"),
    "two attributes": ("age > 5 AND sex = 'F'", AGE, "attribute 'sex' is not 'age'"),
    "an attribute as value": ("age > old", AGE, "write texts in single quotes, as in 'old'"),
    "text without quotes": (
        "age = F",
        SEX,
        "'F' is neither an attribute nor a value; write texts in single quotes, as",
    ),
    "text in double quotes": ('age = "F"', SEX, "write texts in single quotes, as in 'F'"),
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
    "arithmetic on bins": ("age / 10 >= 5", INCOME, "'age' is in bins, so nothing is computed from it; compare it"),
    "missing, not declared": (
        "age IS NULL",
        AGE,
        "'age' has no cell for missing values; declare it with missing: true",
    ),
    "a sub-query": ("age IN (SELECT 1)", AGE, "sub-queries are not supported; write the values one by one"),
    "a scalar sub-query": ("age = (SELECT 1)", AGE, "sub-queries are not supported; write the values"),
    "EXISTS": ("EXISTS (SELECT 1)", AGE, "sub-queries are not supported"),
    "an aggregate": ("age > AVG(age)", AGE, "'AVG(age)': only counts are answered, and a condition is about single"),
    "an unknown function": (
        "sqrt(age) > 5",
        AGE,
        "'SQRT(age)' is not a function that hdmm knows; use ABS, CASE, CEIL,",
    ),
    "a function of nobody": ("frob(age) > 5", AGE, "'FROB(age)' is not a function that hdmm knows; use ABS, CASE"),
    "arithmetic on texts": ("age + 1 > 5", SEX, "'age + 1' is for numbers; it needs an attribute of integers, or of"),
    "a text function of numbers": (
        "LOWER(age) = '1'",
        AGE,
        "'LOWER(age)' is for texts; it needs an attribute",
    ),
    "LIKE on numbers": ("age LIKE '1%'", AGE, "LIKE is for texts: listed values and levels"),
    "LIKE without a pattern": ("age LIKE age", SEX, "the pattern of LIKE is a text, as in 'A%'"),
    "an escape of two letters": ("age LIKE 'a' ESCAPE '!!'", SEX, "ESCAPE is one letter"),
    "an escape of nothing": ("age LIKE 'a!' ESCAPE '!'", SEX, "nothing follows the escape character"),
    "division by zero": ("age / 0 = 1", AGE, "'age / 0' divides by zero"),
    "a whole division of decimals": ("age // 2.5 = 1", AGE, "'//' divides integers; write FLOOR(x / y)"),
    "numbers beyond use": (f"age * {'9' * 30} * {'9' * 30} = 1", AGE, "arithmetic goes up to 40 digits"),
    "an integer of millions of digits": (f"age > {'9' * 1_000_000}", AGE, "a number has at most 4000 digits"),
    "a ratio of millions of digits": (f"age = 1 / {'3' * 1_000_000}", AGE, "a number has at most 4000 digits"),
    "an order of computed texts": ("LOWER(age) > 'a'", SEX, "'>' does not order computed texts or truth values"),
    "a text beside a number": ("LOWER(age) = 5", SEX, "is not a number"),
    "cases of two kinds": (
        "CASE WHEN age > 5 THEN 1 ELSE 'no' END = 1",
        AGE,
        "gives a number in one case and a text",
    ),
    "letters counted from 0": ("SUBSTRING(age, 0, 1) = 'F'", SEX, "letters are counted from 1, and lengths from 0"),
    "a count of letters that is no number": ("LEFT(age, 'a') = 'F'", SEX, "\"'a'\" is not an integer; write one here"),
    "a cast": ("CAST(age AS INT) = 5", AGE, "CAST is not supported; use the attribute itself"),
    "IS beside a comparison": ("age = 5 IS TRUE", AGE, "is ambiguous beside a comparison; put what IS is about in"),
    "a date without quotes": ("age > 2021-03-01", Dates("2021", "2021"), "is a subtraction; write a date in quotes"),
    "the day of today": ("age > CURRENT_DATE", Dates("2021", "2021"), "a plan does not depend on the day"),
    "an interval": (
        "age > DATE '2021-03-01' + INTERVAL 1 MONTH",
        Dates("2021", "2021"),
        "write the dates that you mean",
    ),
    "a value alone": ("1", AGE, "'1' is not a condition: it is not boolean"),
    "an empty list": ("age IN ()", AGE, f"is not supported; {USE}"),
    "a regular expression": ("age SIMILAR TO 'a'", SEX, f"is not supported; {USE}"),
    "bits": ("age & 1 = 1", AGE, "'age & 1' is not a value"),
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
