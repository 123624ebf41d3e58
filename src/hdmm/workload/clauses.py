"""SQL conditions read into trees: leaves, each decided on one attribute for every cell, under AND, NOT and IS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from hdmm.errors import InputError, WorkloadError
from hdmm.numbers import shown
from hdmm.schema import Boolean, Comparison, Domain
from hdmm.workload.cells import Cells, Column, Computed, Constant, Operand, Resolve
from hdmm.workload.dialect import CONDITIONS, parse_condition, parse_expression, sql
from hdmm.workload.expressions import Expressions, is_condition
from hdmm.workload.scalars import Other, like, lower
from hdmm.workload.truth import Conjunction, Is, Leaf, Negation, Tree, disjunction, truth_of, truth_value

_COMPARISONS: dict[str, Comparison] = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
"""The parser's names of comparisons."""


def read_condition(condition: str, resolve: Resolve, domains: Mapping[str, Domain]) -> Tree:
    """The tree of a condition on attributes with these domains."""
    node = parse_condition(condition)
    return _Reader("condition", condition, resolve, domains).condition(node)


def read_expression(expression: str, resolve: Resolve, domains: Mapping[str, Domain]) -> Column | Computed:
    """The values of an expression on one attribute."""
    node = parse_expression(expression)
    return _Reader("expression", expression, resolve, domains).expression(node)


def columns_of(condition: str) -> set[str]:
    """The names that a condition uses, as they are written there."""
    from sqlglot import exp

    return {node.name for node in parse_condition(condition).find_all(exp.Column)}


@contextmanager
def shallow(text: str) -> Iterator[None]:
    """Refuse a condition or an expression that is nested too deeply to be read or decided."""
    try:
        yield
    except RecursionError:
        raise WorkloadError(f"condition {text[:60]!r}… is nested too deeply; {CONDITIONS}") from None


def _chain(node: Any) -> list[Any]:
    """The parts of a chain of ANDs or of ORs, however long."""
    parts, pending = [], [node]
    while pending:
        top = pending.pop()
        if type(top) is type(node):
            pending += [top.expression, top.this]
        else:
            parts.append(top)
    return parts


