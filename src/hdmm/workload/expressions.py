"""SQL expressions read into operands: arithmetic, functions and CASE, computed for every cell of one attribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from operator import add, mul, neg, sub
from typing import Any, final

import numpy as np

from hdmm.errors import WorkloadError, nearest
from hdmm.numbers import shown
from hdmm.schema import Dates, Times
from hdmm.workload import scalars
from hdmm.workload.cells import Cells, Column, Computed, Constant, Operand
from hdmm.workload.dialect import sql
from hdmm.workload.scalars import OTHER, Other, Value, bounded, one_kind
from hdmm.workload.truth import Tree, evaluate, leaves_of

FUNCTIONS = (
    "ABS, CASE, CEIL, COALESCE, DATE_TRUNC, EXTRACT, FLOOR, LEFT, LENGTH, LOWER, MOD, NULLIF, RIGHT, ROUND, SIGN, "
    "SUBSTRING, TRIM, UPPER, YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE"
)
"""The functions that can be computed."""
_TRIMS = {None: str.strip, "BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}
_PARTS = {
    **{name.capitalize(): name for name in ("year", "quarter", "month", "week", "day", "hour", "minute")},
    "DayOfMonth": "day",
    "DayOfYear": "doy",
    "DayOfWeek": "dow",
    "DayOfWeekIso": "isodow",
}
"""The parser's names of functions that are a field of a date or a time."""
_FIELDS = {"dayofmonth": "day", "dayofyear": "doy", "dayofweek": "dow", "dayofweekiso": "isodow"}
"""Other names of fields in EXTRACT."""
_TIMES = ("DATE", "TIME", "TIMESTAMP", "DATETIME", "TIMESTAMPTZ", "TIMETZ")
"""Types that a text in a condition may be cast to: the domain of the attribute reads it."""
_BARE_DATE = re.compile("[0-9]{4} - [0-9]{1,2}( - [0-9]{1,2})?")
"""A date without quotes, which is arithmetic."""
_USE_LIKE = "use LIKE, as in LIKE 'A%'"
_USE_LEVEL = "use EXTRACT, a level such as month, or DATE_TRUNC('month', …)"
_NO_TODAY = "a plan does not depend on the day on which it is made; write the date, as in DATE '2021-03-01'"
_REMEDIES = {
    **dict.fromkeys(("STARTSWITH", "ENDSWITH", "CONTAINS", "PREFIX", "SUFFIX", "STRPOSITION", "GLOB"), _USE_LIKE),
    **dict.fromkeys(("REGEXPLIKE", "REGEXPILIKE", "REGEXPMATCHES", "REGEXPFULLMATCH", "SIMILARTO"), _USE_LIKE),
    **dict.fromkeys(("STRFTIME", "TIMETOSTR", "TOCHAR", "DATEFORMAT", "DAYNAME", "MONTHNAME", "LASTDAY"), _USE_LEVEL),
    **dict.fromkeys(("CURRENTDATE", "CURRENTTIMESTAMP", "CURRENTTIME", "NOW", "TODAY"), _NO_TODAY),
    **dict.fromkeys(("INTERVAL", "DATEADD", "DATESUB", "DATEDIFF", "AGE"), "write the dates that you mean"),
    **dict.fromkeys(("GREATEST", "LEAST"), "use CASE WHEN … THEN … ELSE … END"),
    **dict.fromkeys(("REPLACE", "REGEXPREPLACE", "TRANSLATE"), "use CASE, or declare aliases or a level"),
    "CONCAT": "join texts by ||",
    "WIDTHBUCKET": "use arithmetic such as age / 10, CASE, or a level",
}
"""What to write in place of functions that people use."""


@final
class Expressions:
    """Reads expressions; what stands between WHEN and THEN is read by ``condition``."""

    def __init__(self, cells: Cells, condition: Callable[[Any], Tree]) -> None:
        self._cells = cells
        self._condition = condition

    def read(self, node: Any) -> Operand:
        """The operand that a node stands for."""
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column() if not isinstance(node.this, exp.Star):
                return self._cells.column(node.name)
            case exp.Literal():
                return _literal(str(node.this), is_text=node.is_string)
            case exp.Boolean():
                return Constant.of(bool(node.this))
            case exp.Null():
                return Constant(None, None)
            case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
                return _literal(f"-{node.this.this}", is_text=False)
            case exp.Cast() | exp.Date() if _is_moment(node):
                return self.read(node.this)
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._first([(self._condition(node.this), node.args["true"])], node.args.get("false"), node)
            case exp.Coalesce():
                return self._coalesce([node.this, *node.expressions], node)
            case exp.Nullif():
                null = exp.Null()
                return self._first([(self._equal(node.this, node.expression), null)], node.this, node)
            case exp.Trim():
                return self._trim(node)
            case exp.Extract():
                return self._part(node.this.name.lower(), node.expression, node)
            case exp.DateTrunc() | exp.TimestampTrunc():
                return self._truncated(node)
            case _ if type(node).__name__ in _PARTS:
                return self._part(_PARTS[type(node).__name__], node.this, node)
            case exp.Substring() | exp.Left() | exp.Right() | exp.Round():
                return self._with_numbers(node)
        if isinstance(node, exp.Sub) and _BARE_DATE.fullmatch(sql(node)):
            raise WorkloadError(f"{sql(node)} is a subtraction; write a date in quotes, as in '2021-03-01'")
        if type(node) in _numeric():
            operands = [self._cells.numbers(self.read(part)) for part in _operands(node)]
            if isinstance(node, (exp.Div, exp.IntDiv, exp.Mod)) and operands[-1] == Constant.of(0):
                raise WorkloadError(f"{shown(sql(node))} divides by zero")
            return self._apply(node, "numbers", _numeric()[type(node)], operands)
        if type(node) in _textual():
            return self._apply(node, "texts", _textual()[type(node)], [self.read(part) for part in _operands(node)])
        if is_condition(node):
            return self._truth(self._condition(node))
        raise WorkloadError(_refusal(node))

    def _apply(self, node: Any, kind: str, function: Callable[..., Value], operands: Sequence[Operand]) -> Operand:
        """A function of numbers or of texts, cell by cell; NULL and OTHER stay what they are."""

        def of(*values: Value) -> Value:
            for value in values:
                if value is None:
                    return None
            for value in values:
                if isinstance(value, Other):
                    return value
                if isinstance(value, bool) or isinstance(value, str) != (kind == "texts"):
                    raise WorkloadError(f"{shown(sql(node))} is for {kind}; {_KINDS[kind]}")
            return bounded(function(*values))

        attribute = self._cells.attribute_of(operands)
        if attribute is None:
            return Constant.of(of(*(operand.value for operand in operands if isinstance(operand, Constant))))
        self._cells.compute(attribute)
        columns = [self._cells.values(operand, attribute) for operand in operands]
        return Computed(attribute, [of(*values) for values in zip(*columns, strict=True)])

    def _case(self, node: Any) -> Operand:
        cases = [
            (self._condition(case.this) if node.this is None else self._equal(node.this, case.this), case.args["true"])
            for case in node.args["ifs"]
        ]
        return self._first(cases, node.args.get("default"), node)

    def _coalesce(self, nodes: list[Any], node: Any) -> Operand:
        operands = [self.read(part) for part in nodes]
        attribute = self._cells.attribute_of(operands)
        if attribute is None:
            return next(
                (part for part in operands if isinstance(part, Constant) and part.value is not None), operands[-1]
            )
        values = list(self._cells.values(operands[-1], attribute))
        for operand in operands[-2::-1]:
            self._cells.compute(attribute)
            firsts = self._cells.values(operand, attribute)
            values = [value if first is None else first for first, value in zip(firsts, values, strict=True)]
        return Computed(attribute, one_kind(values, shown(sql(node))))

    def _first(self, cases: Sequence[tuple[Tree, Any]], default: Any, node: Any) -> Operand:
        """The value of the first case whose condition is true."""
        from sqlglot import exp

        trees = [tree for tree, _ in cases]
        operands = [self.read(part) for _, part in cases]
        otherwise = self.read(default or exp.Null())
        leaves = [leaf for tree in trees for leaf in leaves_of(tree)]
        attribute = self._cells.attribute_of([*leaves, *operands, otherwise])
        if attribute is None:
            true = (operand for tree, operand in zip(trees, operands, strict=True) if evaluate(tree, _no_leaf) > 0)
            return next(true, otherwise)
        values = list(self._cells.values(otherwise, attribute))
        for tree, operand in zip(reversed(trees), reversed(operands), strict=True):
            self._cells.compute(attribute)
            truth = np.broadcast_to(evaluate(tree, lambda leaf: leaf.truth), len(values))
            chosen = self._cells.values(operand, attribute)
            for cell in np.flatnonzero(truth > 0).tolist():
                values[cell] = chosen[cell]
        return Computed(attribute, one_kind(values, shown(sql(node))))

    def _equal(self, left: Any, right: Any) -> Tree:
        return self._cells.compare("=", self.read(left), self.read(right))

    def _trim(self, node: Any) -> Operand:
        trim = _TRIMS[node.args.get("position") or None]
        letters = self._constant(node.expression, str, "a text") if node.expression is not None else " "
        return self._apply(node, "texts", lambda text: trim(text, letters), [self.read(node.this)])

    def _part(self, name: str, value: Any, node: Any) -> Operand:
        """A field of a date or a time, such as its year."""
        column, domain = self._moment(value, node)
        declared: list[Value] = domain.part(_FIELDS.get(name, name)).tolist()
        self._cells.compute(column.attribute)
        extra = [*[OTHER] * domain.other, *[None] * bool(domain.missing)]
        return Computed(column.attribute, [*declared, *extra])

    def _truncated(self, node: Any) -> Operand:
        """The period that a date or a time lies in: a level of its attribute, or the attribute itself."""
        column, domain = self._moment(node.this, node)
        period = node.unit.name.lower()
        if period == domain.by:
            return column
        if period not in domain.levels:
            raise WorkloadError(f"{shown(sql(node))}: a {domain.by} has no {period}{nearest(period, domain.levels)}")
        return Column(column.attribute, period)

    def _moment(self, value: Any, node: Any) -> tuple[Column, Dates | Times]:
        operand = self.read(value)
        domain = self._cells.domain(operand) if isinstance(operand, Column) and operand.level is None else None
        if not isinstance(operand, Column) or not isinstance(domain, (Dates, Times)):
            raise WorkloadError(f"{shown(sql(node))} is for attributes of dates and times")
        return operand, domain

    def _with_numbers(self, node: Any) -> Operand:
        """A function whose further arguments are whole numbers."""
        from sqlglot import exp

        given = [node.args.get(key) for key in ("start", "length", "expression", "decimals")]
        numbers = [self._constant(part, int, "an integer") for part in given if part is not None]
        operand = self.read(node.this)
        if isinstance(node, exp.Round):
            if numbers and abs(numbers[0]) > 30:
                raise WorkloadError(f"{shown(sql(node))}: round to at most 30 places")
            return self._apply(
                node, "numbers", lambda value: scalars.rounded(value, *numbers), [self._cells.numbers(operand)]
            )
        start = numbers[0] if isinstance(node, exp.Substring) else 1
        if start < 1 or min(numbers) < 0:
            raise WorkloadError(f"{shown(sql(node))}: letters are counted from 1, and lengths from 0")
        functions: dict[type, Callable[..., str]] = {exp.Substring: scalars.substring, exp.Right: scalars.right}
        function = functions.get(type(node), _left)
        return self._apply(node, "texts", lambda text: function(text, *numbers), [operand])

    def _constant(self, node: Any, kind: type, what: str) -> Any:
        operand = self.read(node)
        if not isinstance(operand, Constant) or type(operand.value) is not kind:
            raise WorkloadError(f"{shown(sql(node))} is not {what}; write one here")
        return operand.value

    def _truth(self, tree: Tree) -> Operand:
        """A condition as a value."""
        attribute = self._cells.attribute_of(list(leaves_of(tree)))
        truth = evaluate(tree, lambda leaf: leaf.truth)
        if attribute is None:
            return Constant.of(None if not truth else bool(truth > 0))
        return Computed(attribute, self._cells.unknowns(attribute, np.broadcast_to(truth, self._cells.size(attribute))))