@final
class _Reader:
    """Turns a parsed condition into leaves, each decided on its attribute."""

    def __init__(self, kind: str, text: str, resolve: Resolve, domains: Mapping[str, Domain]) -> None:
        self._place = f"{kind} {shown(text)}"
        self._cells = Cells(text, resolve, domains)
        self._expressions = Expressions(self._cells, self._read)

    def condition(self, node: Any) -> Tree:
        """The tree of a condition; a refusal begins with it."""
        with self._located():
            return self._read(node)

    def expression(self, node: Any) -> Column | Computed:
        """The values of an expression; a refusal begins with it."""
        with self._located():
            operand = self._expressions.read(node)
            if isinstance(operand, Constant):
                raise WorkloadError("it is the same for all records; use an attribute in it")
            return operand

    @contextmanager
    def _located(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            message = str(error)
            raise type(error)(message if message.startswith("condition ") else f"{self._place}: {error}") from None

    def _read(self, node: Any) -> Tree:
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self._read(node.this)
            case exp.And():
                return Conjunction(tuple(self._read(part) for part in _chain(node)))
            case exp.Or():
                return disjunction(*(self._read(part) for part in _chain(node)))
            case exp.Not() if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
                return Negation(self._null(node.this.this, negated=True))
            case exp.Not():
                return Negation(self._read(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._null(node.this)
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                return Is(self._read(node.this), bool(node.expression.this))
            case exp.In() if node.expressions:
                return self._in(node)
            case exp.Between():
                return self._between(node)
            case exp.Like() | exp.ILike():
                return self._like(node, None)
            case exp.Escape() if isinstance(node.this, (exp.Like, exp.ILike)):
                return self._like(node.this, node.expression)
            case exp.NullSafeEQ():
                return self._same(node)
            case exp.NullSafeNEQ():
                return Negation(self._same(node))
            case _ if type(node).__name__ in _COMPARISONS:
                operator = _COMPARISONS[type(node).__name__]
                return self._cells.compare(operator, *self._sides(node.this, node.expression))
        if is_condition(node):
            text = shown(sql(node))
            if node.find(exp.Query) is not None:
                raise WorkloadError(f"{text}: sub-queries are not supported; write the values one by one")
            raise WorkloadError(f"{text} is not supported; {CONDITIONS}")
        return self._bare(node)

    def _sides(self, *nodes: Any) -> tuple[Operand, ...]:
        """The operands of a comparison; a column without quotes may be meant as a text."""
        from sqlglot import exp

        operands = []
        for place, node in enumerate(nodes):
            if isinstance(node, (exp.Is, exp.Not)):  # the parser binds IS before comparisons, databases after them
                raise WorkloadError(
                    f"{shown(sql(node))} is ambiguous beside a comparison; put what IS is about in parentheses"
                )
            try:
                operands.append(self._expressions.read(node))
            except WorkloadError:
                if place and isinstance(node, exp.Column) and not node.table:
                    raise WorkloadError(
                        f"{shown(sql(node))} is neither an attribute nor a value; write texts in single quotes, as in "
                        f"'{node.name}'"
                    ) from None
                raise
        return tuple(operands)

    def _in(self, node: Any) -> Tree:
        left, *items = self._sides(node.this, *node.expressions)
        texts = [item.text for item in items if isinstance(item, Constant) and item.text is not None]
        nulls = any(isinstance(item, Constant) and item.value is None for item in items)
        if not isinstance(left, Column) or len(texts) + sum(item == Constant(None, None) for item in items) < len(
            items
        ):
            return disjunction(*(self._cells.compare("=", left, item) for item in items))
        unknown: tuple[Tree, ...] = (None,) if nulls else ()
        return disjunction(*((self._cells.any_of("=", left, texts),) if texts else ()), *unknown)

    def _between(self, node: Any) -> Tree:
        value, low, high = self._sides(node.this, node.args["low"], node.args["high"])

        def between(least: Operand, most: Operand) -> Tree:
            return Conjunction((self._cells.compare(">=", value, least), self._cells.compare("<=", value, most)))

        return disjunction(between(low, high), between(high, low)) if node.args.get("symmetric") else between(low, high)

    def _like(self, node: Any, escape: Any) -> Tree:
        from sqlglot import exp

        operand, pattern = self._sides(node.this, node.expression)
        given = Constant(None, None) if escape is None else self._expressions.read(escape)
        mark = given.value if isinstance(given, Constant) else None
        if not isinstance(pattern, Constant) or not isinstance(pattern.value, (str, type(None))):
            raise WorkloadError(f"{shown(sql(node))}: the pattern of LIKE is a text, as in 'A%'")
        if escape is not None and (not isinstance(mark, str) or len(mark) != 1):
            raise WorkloadError(f"{shown(sql(node))}: ESCAPE is one letter, as in ESCAPE '!'")
        if pattern.value is None:
            return None
        fold = lower if isinstance(node, exp.ILike) else str
        matches = like(fold(pattern.value), fold(mark) if isinstance(mark, str) else None)

        def decide(value: object) -> bool | None:
            if value is None or isinstance(value, Other):
                return None
            if not isinstance(value, str):
                raise WorkloadError(f"{shown(sql(node))}: LIKE is for texts: listed values and levels")
            return matches(fold(value)) != bool(node.args.get("negate"))

        attribute = self._cells.attribute_of((operand,))
        if attribute is None:
            return decide(operand.value if isinstance(operand, Constant) else None)
        self._cells.compute(attribute)
        truth = [truth_value(decide(value)) for value in self._cells.values(operand, attribute)]
        return self._cells.leaf(attribute, np.array(truth, np.int8))

    def _same(self, node: Any) -> Tree:
        """IS NOT DISTINCT FROM: equal, or both NULL."""
        left, right = self._sides(node.this, node.expression)
        attribute = self._cells.attribute_of((left, right))
        equal = self._cells.compare("=", left, right)
        if attribute is None:
            nulls = [isinstance(side, Constant) and side.value is None for side in (left, right)]
            return all(nulls) if any(nulls) else equal
        first, second = (self._cells.nulls(side, attribute) for side in (left, right))
        truth = equal.truth if isinstance(equal, Leaf) else np.zeros(self._cells.size(attribute), np.int8)
        both, one = first & second, first ^ second
        return self._cells.leaf(attribute, np.where(both | one, truth_of(both, one), truth))

    def _null(self, node: Any, *, negated: bool = False) -> Tree:
        """IS NULL; whether records without a value are counted at all is for the schema to say."""
        if is_condition(node):
            return Is(self._read(node), None)
        (operand,) = self._sides(node)
        if isinstance(operand, Constant):
            return operand.value is None
        if isinstance(operand, Column) and not self._cells.domain(operand).missing and not negated:
            raise WorkloadError(f"{operand.name!r} has no cell for missing values; declare it with missing: true")
        nulls = self._cells.nulls(operand, operand.attribute)
        return self._cells.leaf(operand.attribute, truth_of(nulls, ~nulls))

    def _bare(self, node: Any) -> Tree:
        """An attribute or an expression that is a condition by itself."""
        operand = self._expressions.read(node)
        if isinstance(operand, Column) and isinstance(self._cells.domain(operand), Boolean):
            return self._cells.any_of("=", operand, ["true"])
        values = [operand.value] if isinstance(operand, Constant) else None
        if isinstance(operand, Computed):
            values = list(operand.values)
        if values is None or any(not isinstance(value, (bool, Other, type(None))) for value in values):
            raise WorkloadError(f"{shown(sql(node))} is not a condition: it is not boolean; compare it with a value")
        truth = [0 if isinstance(value, Other) else truth_value(value) for value in values]  # type: ignore[arg-type]
        if isinstance(operand, Constant):
            return None if not truth[0] else truth[0] > 0
        return self._cells.leaf(operand.attribute, np.array(truth, np.int8))