_KINDS = {
    "numbers": "it needs an attribute of integers, or of listed values that are all numbers",
    "texts": "it needs an attribute of listed values, or a level",
}


def _operands(node: Any) -> list[Any]:
    from sqlglot import exp

    return [node.this, node.expression] if isinstance(node, exp.Binary) else [node.this]


@cache
def _numeric() -> dict[type, Callable[..., Value]]:
    from sqlglot import exp

    return {
        exp.Add: add,
        exp.Sub: sub,
        exp.Mul: mul,
        exp.Neg: neg,
        exp.Div: scalars.divided,
        exp.IntDiv: scalars.divided_whole,
        exp.Mod: scalars.remainder,
        exp.Abs: abs,
        exp.Floor: scalars.sql_floor,
        exp.Ceil: scalars.sql_ceil,
        exp.Sign: lambda value: (value > 0) - (value < 0),
    }


@cache
def _textual() -> dict[type, Callable[..., Value]]:
    from sqlglot import exp

    return {exp.Lower: scalars.lower, exp.Upper: scalars.upper, exp.Length: len, exp.DPipe: add}


def is_condition(node: Any) -> bool:
    """Whether a node is true, false or unknown by its form."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, (exp.Predicate, exp.Connector, exp.Not, exp.Escape))


def _is_moment(node: Any) -> bool:
    """Whether a node is a date or a time written out: DATE '2021-03-01'."""
    from sqlglot import exp

    if not isinstance(node.this, exp.Literal) or not node.this.is_string:
        return False
    return isinstance(node, exp.Date) or (type(node) is exp.Cast and node.to.this.name in _TIMES)


def _literal(text: str, *, is_text: bool) -> Constant:
    return Constant(text if is_text else scalars.number(text), text)


def _left(text: str, count: int) -> str:
    return text[:count]


def _no_leaf(leaf: object) -> Any:
    raise AssertionError(leaf)


def _refusal(node: Any) -> str:
    from sqlglot import exp

    text = shown(sql(node))
    if isinstance(node, exp.Query) or node.find(exp.Query) is not None:
        return f"{text}: sub-queries are not supported; write the values, or ask for the parts as products of their own"
    if isinstance(node, exp.AggFunc):
        return f"{text}: only counts are answered, and a condition is about single records; write it without {text}"
    named = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
    remedy = _REMEDIES.get(named.replace("_", "").upper())
    if remedy is not None:
        return f"{text} is not supported; {remedy}"
    if isinstance(node, exp.Cast):
        return f"{text}: CAST is not supported; use the attribute itself, whose type the schema declares"
    if isinstance(node, exp.Func):
        return f"{text} is not a function that hdmm knows; use {FUNCTIONS}, or declare a level of the attribute"
    return f"{text} is not a value; compare with a number, a text in single quotes, true or false"
